"""Losses that are numbers and no losses: 1e30 after an overflow says as little as inf."""

from __future__ import annotations

from tokenaxis.columns import LOSSES
from tokenaxis.readers.base import RawLog

#: nats per token: the loss of a uniform guess among 2^64 tokens is 44, so a loss a million times larger has diverged
HUGE_LOSS = 1e6


def flag_huge(log: RawLog) -> RawLog:
    """The log with losses beyond `HUGE_LOSS`, either way, unusable: NaN, and of kind "huge" in `unusable`."""
    import numpy as np

    for loss in LOSSES:
        values = log.columns.get(loss)
        if values is None:
            continue
        with np.errstate(invalid="ignore"):
            huge = np.abs(values) > HUGE_LOSS
        if huge.any():
            log.columns[loss] = np.where(huge, np.nan, values)
            log.unusable[loss, "huge"] = np.sort(log.lines[huge])
    return log
