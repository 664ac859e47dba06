"""Tokens and steps to a target against the batch size, with the fitted trade-off."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from tokenaxis.comparison.batch_size import BatchPoint, TradeOff
from tokenaxis.comparison.figures.panels import chosen
from tokenaxis.comparison.figures.style import (
    INK,
    MARKERS,
    MUTED,
    PAPER,
    SERIES,
    Drawing,
    legend,
    new_figure,
    token_axis,
)
from tokenaxis.comparison.quantities import target as target_text

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def draw(found: list[TradeOff]) -> Drawing | None:
    """The figure, or None when fewer than two batch sizes answer any target."""
    if not found:
        return None
    weight = {entry.target: len(entry.used) for entry in found}
    shown = chosen([entry.target for entry in found], weight, most=5)
    entries = [entry for entry in found if entry.target in shown]
    figure = new_figure(4.1)
    left, right = figure.subplots(1, 2)
    for index, entry in enumerate(entries):
        _tokens_panel(left, entry, index)
        _steps_panel(right, entry, index)
    points = [point for entry in entries for point in entry.points]
    batches, tokens = [point.batch for point in points], [point.cell.tokens or 1.0 for point in points]
    steps = [point.cell.tokens / point.batch for point in points if point.cell.tokens]
    token_axis(left.xaxis, min(batches) / 1.3, max(batches) * 1.3, "batch size (tokens per step)")
    token_axis(left.yaxis, min(tokens) / 1.2, max(tokens) * 1.2, "tokens to the target")
    token_axis(right.xaxis, min(steps) / 1.3, max(steps) * 1.3, "steps to the target")
    token_axis(right.yaxis, min(tokens) / 1.2, max(tokens) * 1.2, "tokens to the target")
    left.set_title("What a larger batch costs")
    right.set_title("Tokens against steps")
    _legend(figure, entries)
    text = (
        "Each point is a run at one target. Filled: the batch was fixed; faint: left out of the fit, which takes the "
        "best run at each batch size, of one model size, loss and kind of schedule; open: the batch changed on the way "
        "(placed at its mean). Curves: E = E_min + S_min·B (McCandlish et al. 2018), where three batch sizes or more "
        "allow it; the dotted line is the critical batch size E_min/S_min."
    )
    alt = "Two log-log charts: tokens to each target against batch size, and tokens against steps"
    return Drawing("batch_size", "Batch size: tokens against steps", text, alt, figure)


def _points(axes: Axes, entry: TradeOff, index: int, across: Callable[[BatchPoint], float]) -> None:
    """Marks at (`across`, tokens): filled where the batch was fixed, faint where the fit leaves the run out."""
    colour = SERIES[index % len(SERIES)]
    used = set(entry.used)
    for fixed, fitted in ((True, True), (True, False), (False, False)):
        points = [point for point in entry.points if point.fixed == fixed and (point in used) == fitted]
        if points:
            axes.plot([across(point) for point in points], [point.cell.tokens or 0.0 for point in points],
                      MARKERS[index], color=colour, markersize=5, markerfacecolor=colour if fixed else PAPER,
                      alpha=1.0 if fitted or not fixed else 0.35, zorder=3 if fitted else 2)  # fmt: skip


def _tokens_panel(axes: Axes, entry: TradeOff, index: int) -> None:
    import numpy as np

    colour = SERIES[index % len(SERIES)]
    bars = [(point.batch, point.cell.low, point.cell.high) for point in entry.points
            if point.cell.low is not None and point.cell.high is not None]  # fmt: skip
    if bars:  # one line with gaps: quick to draw and small as svg
        across = np.repeat([bar[0] for bar in bars], 3)
        along = np.array([[low, high, np.nan] for _, low, high in bars]).ravel()
        axes.plot(across, along, color=colour, alpha=0.35, linewidth=2)
    _points(axes, entry, index, lambda point: point.batch)
    critical = entry.critical
    if critical.tokens_min is not None and critical.steps_min is not None and critical.batch is not None:
        batch = np.geomspace(min(p.batch for p in entry.points) / 1.3, max(p.batch for p in entry.points) * 1.3, 60)
        axes.plot(batch, critical.tokens_min + critical.steps_min * batch, color=colour, linewidth=1.1)
        if batch[0] < critical.batch < batch[-1]:
            axes.axvline(critical.batch, color=colour, linestyle=":", linewidth=1)


def _steps_panel(axes: Axes, entry: TradeOff, index: int) -> None:
    import numpy as np

    _points(axes, entry, index, lambda point: (point.cell.tokens or 0.0) / point.batch)
    critical = entry.critical
    if critical.tokens_min is not None and critical.steps_min is not None:
        batch = np.geomspace(min(p.batch for p in entry.points) / 2, max(p.batch for p in entry.points) * 2, 80)
        tokens = critical.tokens_min + critical.steps_min * batch
        axes.plot(tokens / batch, tokens, color=SERIES[index % len(SERIES)], linewidth=1.1)


def _legend(figure: object, entries: list[TradeOff]) -> None:
    from matplotlib.lines import Line2D

    handles = [
        Line2D([], [], color=SERIES[index % len(SERIES)], marker=MARKERS[index], markersize=5)
        for index in range(len(entries))
    ]
    labels = [f"{target_text(entry.target)} nats" for entry in entries]
    if any(not point.fixed for entry in entries for point in entry.points):
        handles.append(Line2D([], [], color=INK, marker="o", linestyle="", markerfacecolor=PAPER, markersize=5))
        labels.append("batch changed")
    if any(entry.critical.batch for entry in entries):
        handles.append(Line2D([], [], color=MUTED, linestyle=":", linewidth=1))
        labels.append("critical batch")
    legend(figure, handles, labels)  # type: ignore[arg-type]
