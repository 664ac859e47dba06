"""What a fit on the first part of a log would have answered: the prediction against the window's end."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tokenaxis.comparison.answers import Answers
from tokenaxis.comparison.curves import Windows
from tokenaxis.comparison.figures.panels import chosen, panels
from tokenaxis.comparison.figures.style import (
    INK,
    MUTED,
    OTHERS,
    PAPER,
    Drawing,
    Palette,
    legend,
    lines,
    shown_name,
    token_axis,
)
from tokenaxis.comparison.quantities import natural, plural
from tokenaxis.comparison.quantities import target as target_text

if TYPE_CHECKING:
    from matplotlib.axes import Axes


#: intervals are drawn for this many runs, the most important ones; more would hide each other
MOST_BANDS = 3


def draw(answers: Answers, windows: list[Windows], palette: Palette) -> Drawing | None:
    """The figure, or None when no window of any run has an answer."""
    import numpy as np

    usable = [entry for entry in windows if np.isfinite(entry.predicted).any()]
    if not usable:
        return None
    weight: dict[float, int] = {}
    for entry in usable:
        weight[entry.target] = weight.get(entry.target, 0) + 1 + 100 * (entry.run in palette)
    targets = chosen(sorted(weight), weight)
    figure, places = panels(len(targets), 2.6)
    for axes, target in zip(places, targets, strict=True):
        _panel(axes, target, [entry for entry in usable if entry.target == target], answers, palette)
    _legend(figure, [entry.run for entry in usable if entry.target in targets], palette)
    left = len(weight) - len(targets)
    caption = (
        "Each point is what a fit on the log up to that many tokens answers. A line that has become level, with a "
        "narrow band (the interval, for three runs at most), can be trusted. A filled mark on the dotted diagonal is "
        "the crossing itself: how near the line was to its height before shows how good the predictions were. An open "
        "mark is the present prediction of a target that still lies ahead."
    )
    if left:
        caption += f" {plural(left, 'target')} left out here."
    alt = f"Line charts of predicted tokens against tokens observed for {plural(len(targets), 'target')}"
    return Drawing("stability", "How predictions settled", caption, alt, figure)


def _panel(axes: Axes, target: float, entries: list[Windows], answers: Answers, palette: Palette) -> None:
    import numpy as np

    observed = np.concatenate([entry.window_tokens for entry in entries])
    low, high = float(observed[observed > 0].min()), float(observed.max()) * 1.12
    token_axis(axes.xaxis, low / 1.05, high, "tokens observed", most=5)
    answered = [cell.tokens for cell in answers.ranking(target) if cell.tokens]
    central = np.concatenate([entry.predicted[np.isfinite(entry.predicted)] for entry in entries])
    bottom, top = np.quantile(central, [0.03, 0.97])  # the first windows may answer anything
    bottom, top = min([bottom, *answered]) / 1.35, max([top, *answered]) * 1.35
    token_axis(axes.yaxis, float(bottom), float(min(top, 50 * max([high, *answered]))), "predicted tokens")
    axes.axline((low, low), (high, high), color=MUTED, linewidth=0.8, linestyle=":", zorder=0)
    banded = [run for run in palette.runs if run in {entry.run for entry in entries}][:MOST_BANDS]
    grey = [(entry.window_tokens, entry.predicted) for entry in entries if entry.run not in palette]
    lines(axes, grey, color=OTHERS, linewidth=0.6, alpha=0.5, zorder=2)
    for entry in entries:
        if entry.run not in palette:
            continue
        colour = palette.colour(entry.run)
        tokens, predicted = entry.window_tokens, entry.predicted
        if entry.run in banded:
            ends = np.where(np.isfinite(entry.high), entry.high, top * 10)
            axes.fill_between(tokens, entry.low, ends, where=np.isfinite(entry.low) & np.isfinite(predicted),
                              color=colour, alpha=0.12, linewidth=0)  # fmt: skip
        axes.plot(tokens, predicted, color=colour, linewidth=1.3)
        cell = answers.cells.get((entry.run, target))
        if cell and cell.answered:
            face = colour if cell.status == "reached" else PAPER
            place = cell.tokens if cell.status == "reached" else entry.window_tokens[-1]
            axes.plot([place or 0.0], [cell.tokens or 0.0], palette.marker(entry.run), color=colour,
                      markersize=5, markerfacecolor=face, zorder=4, clip_on=False)  # fmt: skip
    axes.set_title(f"{target_text(target)} nats per token")


def _legend(figure: object, runs: list[str], palette: Palette) -> None:
    from matplotlib.lines import Line2D

    named = sorted({run for run in runs if run in palette}, key=natural)
    handles = [Line2D([], [], color=palette.colour(run), marker=palette.marker(run), markersize=5) for run in named]
    labels = [shown_name(run) for run in named]
    others = len(set(runs)) - len(named)
    if others:
        handles.append(Line2D([], [], color=OTHERS, linewidth=0.8))
        labels.append(plural(others, "other run"))
    handles.append(Line2D([], [], color=INK, linewidth=0.8, linestyle=":"))
    labels.append("predicted = observed")
    legend(figure, handles, labels)  # type: ignore[arg-type]
