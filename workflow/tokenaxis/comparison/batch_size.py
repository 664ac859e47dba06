"""Runs as points of batch size, steps and tokens at each target, and the trade-off that they follow."""

from __future__ import annotations

import math
from collections.abc import Collection
from dataclasses import dataclass, replace
from statistics import NormalDist

from tokenaxis.comparison.answers import Answer, Answers
from tokenaxis.comparison.critical_batch import CriticalBatch, fit
from tokenaxis.comparison.model import RunResult, Sweep
from tokenaxis.comparison.tables import batch_stages


@dataclass(frozen=True)
class BatchPoint:
    """One run at one target: `batch` in tokens per step (the mean over the steps when it changed on the way)."""

    cell: Answer
    batch: float
    fixed: bool


@dataclass(frozen=True)
class TradeOff:
    """The runs at one target, ascending in batch; `used` are those that the fit rests on."""

    target: float
    points: tuple[BatchPoint, ...]
    used: tuple[BatchPoint, ...]
    critical: CriticalBatch

    def only(self, runs: Collection[str]) -> TradeOff:
        """The same with the points of `runs`, and those that the fit rests on."""
        used = {id(point) for point in self.used}
        points = tuple(point for point in self.points if id(point) in used or point.cell.run in runs)
        return replace(self, points=points)


def trade_offs(sweep: Sweep, answers: Answers, most_horizon: float) -> list[TradeOff]:
    """A trade-off per target that runs with at least two batch sizes answer, highest loss first.

    The fit takes, at each batch size, the run that needs the fewest tokens (as with a learning rate tuned per batch),
    and only runs of one model size, one loss and one kind of schedule: those with most batch sizes.
    Predictions farther than `most_horizon` times the tokens seen are no points.
    # ASSUME: such runs differ in nothing else that matters (data, optimizer).
    """
    by_id = {run.id: run for run in sweep.runs}
    found = []
    for target in answers.targets:
        points = [
            point
            for cell in answers.ranking(target)
            if cell.status == "reached" or (cell.horizon or 1.0) <= most_horizon
            if (point := _point(cell, by_id[cell.run])) is not None
        ]
        if len({point.batch for point in points}) < 2:
            continue
        points.sort(key=lambda point: (point.batch, point.cell.tokens or 0, point.cell.run))
        used = _comparable(points, by_id)
        found.append(TradeOff(target, tuple(points), tuple(used), _fitted(used, answers.level)))
    return found


def _point(cell: Answer, run: RunResult) -> BatchPoint | None:
    stages = batch_stages(run)
    if not stages or not cell.tokens:
        return None
    passed = [stage for stage in stages if (stage.get("first_tokens") or 0.0) < cell.tokens] or stages[:1]
    batches = {float(stage["tokens_per_step"]) for stage in passed}
    if len(batches) == 1:
        return BatchPoint(cell, batches.pop(), fixed=True)
    return BatchPoint(cell, cell.tokens / cell.step, fixed=False) if cell.step else None


def _comparable(points: list[BatchPoint], by_id: dict[str, RunResult]) -> list[BatchPoint]:
    groups: dict[str, dict[float, BatchPoint]] = {}
    for point in points:
        if point.fixed:
            group = groups.setdefault(_kind(point.cell, by_id[point.cell.run]), {})
            group.setdefault(point.batch, point)  # points of one batch ascend in tokens
    best = max(groups.items(), key=lambda item: (len(item[1]), item[0]), default=("", {}))[1]
    return sorted(best.values(), key=lambda point: point.batch)


def _kind(cell: Answer, run: RunResult) -> str:
    """What runs must have in common: the loss, the model's size, and whether the learning rate decays."""
    size = ((run.conventions.get("facts") or {}).get("n_params") or {}).get("value")
    return f"{cell.loss} {size} {(run.axis_meta.get('lr') or {}).get('constant_after_warmup')}"


def _fitted(used: list[BatchPoint], level: float) -> CriticalBatch:
    import numpy as np

    deviations = [_sd(point.cell) for point in used]
    known = all(value is not None for value in deviations)
    return fit(
        np.array([point.batch for point in used]),
        np.array([point.cell.tokens for point in used], dtype=np.float64),
        np.array(deviations, dtype=np.float64) if known and used else None,
        level,
    )


def _sd(cell: Answer) -> float | None:
    """Standard deviation of ln(tokens) that a two-sided interval stands for; None where there is none."""
    if cell.low is None or cell.high is None or cell.level is None or not cell.high > cell.low > 0:
        return None
    return math.log(cell.high / cell.low) / (2 * NormalDist().inv_cdf((1 + cell.level) / 2))
