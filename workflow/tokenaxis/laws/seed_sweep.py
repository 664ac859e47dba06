"""The reference's own stability sweep: refits on growing windows, and a verdict from the last three."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from tokenaxis.laws.seed import SeedAnswer, fit_smoothed, solve


@dataclass(frozen=True)
class SeedWindow:
    """One window: the rows from the fit start to `max_step`."""

    max_step: int
    tokens: float
    step: float | None
    answer: SeedAnswer


@dataclass(frozen=True)
class SeedVerdict:
    """The verdict in the artifact's words, and in the reference's."""

    verdict: str
    text: str


def windows(
    steps: np.ndarray,
    tokens: np.ndarray,
    smoothed: np.ndarray,
    fit_start: int,
    targets: list[float],
    sweep_step: int,
    min_window: int,
    min_rows: int,
    step_of: Callable[[float], float],
) -> dict[float, list[SeedWindow]]:
    """target -> its windows. One curve_fit per window serves all targets.

    Windows end at fit_start + min_window, then every sweep_step, and at the last step; those with fewer than `min_rows`
    rows are passed over.
    """
    last = int(np.nanmax(steps))
    ends = list(range(fit_start + min_window, last, sweep_step))
    if not ends or ends[-1] != last:
        ends.append(last)
    out: dict[float, list[SeedWindow]] = {target: [] for target in targets}
    for end in ends:
        mask = (steps >= fit_start) & (steps <= end)
        if mask.sum() < min_rows:
            continue
        seen = tokens[mask]
        found = fit_smoothed(seen, smoothed[mask])
        for target in targets:
            answer = solve(found, target)
            step = None if answer.tokens is None else step_of(answer.tokens)
            out[target].append(SeedWindow(end, float(seen[-1]), step, answer))
    return out


def verdict(swept: list[SeedWindow], tolerance: float) -> SeedVerdict:
    """CONVERGED when the last two changes between valid windows are both within the tolerance."""
    valid = [window.answer.tokens for window in swept if window.answer.tokens is not None]
    if len(valid) < 3:
        text = "NOT ENOUGH DATA to judge convergence yet (need >=3 valid windows)"
        return SeedVerdict("NOT ENOUGH DATA", text)
    before, middle, last = valid[-3:]
    changes = [abs(middle - before) / before, abs(last - middle) / middle]
    shown = f"last two window-to-window changes ({changes[0]:.1%}, {changes[1]:.1%})"
    if all(change <= tolerance for change in changes):
        return SeedVerdict("CONVERGED", f"CONVERGED -- {shown} both within tolerance {tolerance:.0%}")
    text = f"NOT YET CONVERGED -- {shown} exceed tolerance {tolerance:.0%}; keep training and re-check"
    return SeedVerdict("NOT YET CONVERGED", text)
