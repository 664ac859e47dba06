"""The scaling law: how well it fits, lines of equal loss, and loss against size at equal compute."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tokenaxis.comparison.figures.style import (
    INK,
    MARKERS,
    MUTED,
    SERIES,
    Drawing,
    legend,
    new_figure,
    token_axis,
)
from tokenaxis.comparison.quantities import flop, short
from tokenaxis.comparison.scaling import FLOP_PER_PARAMETER_TOKEN, Scaling, ScalingPoint
from tokenaxis.comparison.scaling_law import ScalingLaw

if TYPE_CHECKING:
    from matplotlib.axes import Axes

#: lines of equal loss, and of equal compute
MOST_LINES = 6
#: sizes that have a colour of their own; more sizes share one
MOST_SIZES = len(SERIES)


def draw(scaling: Scaling) -> Drawing | None:
    """The figure, or None without a law."""
    if scaling.fit is None:
        return None
    figure = new_figure(3.9)
    left, middle, right = figure.subplots(1, 3)
    law, used = scaling.fit.law, scaling.used
    sizes = sorted({point.n_params for point in used if point.n_params})
    colours = {size: SERIES[index] if len(sizes) <= MOST_SIZES else SERIES[0] for index, size in enumerate(sizes)}
    _fit_panel(left, law, used, colours)
    _iso_loss_panel(middle, law, scaling, colours)
    _iso_flop_panel(right, law, scaling)
    _legend(figure, colours)
    caption = (
        f"L(N, D) = E + A/N^α + B/D^β, fitted to the {len(used)} runs' last smoothed losses (Hoffmann et al. 2022). "
        "Left: the runs and the law, a colour per size. Middle: lines of equal loss (nats per token); the dashed line "
        "is the best split of compute, dotted lines are equal compute, 6·N·D. Right: loss against size at equal "
        "compute; a mark is the best size, its bar the interval; the thin lines lie beyond the sweep's largest run."
    )
    alt = "Three charts of a scaling law: runs and fit, equal loss, and loss against size at equal compute"
    return Drawing("scaling", "Scaling in size and tokens", caption, alt, figure)


def _fit_panel(axes: Axes, law: ScalingLaw, used: list[ScalingPoint], colours: dict[float, str]) -> None:
    import numpy as np

    tokens = [point.tokens for point in used if point.tokens]
    across = np.geomspace(min(tokens) / 1.5, max(tokens) * 1.5, 60)
    for index, (size, colour) in enumerate(colours.items()):
        if len(colours) <= MOST_SIZES:
            axes.plot(across, law.loss(size, across), color=colour, linewidth=1.1)
        own = [point for point in used if point.n_params == size]
        axes.plot([point.tokens or 0.0 for point in own], [point.loss or 0.0 for point in own],
                  MARKERS[index % len(MARKERS)], color=colour, markersize=4, zorder=3)  # fmt: skip
    token_axis(axes.xaxis, across[0], across[-1], "tokens D (logarithmic)", most=4)
    axes.set_ylabel("loss (nats per token)")
    axes.set_title("Runs and law")


def _iso_loss_panel(axes: Axes, law: ScalingLaw, scaling: Scaling, colours: dict[float, str]) -> None:
    import numpy as np

    used = scaling.used
    sizes, tokens = [point.n_params or 1.0 for point in used], [point.tokens or 1.0 for point in used]
    size_ends, token_ends = (min(sizes) / 2, max(sizes) * 2), (min(tokens) / 2, max(tokens) * 2)
    across = np.geomspace(*size_ends, 80)
    losses = [point.loss or 0.0 for point in used]
    for level in np.linspace(min(losses), max(losses), MOST_LINES):
        along = law.tokens_to(float(level), across)
        axes.plot(across, along, color=MUTED, linewidth=0.9)
        inside = np.flatnonzero((along > token_ends[0] * 1.1) & (along < token_ends[1] / 1.2))
        if len(inside):
            place = inside[len(inside) // 6]
            axes.text(across[place], along[place], f"{level:.2f}", fontsize=7, color=INK, va="bottom", clip_on=True)
    for budget in scaling.budgets:
        axes.plot(across, budget.flop / FLOP_PER_PARAMETER_TOKEN / across, ":", color=MUTED, linewidth=0.7)
    amounts = np.geomspace(scaling.budgets[0].flop / 30, scaling.budgets[-1].flop * 30, 60)
    best = np.array([law.optimum(float(amount), FLOP_PER_PARAMETER_TOKEN) for amount in amounts])
    axes.plot(best[:, 0], best[:, 1], "--", color=INK, linewidth=1.1)
    for index, (size, colour) in enumerate(colours.items()):
        own = [point for point in used if point.n_params == size]
        axes.plot([size] * len(own), [point.tokens or 0.0 for point in own], MARKERS[index % len(MARKERS)],
                  color=colour, markersize=4, zorder=3)  # fmt: skip
    token_axis(axes.xaxis, *size_ends, "parameters N (logarithmic)", most=3)
    token_axis(axes.yaxis, *token_ends, "tokens D (logarithmic)", most=6)
    axes.set_title("Equal loss")


def _iso_flop_panel(axes: Axes, law: ScalingLaw, scaling: Scaling) -> None:
    import numpy as np

    best = [budget.n_params[0] for budget in scaling.budgets]
    ends = min(best) / 6, max(best) * 6
    across = np.geomspace(*ends, 120)
    tops = []
    for index, budget in enumerate(scaling.budgets):
        colour = SERIES[(index + 5) % len(SERIES)]
        along = law.loss(across, budget.flop / FLOP_PER_PARAMETER_TOKEN / across)
        axes.plot(across, along, color=colour, linewidth=1.3 if budget.beyond <= 1 else 0.7)
        size, low, high = budget.n_params
        axes.plot([max(low, ends[0]), min(high, ends[1])], [budget.loss[0]] * 2, color=colour, linewidth=3, alpha=0.35)
        axes.plot([size], [budget.loss[0]], "o", color=colour, markersize=4)
        axes.annotate(f"{flop(budget.flop)} FLOP", (size, budget.loss[0]), fontsize=6.5, color=INK, xytext=(0, -9),
                      textcoords="offset points", ha="center", annotation_clip=True)  # fmt: skip
        tops.append(budget.loss[0])
    room = max(max(tops) - min(tops), 0.05)
    axes.set_ylim(min(tops) - 0.25 * room, max(tops) + 0.6 * room)
    token_axis(axes.xaxis, *ends, "parameters N (logarithmic)", most=4)
    axes.set_ylabel("loss (nats per token)")
    axes.set_title("Equal compute")


def _legend(figure: object, colours: dict[float, str]) -> None:
    from matplotlib.lines import Line2D

    shown = list(colours.items()) if len(colours) <= MOST_SIZES else []
    handles = [
        Line2D([], [], color=colour, marker=MARKERS[index % len(MARKERS)], markersize=4, linewidth=1.1)
        for index, (_, colour) in enumerate(shown)
    ]
    handles.append(Line2D([], [], color=INK, linestyle="--", linewidth=1.1))
    handles.append(Line2D([], [], color=MUTED, linestyle=":", linewidth=0.9))
    labels = [f"{short(size)} parameters" for size, _ in shown] + ["best split", "equal compute"]
    legend(figure, handles, labels)  # type: ignore[arg-type]
