"""Intervals calibrated on the sweep's own runs: what earlier windows of the others predicted, and what came true.

Conformal prediction with runs as the unit: a run's predictions share its quirks, so each run's scores count together as
much as any other run's (pooled distribution functions, Dunn, Wasserman and Ramdas 2022, arXiv:1809.07441).
"""

from __future__ import annotations

import bisect
import itertools
import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from tokenaxis.comparison.answers import Answer, Answers
from tokenaxis.comparison.curves import Windows

if TYPE_CHECKING:
    import numpy as np

#: fewest other runs with scores; with R of them, no more than R / (R + 1) can be promised
FEWEST_RUNS = 8
#: horizons at which a window's prediction is scored, and how far in ln a window's own may lie from one
HORIZONS = (1.25, 1.5, 2.0, 3.0)
NEAR = 0.08


@dataclass(frozen=True)
class Calibrated:
    """A prediction's interval after calibration.

    Attributes:
        low, high: tokens; None where there is no calibration, `high` None as well where nothing bounds it.
        factor: half-widths in ln(tokens) are this many times what the law said; None without calibration.
        calibration: what was used, in words.
    """

    low: float | None
    high: float | None
    factor: float | None
    calibration: str


def with_intervals(answers: Answers, found: Mapping[tuple[str, float], Calibrated]) -> Answers:
    """The same answers with `found` beside the laws' own intervals."""
    cells = dict(answers.cells)
    for key, fair in found.items():
        cells[key] = replace(
            cells[key], low_calibrated=fair.low, high_calibrated=fair.high, calibration=fair.calibration
        )
    return replace(answers, cells=cells)


def calibrated(answers: Answers, scores: Mapping[str, list[float]]) -> dict[tuple[str, float], Calibrated]:
    """(run, target) -> the calibrated interval, for every prediction that has an interval.

    A run is calibrated on the others only.

    Args:
        scores: of the runs that have any, see `scores_of`.
    """
    pooled = Pooled(scores)
    factors: dict[tuple[str, float], float | None] = {}
    found: dict[tuple[str, float], Calibrated] = {}
    for key, cell in answers.cells.items():
        if cell.status != "predicted" or not cell.tokens or cell.low is None or cell.level is None:
            continue
        asked = (cell.run, cell.level)
        if asked not in factors:
            factors[asked] = pooled.factor(cell.level, without=cell.run)
        found[key] = _applied(cell, cell.tokens, cell.low, factors[asked], *pooled.counts(without=cell.run))
    return found


def scores_of(answers: Answers, windows: list[Windows]) -> dict[str, list[float]]:
    """Run -> |ln(predicted / true tokens)| over the half-width on the truth's side, at most one per target and horizon.

    Infinite where a window had no answer for a target that was reached, 0 where nothing bounds the truth's side.
    """
    scores: dict[str, list[float]] = {}
    for entry in windows:
        cell = answers.cells.get((entry.run, entry.target))
        if cell is None or cell.status != "reached" or not cell.tokens:
            continue
        for horizon in HORIZONS:
            row = _window_at(entry.window_tokens, cell.tokens / horizon)
            if row is not None:
                bounds = (float(values[row]) for values in (entry.predicted, entry.low, entry.high))
                scores.setdefault(entry.run, []).append(score(cell.tokens, *bounds))
    return scores


def score(truth: float, predicted: float, low: float, high: float) -> float:
    """Error in units of the interval's half-width on the truth's side; NaN stands for no prediction or no bound."""
    if math.isnan(predicted):
        return math.inf
    bound = high if truth > predicted else low
    if math.isnan(bound) or truth == predicted:
        return 0.0
    width = abs(math.log(bound / predicted))
    return abs(math.log(truth / predicted)) / width if width > 0.0 else math.inf


def factor_of(scores: Mapping[str, list[float]], level: float) -> float | None:
    """The factor on half-widths that would have held a share `level` of the truths; None with too few runs.

    The smallest score at which the mean over R runs of their distribution functions is level (R + 1) / R, or all.
    """
    return Pooled(scores).factor(level)


class Pooled:
    """The scores of all runs in one order, from which each run's own can be taken out again without a new sort."""

    def __init__(self, scores: Mapping[str, list[float]]):
        entries = sorted((value, run) for run, values in scores.items() for value in values)
        self.values = [value for value, _ in entries]
        self.sizes = {run: len(values) for run, values in scores.items() if values}
        self.places: dict[str, list[int]] = {}
        for place, (_, run) in enumerate(entries):
            self.places.setdefault(run, []).append(place)
        #: sum over runs of their distribution functions
        self.reached = list(itertools.accumulate(1.0 / self.sizes[run] for _, run in entries))

    def counts(self, without: str) -> tuple[int, int]:
        """(runs, scores), one run left out."""
        own = self.sizes.get(without, 0)
        return len(self.sizes) - (own > 0), len(self.values) - own

    def factor(self, level: float, without: str | None = None) -> float | None:
        """`factor_of` of all runs but one."""
        own = self.places.get(without or "", [])
        runs = len(self.sizes) - bool(own)
        if runs < FEWEST_RUNS:
            return None
        wanted = runs * (min(level * (runs + 1) / runs, 1.0) - 1e-9)
        passed = 0  # of the run's own scores: each is a step of 1 / len(own) that does not count
        while True:
            place = bisect.bisect_left(self.reached, wanted + passed / max(len(own), 1))
            before = bisect.bisect_right(own, place)
            if before <= passed:
                return self.values[min(place, self._last(own))]
            passed = before

    def _last(self, own: list[int]) -> int:
        """The last place that is not one of `own`."""
        last = len(self.values) - 1
        for place in reversed(own):
            if place != last:
                break
            last -= 1
        return last


def _applied(cell: Answer, tokens: float, low: float, factor: float | None, runs: int, count: int) -> Calibrated:
    if factor is None:
        return _not(f"{runs} other runs have reached a target that they could predict, {FEWEST_RUNS} are needed")
    what = f"{count} earlier predictions of {runs} other runs"
    if not math.isfinite(factor):
        return _not(f"too many of {what} had no answer")
    seen = tokens / cell.horizon if cell.horizon else 0.0  # an interval cannot begin inside the log
    upper = None if cell.high is None else factor * math.log(cell.high / tokens)
    return Calibrated(
        low=max(tokens * (low / tokens) ** factor, seen),
        high=None if upper is None or upper > 700.0 else tokens * math.exp(upper),  # exp overflows past 709
        factor=factor,
        calibration=f"half-widths times {factor:.2f}, on {what}",
    )


def _not(why: str) -> Calibrated:
    return Calibrated(None, None, None, f"not calibrated: {why}")


def _window_at(window_tokens: np.ndarray, seen: float) -> int | None:
    """The window that ends nearest to `seen` tokens, within NEAR of it in ln; None if there is none."""
    import numpy as np

    known = np.flatnonzero(window_tokens > 0)
    if not len(known):
        return None
    away = np.abs(np.log(window_tokens[known] / seen))
    nearest = int(away.argmin())
    return int(known[nearest]) if away[nearest] <= NEAR else None
