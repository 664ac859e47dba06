"""Batch size and learning rate along the tokens, with the places where a run was resumed."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tokenaxis.comparison.curves import Curve
from tokenaxis.comparison.figures.style import (
    INK,
    OTHERS,
    Drawing,
    Palette,
    legend,
    lines,
    new_figure,
    shown_name,
    tick_text,
)
from tokenaxis.comparison.quantities import natural, plural
from tokenaxis.comparison.thinning import Track

if TYPE_CHECKING:
    import numpy as np
    from matplotlib.axes import Axes


def draw(curves: dict[str, Curve], palette: Palette) -> Drawing | None:
    """The figure, or None when there is no run with rows."""
    drawn = [curve for curve in curves.values() if curve.batch is not None and len(curve.batch.tokens)]
    if not drawn:
        return None
    with_lr = any(curve.lr is not None for curve in drawn)
    figure = new_figure(4.4 if with_lr else 2.4)
    places = figure.subplots(2 if with_lr else 1, 1, sharex=True, squeeze=False)[:, 0]
    grey = [curve for curve in drawn if curve.run not in palette]
    lines(places[0], [_steps(curve.batch) for curve in grey if curve.batch is not None], limits=True,
          color=OTHERS, linewidth=1.5, alpha=0.9, zorder=2)  # fmt: skip
    if with_lr:
        rates = [(curve.lr.tokens, curve.lr.value) for curve in grey if curve.lr is not None]
        lines(places[1], rates, limits=True, color=OTHERS, linewidth=1.3, zorder=2)
    for curve in drawn:
        if curve.run in palette:
            _batch(places[0], curve, palette)
        if curve.run in palette and curve.lr is not None:
            places[1].plot(curve.lr.tokens, curve.lr.value, color=palette.colour(curve.run), linewidth=1.3)
        _resumptions(places[0], curve, palette.colour(curve.run))
    _axes(list(places), with_lr)
    resumed = sum(bool(curve.attempt_starts) for curve in drawn)
    _legend(figure, drawn, palette, resumed > 0)
    caption = "Tokens per optimizer step" + (" and learning rate" if with_lr else "") + ", as the run went on."
    if resumed:
        caption += f" Crosses: {plural(resumed, 'run')} resumed after an interruption."
    alt = "Step charts of batch size" + (" and learning rate" if with_lr else "") + " against tokens consumed"
    return Drawing("tracks", "Batch size and learning rate", caption, alt, figure)


def _batch(axes: Axes, curve: Curve, palette: Palette) -> None:
    assert curve.batch is not None
    colour = palette.colour(curve.run)
    axes.step(curve.batch.tokens, curve.batch.value, where="post", color=colour, linewidth=1.5, alpha=0.9)


def _steps(batch: Track) -> tuple[np.ndarray, np.ndarray]:
    """The corners of a line that changes at its points."""
    import numpy as np

    return np.repeat(batch.tokens, 2)[1:], np.repeat(batch.value, 2)[:-1]


def _resumptions(axes: Axes, curve: Curve, colour: str) -> None:
    import numpy as np

    if curve.attempt_starts and curve.batch is not None:
        places = np.searchsorted(curve.batch.tokens, curve.attempt_starts, side="right") - 1
        axes.plot(curve.attempt_starts, curve.batch.value[places], "x", color=colour, markersize=6, markeredgewidth=1.8)


def _axes(places: list[Axes], with_lr: bool) -> None:
    from matplotlib.ticker import FuncFormatter

    for axes in places:
        axes.autoscale_view()  # collections do not ask for it themselves
        axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: tick_text(value)))
        axes.set_ylim(bottom=0)
    places[0].yaxis.set_major_formatter(FuncFormatter(lambda value, _: tick_text(value)))
    places[0].set_ylabel("batch\n(tokens per step)")
    if with_lr:
        places[1].set_ylabel("learning rate")
        places[1].yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:.3g}"))
    places[-1].set_xlabel("tokens consumed")


def _legend(figure: object, drawn: list[Curve], palette: Palette, resumed: bool) -> None:
    from matplotlib.lines import Line2D

    named = sorted((curve.run for curve in drawn if curve.run in palette), key=natural)
    handles = [Line2D([], [], color=palette.colour(run)) for run in named]
    labels = [shown_name(run) for run in named]
    if len(drawn) > len(named):
        handles.append(Line2D([], [], color=OTHERS))
        labels.append(plural(len(drawn) - len(named), "other run"))
    if resumed:
        handles.append(Line2D([], [], color=INK, marker="x", linestyle="", markeredgewidth=1.8))
        labels.append("resumed")
    legend(figure, handles, labels)  # type: ignore[arg-type]
