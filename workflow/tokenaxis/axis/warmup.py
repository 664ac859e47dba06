"""Where the learning-rate warm-up ends, as far as the log shows it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

#: past warm-up = within 1 % of the highest rate (the reference's rule, shared by most fits in the literature)
_OF_PEAK = 0.99
#: a log that starts within this many logging intervals of step 0 shows the beginning of the run
_INTERVALS_TO_FIRST_ROW = 2.0
#: fewest rows that can show a climb
_MIN_ROWS = 3
#: fewest rises of the rate that make a climb (a rate that is raised once or twice by hand is none)
_MIN_RISES = 4


@dataclass(frozen=True)
class Warmup:
    """`end_step`: first logged step past the warm-up, None where the log does not show it (`reason`).

    `inside`: the learning rate still climbs at the last row.
    """

    end_step: int | None
    inside: bool
    reason: str


@dataclass(frozen=True)
class RateSummary:
    """Highest and last learning rate; whether it stays within 1 % of its level from the end of warm-up on."""

    peak: float
    last: float
    constant_after_warmup: bool


def find_warmup(step: np.ndarray, lr: np.ndarray | None, stage_starts: np.ndarray) -> Warmup:
    """End of warm-up: the first row with lr >= .99 max lr, the maximum taken over the first batch stage, because a
    rate that is scaled with the batch has its overall maximum long after the warm-up. A stage that ends while the rate
    still climbs did not see the end of the warm-up: then the next stage is taken in as well.

    Args:
        step: int64 (rows,), ascending.
        lr: float64 (rows,), NaN where a row has none; None without a column.
        stage_starts: int64 (stages,), first row of each batch stage.
    """
    if lr is None:
        return Warmup(None, False, "the log has no learning rate (lr) column")
    known = ~np.isnan(lr)
    if not known.all():
        rows = np.flatnonzero(known)
        step, lr = step[rows], lr[rows]
        stage_starts = np.unique(np.searchsorted(rows, stage_starts))
    if not len(lr) or not lr.max() > 0:
        return Warmup(None, False, "the learning rate is nowhere positive")
    if len(lr) < _MIN_ROWS:
        return Warmup(None, False, "too few rows hold a learning rate (lr)")
    end, climbing = _end_of_first_climb(lr, stage_starts)
    if climbing:
        return Warmup(None, True, f"the learning rate still climbs at the last row (step {step[-1]}): inside warm-up")
    row = int(np.argmax(lr[:end] >= _OF_PEAK * lr[:end].max()))
    if row > 0:
        return Warmup(int(step[row]), False, "first row within 1 % of the highest learning rate of the first climb")
    interval = float(np.median(np.diff(step[:100]))) if len(step) > 1 else 1.0
    if step[0] > max(1.0, _INTERVALS_TO_FIRST_ROW * interval):
        return Warmup(None, False, f"the log starts at step {step[0]}, past any warm-up")
    since = "no warm-up" if step[0] <= 1 else f"any warm-up ended before it, at step {step[0]} at the latest"
    return Warmup(int(step[0]), False, f"the learning rate is at its highest from the first row on: {since}")


def summarise_rate(step: np.ndarray, lr: np.ndarray | None, warmup: Warmup) -> RateSummary | None:
    """The learning rate in three values, None where the log has none.

    Args:
        step: int64 (rows,).
        lr: float64 (rows,) with NaN, or None.
        warmup: as found.
    """
    if lr is None or np.isnan(lr).all():
        return None
    known = lr[~np.isnan(lr)]
    after = lr[step >= warmup.end_step] if warmup.end_step is not None else lr
    after = after[~np.isnan(after)]
    constant = not warmup.inside and len(after) > 0 and bool(after.min() >= _OF_PEAK * after.max())
    return RateSummary(float(known.max()), float(known[-1]), constant)


def _end_of_first_climb(lr: np.ndarray, stage_starts: np.ndarray) -> tuple[int, bool]:
    """(rows to look at, whether the rate still climbs at the last of all rows)."""
    highest = np.maximum.accumulate(lr)
    for end in (*(int(start) for start in stage_starts if start > 0), len(lr)):
        if not _climbs_at(lr, highest, end - 1):
            return end, False
    return len(lr), True


def _climbs_at(lr: np.ndarray, highest: np.ndarray, last: int) -> bool:
    """Whether the rate is at its highest so far in row `last`, after rises all along the half of the rows before it.

    A rate printed with few digits rises in stairs: the last stair may be as long as those before it.
    """
    if last + 1 < _MIN_ROWS:
        return True  # too few rows to tell: take in more
    if highest[last] != lr[last]:
        return False
    half = last - max(2, last // 2)
    rises = np.flatnonzero(lr[half + 1 : last + 1] > lr[half:last]) + half + 1
    if len(rises) < min(_MIN_RISES, last):
        return False
    return bool(last - rises[-1] + 1 <= np.diff(rises).max())
