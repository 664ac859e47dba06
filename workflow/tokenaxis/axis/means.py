"""Losses that are means over a logging interval are placed in its middle, not at its end.

Of a loss that falls as a power of the tokens, the mean over the k steps that end with step N says what the loss was
near their middle. Placed at the end, every point of the curve lies k/2 steps late. Let b be the tokens of a step. A
mean of the updates N-k+1 ... N (counted from 1, N the row's step) stands for N - (k+1)/2 updates done, so for
b (N - (k+1)/2) tokens consumed before it. Where k is even this is between two steps: `step` is the lower one, and the
tokens are exact.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from tokenaxis.axis.rows import UsableRows
from tokenaxis.errors import Notice

if TYPE_CHECKING:
    from tokenaxis.readers.base import IntervalMean

#: columns that a row of the training loop has, and an evaluation has not
_TRAINING = ("train_loss", "lr", "grad_norm")


@dataclass(frozen=True)
class Placed:
    """Rows on their places.

    Attributes:
        rows: as given, sorted by step within each attempt.
        behind: float64 (rows,), share of a step by which a row's place lies behind its `step`, 0 to 1.
        split: rows that became two, since they hold a mean and a validation loss, which have different places.
        steps_are_updates: each row's step counts the updates done before it, so that a count of tokens beside it is of
            just these.
        notices: what was done.
    """

    rows: UsableRows
    behind: np.ndarray
    split: int
    steps_are_updates: bool
    notices: list[Notice]


def place_means(rows: UsableRows, mean: IntervalMean | None) -> Placed:
    """Put rows whose training loss is a mean into the middle of their interval.

    Args:
        rows: in file order.
        mean: what the training loss is a mean over; None: of one step, nothing is moved.
    """
    nothing = Placed(rows, np.zeros(len(rows.step)), 0, False, [])
    if mean is None or "train_loss" not in rows.columns:
        return nothing
    training = np.zeros(len(rows.step), bool)
    for name in _TRAINING:
        if name in rows.columns:
            training |= ~np.isnan(rows.columns[name])
    if not training.any():
        return nothing
    before = len(rows.step)
    rows, training = _with_evaluations_apart(rows, training)
    interval = _interval(rows.step, training, mean.steps)
    back = np.where(training, (interval + (1 if mean.counted_after else -1)) / 2, 0.0)
    place = np.maximum(rows.step - back, 0.0)
    step = np.floor(place).astype(np.int64)
    attempt = np.r_[0, np.cumsum(rows.step[1:] < rows.step[:-1])]
    if "tokens" in rows.columns:
        moved = _counts_at(rows.step, step, attempt, rows.columns["tokens"])
        rows = replace(rows, columns=rows.columns | {"tokens": moved})
    order = np.lexsort((step, attempt))
    placed = replace(
        rows,
        step=step[order],
        columns={name: values[order] for name, values in rows.columns.items()},
        lines=rows.lines[order],
    )
    notices = _notices(interval[training], back[training])
    return Placed(placed, (place - step)[order], len(rows.step) - before, mean.counted_after, notices)


def _with_evaluations_apart(rows: UsableRows, training: np.ndarray) -> tuple[UsableRows, np.ndarray]:
    """Rows with a training mean and a validation loss become two."""
    if "val_loss" not in rows.columns:
        return rows, training
    both = np.flatnonzero(training & ~np.isnan(rows.columns["val_loss"]))
    if not len(both):
        return rows, training
    index = np.sort(np.r_[np.arange(len(rows.step)), both])
    second = np.r_[False, index[1:] == index[:-1]]
    first = np.r_[second[1:], False]
    columns = {name: values[index] for name, values in rows.columns.items()}
    columns["val_loss"][first] = np.nan
    for name in (*_TRAINING, "elapsed_s"):
        if name in columns:
            columns[name][second] = np.nan
    apart = replace(rows, step=rows.step[index], columns=columns, lines=rows.lines[index])
    return apart, training[index] & ~second


def _interval(step: np.ndarray, training: np.ndarray, steps: float | None) -> np.ndarray:
    """Steps that each row's mean is over: since the training row before it, but no more than the log's interval."""
    at = np.flatnonzero(training)
    gap = np.diff(step[at]).astype(float)
    forward = gap[gap > 0]
    usual = steps if steps is not None else float(np.median(forward)) if len(forward) else 1.0
    since = np.r_[0.0, np.where(gap > 0, gap, usual)]
    since[0] = min(usual, max(1.0, float(step[at[0]])))
    interval = np.zeros(len(step))
    interval[at] = since if steps is None else np.minimum(since, steps)
    return interval


def _counts_at(step: np.ndarray, place: np.ndarray, attempt: np.ndarray, tokens: np.ndarray) -> np.ndarray:
    """Counts of tokens at other steps of the same attempts: between known counts in proportion, beyond them at the
    nearest rate."""
    moved = tokens.copy()
    for one in np.unique(attempt[place != step]):
        mine = np.flatnonzero(attempt == one)
        known = mine[~np.isnan(tokens[mine])]
        shifted = mine[place[mine] != step[mine]]
        shifted = shifted[~np.isnan(tokens[shifted])]
        at, first = np.unique(step[known], return_index=True)
        counts = tokens[known][first]
        if not len(at):
            continue
        rate = (counts[1] - counts[0]) / (at[1] - at[0]) if len(at) > 1 else counts[0] / max(at[0], 1)
        ahead = counts[0] - rate * (at[0] - place[shifted])
        moved[shifted] = np.where(place[shifted] < at[0], np.maximum(ahead, 0.0), np.interp(place[shifted], at, counts))
    return moved


def _notices(interval: np.ndarray, back: np.ndarray) -> list[Notice]:
    usual = float(np.median(interval))
    if usual <= 1:
        text = (
            "a row's step counts the updates done: its training loss was put on the step before, whose batch it is of"
        )
        return [Notice("steps_count_updates", text)] if back.any() else []
    text = (
        f"the training loss is a mean over {usual:,.0f} steps: each was placed in the middle of its interval, "
        f"{float(np.median(back)):,.1f} steps before the row's own; if it is of one step, declare "
        "`defaults: {facts: {train_loss_interval_steps: 1}}`"
    )
    return [Notice("train_loss_is_a_mean", text)]
