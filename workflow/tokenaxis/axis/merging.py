"""Rows of one step -> one row, without losing a value (train and val loss of a step on two lines)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tokenaxis.columns import LOSSES


@dataclass(frozen=True)
class Merged:
    """One row a step.

    Attributes:
        columns: canonical name -> float64 (steps,).
        last: int64 (steps,), the last row of each step in the input.
        repeated: bool (rows,), rows with a loss that a later row of their step gives differently.
    """

    columns: dict[str, np.ndarray]
    last: np.ndarray
    repeated: np.ndarray


def merge_steps(step: np.ndarray, columns: dict[str, np.ndarray]) -> Merged:
    """Merge neighbouring rows of equal step, column by column: the last value of the step stands.

    Args:
        step: int64 (rows,), non-decreasing.
        columns: canonical name -> float64 (rows,), NaN where a cell has no value.
    """
    rows = len(step)
    repeated = np.zeros(rows, bool)
    ends = np.r_[step[1:] != step[:-1], True]
    last = np.flatnonzero(ends)
    if len(last) == rows:
        return Merged(dict(columns), last, repeated)
    first = np.r_[0, last[:-1] + 1]
    several = np.flatnonzero(last > first)  # steps with more than one row
    sizes = (last - first + 1)[several]
    group_start = np.cumsum(sizes) - sizes
    members = np.repeat(first[several] - group_start, sizes) + np.arange(sizes.sum())
    merged = {}
    for name, values in columns.items():
        some = values[members]
        filled = ~np.isnan(some)
        latest = np.maximum.accumulate(np.where(filled, np.arange(len(some)), -1))[group_start + sizes - 1]
        chosen = np.where(latest >= group_start, some[latest], np.nan)
        column = values[last]
        column[several] = chosen
        merged[name] = column
        if name in LOSSES:
            repeated[members[filled & (some != np.repeat(chosen, sizes))]] = True
    return Merged(merged, last, repeated)
