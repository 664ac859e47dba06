"""Tokens to each target, run by run, with intervals: the overview."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tokenaxis.comparison.answers import Answer, Answers
from tokenaxis.comparison.figures.style import MUTED, PAPER, Drawing, Palette, new_figure, shown_name, token_axis
from tokenaxis.comparison.quantities import plural
from tokenaxis.comparison.quantities import target as target_text

if TYPE_CHECKING:
    from matplotlib.axes import Axes

#: rows of one figure; a longer list is cut per target to the runs that are first
MOST_ROWS = 72
#: intervals and predictions farther than this many times the largest number of tokens of a reached target are cut
LAST_SHOWN = 30.0


def draw(answers: Answers, palette: Palette) -> Drawing | None:
    """The figure, or None when no run has an answer."""
    groups = [(target, ranking) for target in answers.targets if (ranking := answers.ranking(target))]
    if not groups:
        return None
    answered = sum(len(ranking) for _, ranking in groups)
    each = answered if answered <= MOST_ROWS else max(3, MOST_ROWS // len(groups))
    cut = sum(max(0, len(ranking) - each) for _, ranking in groups)
    groups = [(target, ranking[:each]) for target, ranking in groups]
    rows = sum(len(ranking) + 1 for _, ranking in groups)
    figure = new_figure(max(2.2, 0.9 + 0.19 * rows))
    axes = figure.subplots()
    low, high = _limits([cell for _, ranking in groups for cell in ranking])
    token_axis(axes.xaxis, low, high, "tokens to the target (logarithmic)")
    _rows(axes, groups, palette, (low, high), answers.mixed)
    caption = "Fewest tokens first. Filled: reached inside the log; open: predicted; the line is the interval, an arrow"
    caption += " where it goes on."
    if answers.mixed:
        caption += " In brackets: the loss that the target refers to; only runs with the same one can be compared."
    if cut:
        caption += f" {plural(cut, 'slower answer')} left out here; all are in the table."
    alt = f"Dot plot of tokens to each of {plural(len(groups), 'target')} with intervals, one row a run"
    return Drawing("targets", "Tokens to each target", caption, alt, figure)


def _limits(cells: list[Answer]) -> tuple[float, float]:
    tokens = [cell.tokens for cell in cells if cell.tokens]
    lows = [cell.low for cell in cells if cell.low]
    reached = [cell.tokens for cell in cells if cell.tokens and cell.status == "reached"]
    limit = LAST_SHOWN * max(reached or [min(tokens)])
    highs = [end for cell in cells for end in (cell.tokens, cell.high) if end and end <= limit]
    return min(tokens + lows) / 1.15, max(highs, default=max(tokens)) * 1.25


def _rows(
    axes: Axes, groups: list[tuple[float, list[Answer]]], palette: Palette, limits: tuple[float, float], mixed: bool
) -> None:
    labels: list[str] = []
    headings: set[int] = set()
    for target, ranking in groups:
        headings.add(len(labels))
        axes.axhline(len(labels), color=MUTED, linewidth=0.5)
        labels.append(f"{target_text(target)} nats")
        for cell in ranking:
            _cell(axes, cell, len(labels), palette, *limits)
            which = f" ({(cell.loss or '').removesuffix('_loss')})" if mixed else ""
            labels.append(shown_name(cell.run) + which)
    axes.set_yticks(range(len(labels)), labels)
    for index, text in enumerate(axes.get_yticklabels()):
        text.set_fontweight("bold" if index in headings else "normal")
        text.set_fontsize(8.5 if index in headings else 8)
    axes.set_ylim(len(labels) - 0.4, -0.7)
    axes.tick_params(axis="y", length=0)
    axes.grid(visible=False, axis="y")


def _cell(axes: Axes, cell: Answer, row: int, palette: Palette, low: float, high: float) -> None:
    assert cell.tokens is not None
    colour = palette.colour(cell.run)
    if cell.low is not None and cell.low < high:
        end = cell.high if cell.high is not None else high * 2
        axes.plot([max(cell.low, low), min(end, high)], [row, row], color=colour, linewidth=2, alpha=0.55,
                  solid_capstyle="butt")  # fmt: skip
        if end > high:
            axes.plot([high], [row], ">", color=colour, markersize=4, clip_on=False)
    if cell.tokens <= high:
        axes.plot([cell.tokens], [row], palette.marker(cell.run), color=colour, markersize=5, markeredgewidth=1.3,
                  markerfacecolor=colour if cell.status == "reached" else PAPER, zorder=3)  # fmt: skip
    else:
        axes.plot([high], [row], ">", color=colour, markersize=5, markerfacecolor=PAPER, clip_on=False)
