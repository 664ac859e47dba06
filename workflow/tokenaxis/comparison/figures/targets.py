"""Tokens to each target, run by run, with intervals: the overview."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

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


@dataclass(frozen=True)
class Shown:
    """The answers of the figure: (target, the first of its ranking), `cut` slower ones left out; `mixed` losses."""

    groups: list[tuple[float, list[Answer]]]
    cut: int
    mixed: bool


def shown(answers: Answers) -> Shown:
    """The answers that there is room for."""
    groups = [(target, ranking) for target in answers.targets if (ranking := answers.ranking(target))]
    answered = sum(len(ranking) for _, ranking in groups)
    each = answered if answered <= MOST_ROWS else max(3, MOST_ROWS // len(groups))
    cut = sum(max(0, len(ranking) - each) for _, ranking in groups)
    return Shown([(target, ranking[:each]) for target, ranking in groups], cut, answers.mixed)


def draw(found: Shown, palette: Palette) -> Drawing | None:
    """The figure, or None when no run has an answer."""
    groups = found.groups
    if not groups:
        return None
    rows = sum(len(ranking) + 1 for _, ranking in groups)
    figure = new_figure(max(2.2, 0.9 + 0.19 * rows))
    axes = figure.subplots()
    low, high = _limits([cell for _, ranking in groups for cell in ranking])
    token_axis(axes.xaxis, low, high, "tokens to the target (logarithmic)")
    _rows(axes, groups, palette, (low, high), found.mixed)
    caption = "Fewest tokens first. Filled: reached inside the log; open: predicted; the line is the interval, an arrow"
    caption += " where it goes on."
    if found.mixed:
        caption += " In brackets: the loss that the target refers to; only runs with the same one can be compared."
    if found.cut:
        caption += f" {plural(found.cut, 'slower answer')} left out here; all are in the table."
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
    placed: list[tuple[int, Answer]] = []
    for target, ranking in groups:
        headings.add(len(labels))
        axes.axhline(len(labels), color=MUTED, linewidth=0.5)
        labels.append(f"{target_text(target)} nats")
        for cell in ranking:
            placed.append((len(labels), cell))
            which = f" ({(cell.loss or '').removesuffix('_loss')})" if mixed else ""
            labels.append(shown_name(cell.run) + which)
    _intervals(axes, placed, palette, *limits)
    _marks(axes, placed, palette, limits[1])
    axes.set_yticks(range(len(labels)), labels)
    for index, text in enumerate(axes.get_yticklabels()):
        text.set_fontweight("bold" if index in headings else "normal")
        text.set_fontsize(8.5 if index in headings else 8)
    axes.set_ylim(len(labels) - 0.4, -0.7)
    axes.tick_params(axis="y", length=0)
    axes.grid(visible=False, axis="y")


def _intervals(axes: Axes, placed: list[tuple[int, Answer]], palette: Palette, low: float, high: float) -> None:
    """Bars of all rows, and arrows where one goes on."""
    from matplotlib.collections import LineCollection

    shown = [(row, cell) for row, cell in placed if cell.low is not None and cell.low < high]
    ends = [cell.high if cell.high is not None else high * 2 for _, cell in shown]
    bars = [[(max(cell.low or low, low), row), (min(end, high), row)]
            for (row, cell), end in zip(shown, ends, strict=True)]  # fmt: skip
    colours = [palette.colour(cell.run) for _, cell in shown]
    axes.add_collection(LineCollection(bars, colors=colours, linewidth=2, alpha=0.55, capstyle="butt", zorder=2), False)
    arrows = _by_look((row, high, palette.colour(cell.run)) for (row, cell), end in zip(shown, ends, strict=True)
                      if end > high)  # fmt: skip
    for (colour,), rows, tokens in arrows:
        axes.plot(tokens, rows, ">", color=colour, markersize=4, clip_on=False)


def _marks(axes: Axes, placed: list[tuple[int, Answer]], palette: Palette, high: float) -> None:
    """A mark per row, those of one look together; arrows for what lies beyond the right edge."""
    near = [(row, cell) for row, cell in placed if (cell.tokens or 0.0) <= high]
    found = _by_look((row, cell.tokens or 0.0, palette.colour(cell.run), palette.marker(cell.run), cell.status)
                     for row, cell in near)  # fmt: skip
    for (colour, marker, status), rows, tokens in found:
        axes.plot(tokens, rows, marker, color=colour, markersize=5, markeredgewidth=1.3,
                  markerfacecolor=colour if status == "reached" else PAPER, zorder=3)  # fmt: skip
    far = _by_look((row, high, palette.colour(cell.run)) for row, cell in placed if (cell.tokens or 0.0) > high)
    for (colour,), rows, tokens in far:
        axes.plot(tokens, rows, ">", color=colour, markersize=5, markerfacecolor=PAPER, clip_on=False)


def _by_look(marks: Iterable[tuple[Any, ...]]) -> list[tuple[tuple[str, ...], list[int], list[float]]]:
    """(look, rows, tokens) of marks (row, tokens, *look) that look the same, in the order of their first."""
    groups: dict[tuple[str, ...], tuple[list[int], list[float]]] = {}
    for row, tokens, *look in marks:
        rows, places = groups.setdefault(tuple(look), ([], []))
        rows.append(row)
        places.append(tokens)
    return [(look, *places) for look, places in groups.items()]
