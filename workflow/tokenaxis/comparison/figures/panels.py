"""Small multiples: how many panels, where, and which targets get one."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tokenaxis.comparison.figures.style import new_figure

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


def panels(count: int, height: float = 2.5, share_x: bool = False) -> tuple[Figure, list[Axes]]:
    """A figure with `count` panels in rows of at most three, each `height` inches high; unused places are blank."""
    columns = min(count, 3) if count != 4 else 2
    rows = -(-count // columns)
    figure = new_figure(0.5 + height * rows)
    grid = figure.subplots(rows, columns, squeeze=False, sharex="all" if share_x else "none")
    places = list(grid.flat)
    for axes in places[count:]:
        axes.set_axis_off()
    return figure, places[:count]


def chosen(targets: list[float], weight: dict[float, int], most: int = 6) -> list[float]:
    """At most `most` targets, those with the greatest weight, equal weights: the lower loss; highest loss first."""
    best = sorted(targets, key=lambda target: (-weight.get(target, 0), target))[:most]
    return sorted(best, reverse=True)
