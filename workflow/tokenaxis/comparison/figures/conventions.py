"""FLOP to one target under every convention: how much of a difference is the way of counting."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from tokenaxis.comparison.figures.style import GRID, MARKERS, SERIES, Drawing, legend, log_ticks, new_figure, shown_name
from tokenaxis.comparison.quantities import flop, plural
from tokenaxis.comparison.quantities import target as target_text
from tokenaxis.comparison.tables import Table, flops_field

if TYPE_CHECKING:
    from matplotlib.figure import Figure

#: runs in the figure; the rest is in the table
MOST_ROWS = 40
#: and those that need more than this many times the least
LAST_SHOWN = 100.0


@dataclass(frozen=True)
class Shown:
    """FLOP by run and convention of the runs of the figure, fewest first; `more` runs are in the table alone."""

    runs: dict[str, dict[str, float]]
    what: str
    more: int


def shown(table: Table, target: float | None) -> Shown:
    """FLOP to `target` of the runs that need least; FLOP per token where no run has any to it."""
    to_target = flops_field(target) if target is not None else ""
    key = to_target if any(row.get(to_target) for row in table.rows) else "flops_per_token"
    runs: dict[str, dict[str, float]] = {}
    for row in table.rows:
        if row.get(key):
            runs.setdefault(row["run"], {})[row["convention"]] = row[key]
    order = sorted(runs, key=lambda run: (min(runs[run].values()), run))[:MOST_ROWS]
    order = [run for run in order if min(runs[run].values()) <= LAST_SHOWN * min(runs[order[0]].values())]
    what = "FLOP per token" if key == "flops_per_token" else f"FLOP until {target_text(target or 0)} nats per token"
    return Shown({run: runs[run] for run in order}, what, len(runs) - len(order))


def draw(found: Shown) -> Drawing | None:
    """Dots per convention, a row per run, fewest FLOP first."""
    if not found.runs:
        return None
    what = found.what
    names = sorted({name for values in found.runs.values() for name in values})
    figure = _drawn(found.runs, list(found.runs), names, what)
    caption = f"{what} under each convention; the bar is the range over conventions. The run that needs least is first."
    if found.more:
        caption += f" The table has {plural(found.more, 'more run')}."
    return Drawing(
        "conventions", "Compute under each convention", caption, f"Dot plot of {what}, one row a run", figure
    )


def _drawn(runs: dict[str, dict[str, float]], order: list[str], names: list[str], what: str) -> Figure:
    from matplotlib.lines import Line2D
    from matplotlib.ticker import FixedLocator, FuncFormatter, NullLocator

    figure = new_figure(max(1.8, 0.9 + 0.22 * len(order), 0.4 + 0.19 * len(names)))
    axes = figure.subplots()
    values = [value for run in order for value in runs[run].values()]
    low, high = min(values) / 1.08, max(values) * 1.08
    axes.set_xscale("log")
    axes.set_xlim(low, high)
    axes.xaxis.set_major_locator(FixedLocator(log_ticks(low, high, most=6)))
    axes.xaxis.set_minor_locator(NullLocator())
    axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: flop(value).replace(".00e", "e").replace("0e", "e")))
    for row, run in enumerate(order):
        found = runs[run]
        axes.plot([min(found.values()), max(found.values())], [row, row], color=GRID, linewidth=7, zorder=1)
        for name, value in found.items():
            colour, marker = _look(names.index(name))
            axes.plot([value], [row], marker, color=colour, markersize=5, zorder=2)
    axes.set_yticks(range(len(order)), [shown_name(run) for run in order])
    axes.set_ylim(len(order) - 0.4, -0.6)
    axes.tick_params(axis="y", length=0)
    axes.grid(visible=False, axis="y")
    axes.set_xlabel(f"{what} (logarithmic)")
    looks = [_look(index) for index in range(len(names))]
    handles = [Line2D([], [], color=colour, marker=marker, linestyle="", markersize=5) for colour, marker in looks]
    legend(figure, handles, names)
    return figure


def _look(index: int) -> tuple[str, str]:
    """(colour, marker), different for every index below a hundred."""
    return SERIES[index % len(SERIES)], MARKERS[(index + 3 * (index // len(SERIES))) % len(MARKERS)]
