"""What trials come to: errors, coverage, verdicts; and intervals calibrated on other runs."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from tokenaxis.backtest.trials import Trial
from tokenaxis.laws.base import LEVELS


@dataclass(frozen=True)
class Summary:
    """Trials of one group: count, median and 90% quantile of |ln error|, share without a prediction, share within the
    tolerance, coverage by level, verdicts CONVERGED and how many of them were wrong."""

    trials: int
    median: float | None
    quantile: float | None
    without: float
    within: float
    coverage: dict[str, float]
    converged: int
    wrong: int


def summarise(trials: list[Trial], tolerance: float) -> Summary:
    """Counts of a non-empty group of trials."""
    errors = np.array([trial.error for trial in trials])
    coverage = {}
    for level in (f"{level:g}" for level in LEVELS):
        held = [trial.intervals[level] for trial in trials if trial.intervals]
        if held:
            coverage[level] = float(np.mean(held))
    sure = [trial for trial in trials if trial.verdict == "CONVERGED"]
    limit = math.log1p(tolerance)
    median, quantile = (float(np.quantile(errors, q, method="higher")) for q in (0.5, 0.9))
    return Summary(
        trials=len(trials),
        median=median if math.isfinite(median) else None,
        quantile=quantile if math.isfinite(quantile) else None,
        without=float(np.mean(~np.isfinite(errors))),
        within=float(np.mean(errors <= limit)),
        coverage=coverage,
        converged=len(sure),
        wrong=sum(trial.error > limit for trial in sure),
    )


#: fewest runs for a calibration on the sweep's own
FEWEST_RUNS = 8


def calibrate(trials: list[Trial], level: float, without: str | None = None) -> float | None:
    """Factor on a standard error that makes an interval cover at `level`, from the sweep's own runs; None if too few.

    Split conformal prediction (Vovk et al. 2005; Lei et al. 2018): the ceil((n + 1) level)-th smallest score
    |ln error| / standard error. `without` leaves a run out, for the intervals of that very run.
    """
    scores: dict[str, list[float]] = {}
    for trial in trials:
        if trial.run != without and trial.standard_error is not None:
            scores.setdefault(trial.run, []).append(trial.error / trial.standard_error)
    if len(scores) < FEWEST_RUNS:
        return None
    pooled = np.sort(np.concatenate(list(scores.values())))
    rank = math.ceil((len(pooled) + 1) * level) - 1
    return float(pooled[min(rank, len(pooled) - 1)])


def calibrated_coverage(trials: list[Trial], level: float) -> float | None:
    """Share of trials within calibrated intervals, each run calibrated on the others; None with too few runs."""
    held = []
    for trial in trials:
        if trial.standard_error is None:
            continue
        factor = calibrate(trials, level, without=trial.run)
        if factor is None:
            return None
        held.append(trial.error <= factor * trial.standard_error)
    return float(np.mean(held)) if held else None
