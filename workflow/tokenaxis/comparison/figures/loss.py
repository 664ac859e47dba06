"""Loss against tokens: the curves, the targets, and where each curve crosses or will cross them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tokenaxis.comparison.answers import Answer, Answers
from tokenaxis.comparison.curves import Curve
from tokenaxis.comparison.figures.style import (
    INK,
    MUTED,
    OTHERS,
    PAPER,
    Drawing,
    Palette,
    legend,
    lines,
    new_figure,
    shown_name,
    token_axis,
)
from tokenaxis.comparison.quantities import percent, plural
from tokenaxis.comparison.quantities import target as target_text

if TYPE_CHECKING:
    from matplotlib.axes import Axes

#: a predicted crossing farther out than this many times the longest run is left to the table
LAST_SHOWN = 12.0
#: more runs than this: raw losses would be a grey carpet, only smoothed curves are drawn
MOST_RAW = 12


def draw(answers: Answers, curves: dict[str, Curve], palette: Palette) -> Drawing | None:
    """The figure, or None when no run has a loss."""
    drawn = [curves[run] for run in answers.runs if len(curves[run].smooth.tokens)]
    if not drawn:
        return None
    figure = new_figure(5.0)
    axes = figure.subplots()
    bottom, top = loss_limits(answers, drawn)
    low, high = token_limits(answers, drawn, top)
    token_axis(axes.xaxis, low, high, "tokens consumed (logarithmic)")
    axes.set_ylabel("loss (nats per token)")
    axes.set_ylim(bottom, top)
    raw = len(drawn) <= MOST_RAW
    grey = [curve for curve in drawn if curve.run not in palette]
    for curve in grey if raw else []:
        _as_logged(axes, curve, OTHERS)
    smooth = [(curve.smooth.tokens, curve.smooth.value) for curve in grey]
    lines(axes, smooth, color=OTHERS, zorder=2, linewidth=0.8, alpha=0.6)
    for curve in drawn:
        if curve.run in palette:
            _curve(axes, curve, palette, raw)
    _targets(axes, answers)
    answered = [cell for cell in answers.cells.values() if cell.answered]
    inside = [cell for cell in answered if low <= (cell.tokens or 0.0) <= high]
    _grey_crossings(axes, [cell for cell in inside if cell.run not in palette])
    for cell in inside:
        if cell.run in palette:
            _crossing(axes, cell, palette, low, high)
    outside = len(answered) - len(inside)
    _legend(figure, axes, answers, drawn, palette)
    return Drawing(
        "loss",
        "Loss against tokens",
        _caption(answers, drawn, outside),
        f"Line chart of loss against tokens for {plural(len(drawn), 'run')}, with target losses as dashed lines; "
        "the numbers are in the table of runs and targets",
        figure,
    )


def loss_limits(answers: Answers, drawn: list[Curve]) -> tuple[float, float]:
    """From below the lowest loss or target to as far above the highest target; the first plunge is left out."""
    import numpy as np

    values = np.concatenate([curve.smooth.value for curve in drawn])
    bottom, top = values.min(), np.quantile(values, 0.98)
    if answers.targets:
        bottom = min(bottom, answers.targets[-1])
        top = min(values.max(), max(answers.targets[0], bottom) + max(0.7 * (answers.targets[0] - bottom), 0.3))
    margin = 0.05 * max(top - bottom, 1e-3)
    return float(bottom - margin), float(max(top, bottom + margin) + margin)


def token_limits(answers: Answers, drawn: list[Curve], top: float) -> tuple[float, float]:
    """From where the first curve comes into view, or before the first crossing, to past the last near one."""
    longest = max(curve.smooth.tokens[-1] for curve in drawn)
    ends = [cell.high or cell.tokens or 0 for cell in answers.cells.values() if cell.status == "predicted"]
    high = max([longest * 1.15] + [end * 1.15 for end in ends if end <= longest * LAST_SHOWN])
    visible = [curve.smooth.tokens[curve.smooth.value <= top] for curve in drawn]
    starts = [float(tokens[0]) for tokens in visible if len(tokens)]
    crossings = [(cell.low or cell.tokens) / 1.5 for cell in answers.cells.values() if cell.tokens]
    return min([*starts, *crossings, longest / 2]), high


def _as_logged(axes: Axes, curve: Curve, colour: str) -> None:
    assert curve.raw is not None
    if curve.loss_name == "val_loss" and len(curve.raw.tokens) < 200:
        axes.plot(curve.raw.tokens, curve.raw.value, ".", color=colour, alpha=0.35, markersize=3, zorder=1)
    else:
        axes.plot(curve.raw.tokens, curve.raw.value, color=colour, alpha=0.18, linewidth=0.6, zorder=1)


def _curve(axes: Axes, curve: Curve, palette: Palette, raw: bool) -> None:
    colour = palette.colour(curve.run)
    if raw:
        _as_logged(axes, curve, colour)
    axes.plot(curve.smooth.tokens, curve.smooth.value, color=colour, zorder=3, linewidth=1.7)


def _targets(axes: Axes, answers: Answers) -> None:
    for target in answers.targets:
        axes.axhline(target, color=MUTED, linewidth=0.7, linestyle=(0, (4, 3)), zorder=0)
        if len(answers.targets) <= 16:
            axes.annotate(target_text(target), (0.0, target), xycoords=("axes fraction", "data"), xytext=(3, 2),
                          textcoords="offset points", fontsize=7.5, color=MUTED)  # fmt: skip


def _grey_crossings(axes: Axes, cells: list[Answer]) -> None:
    for status, face in (("reached", OTHERS), ("predicted", PAPER)):
        own = [cell for cell in cells if cell.status == status]
        if own:
            axes.plot([cell.tokens or 0.0 for cell in own], [cell.target for cell in own], "o", color=OTHERS, zorder=2,
                      markersize=2.5, markeredgewidth=1.3, alpha=0.6, markerfacecolor=face)  # fmt: skip


def _crossing(axes: Axes, cell: Answer, palette: Palette, low: float, high: float) -> None:
    """Mark one crossing of a coloured run, with its interval."""
    assert cell.tokens is not None
    colour = palette.colour(cell.run)
    if cell.low is not None:
        end = min(cell.high if cell.high is not None else high, high)
        axes.plot([max(cell.low, low), end], [cell.target] * 2, color=colour, alpha=0.28, linewidth=6,
                  solid_capstyle="butt", zorder=4)  # fmt: skip
    axes.plot([cell.tokens], [cell.target], palette.marker(cell.run), color=colour, zorder=5, markersize=5.5,
              markeredgewidth=1.3, markerfacecolor=colour if cell.status == "reached" else PAPER)  # fmt: skip


def _legend(figure: object, axes: Axes, answers: Answers, drawn: list[Curve], palette: Palette) -> None:
    from matplotlib.lines import Line2D

    named = [curve.run for curve in drawn if curve.run in palette]
    handles = [Line2D([], [], color=palette.colour(run), marker=palette.marker(run), markersize=5) for run in named]
    labels = [shown_name(run) for run in named]
    if len(drawn) > len(named):
        handles.append(Line2D([], [], color=OTHERS, linewidth=0.8))
        labels.append(plural(len(drawn) - len(named), "other run"))
    statuses = {cell.status for cell in answers.cells.values()}
    for status, face in (("reached", INK), ("predicted", PAPER)):
        if status in statuses:
            handles.append(Line2D([], [], color=INK, marker="o", linestyle="", markerfacecolor=face, markersize=5))
            labels.append(status)
    if any(cell.low is not None for cell in answers.cells.values()):
        handles.append(Line2D([], [], color=MUTED, alpha=0.4, linewidth=6, solid_capstyle="butt"))
        labels.append(f"interval ({percent(_level(answers))})")
    legend(figure, handles, labels)  # type: ignore[arg-type]


def _level(answers: Answers) -> float | None:
    return next((cell.level for cell in answers.cells.values() if cell.level is not None), None)


def _caption(answers: Answers, drawn: list[Curve], outside: int) -> str:
    names = sorted({(curve.loss_name or "").replace("_", " ") for curve in drawn})
    text = f"Smoothed {' or '.join(names)} in nats per token (thick: a local line over the tokens nearby"
    text += "; faint: as logged, thinned to the extremes of each pixel column)." if len(drawn) <= MOST_RAW else ")."
    text += " Dashed lines are targets. A filled mark is a crossing inside the log, an open mark a predicted one, a bar"
    text += " its interval."
    if outside:
        text += f" {plural(outside, 'predicted crossing')} beyond the right edge: see the table."
    return text
