"""Rows in file order -> one row a step: attempts joined, split rows merged, nothing lost in silence.

The rule: where the step goes backward a later attempt resumed, and every earlier row at or after that step is
superseded, also when the later attempt is shorter. Rows of one step inside an attempt are one row.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tokenaxis.axis.merging import merge_steps
from tokenaxis.errors import TokenAxisError
from tokenaxis.readers.steps import REMEDY as STEP_REMEDY

#: more attempts than this, or this many of hardly a row each that take turns, are not restarts of one run
MAX_ATTEMPTS = 1000
INTERLEAVED_ATTEMPTS = 20
INTERLEAVED_ROWS = 2

_NEVER = np.iinfo(np.int64).max


@dataclass(frozen=True)
class Joined:
    """One row a step, and what became of the others.

    Attributes:
        step: int64 (kept,), strictly ascending.
        columns: canonical name -> float64 (kept,), NaN where no row of the step has a value; without `step`.
        attempt: int32 (kept,), number of the attempt that a row comes from.
        row: int64 (kept,), the row of the input that stands for the step (the last one of its rows).
        survived: bool (rows,), rows of the input that no later attempt superseded.
        attempt_of_row: int32 (rows,).
        first_step, last_step, rows, superseded_rows: int64 (attempts,), oldest attempt first.
        redone_from: int64 (attempts,), the step from which a later attempt did this attempt's steps again; larger
            than `last_step` where none did.
        merged: rows that became part of another row of their step.
        repeated: rows whose loss a later row of the same step replaced (counted in `superseded_rows`).
        late: rows that tell about an earlier step while training goes on (an evaluation that came late).
    """

    step: np.ndarray
    columns: dict[str, np.ndarray]
    attempt: np.ndarray
    row: np.ndarray
    survived: np.ndarray
    attempt_of_row: np.ndarray
    first_step: np.ndarray
    last_step: np.ndarray
    rows: np.ndarray
    superseded_rows: np.ndarray
    redone_from: np.ndarray
    merged: int = 0
    repeated: int = 0
    late: int = 0

    @property
    def superseded(self) -> int:
        """Number of superseded rows of all attempts."""
        return int(self.superseded_rows.sum())


def is_newest_first(step: np.ndarray) -> bool:
    """Whether a file is sorted from the last step to the first, as some exports are.

    At least three rows, and nine of ten changes of the step go backward (a resumed run, exported newest first, goes
    forward once an attempt). A resume rule applied to such a file would keep a single row.

    Args:
        step: int64 (rows,) in file order.
    """
    if len(step) < 3:
        return False
    if step[1] > step[0] and step[-1] > step[0]:  # the common case costs nothing
        return False
    change = np.diff(step)
    backward, forward = int((change < 0).sum()), int((change > 0).sum())
    return backward >= 2 and backward >= 9 * forward


def join_attempts(step: np.ndarray, columns: dict[str, np.ndarray]) -> Joined:
    """Apply the rule of attempts. A log whose steps only ascend costs one comparison.

    Args:
        step: int64 (rows,) in file order.
        columns: canonical name -> float64 (rows,), NaN where a cell has no value; without `step`.

    Raises:
        TokenAxisError: the step goes backward so often that this is not one run (two writers in one file).
    """
    rows = len(step)
    if bool((step[1:] > step[:-1]).all()):
        return _single_attempt(step, columns)
    late = _late_rows(step, columns)
    in_order = np.flatnonzero(~late)
    ordered = step[in_order]
    starts = np.r_[0, np.flatnonzero(ordered[1:] < ordered[:-1]) + 1]
    lengths = np.diff(np.r_[starts, len(ordered)])
    _refuse_interleaved(ordered[starts], lengths)
    first, last = ordered[starts], ordered[starts + lengths - 1]
    redone_from = np.r_[np.minimum.accumulate(first[::-1])[::-1][1:], _NEVER]
    attempt = np.empty(rows, np.int32)
    attempt[in_order] = np.repeat(np.arange(len(starts), dtype=np.int32), lengths)
    if late.any():  # a late row belongs to the attempt of the row in order before it
        before = np.searchsorted(in_order, np.flatnonzero(late)) - 1
        attempt[late] = attempt[in_order[before]]
    survived = step < redone_from[attempt]
    kept = np.flatnonzero(survived)
    if late.any():
        kept = kept[np.argsort(step[kept], kind="stable")]
    merged = merge_steps(step[kept], {name: values[kept] for name, values in columns.items()})
    superseded = np.bincount(attempt[~survived], minlength=len(starts))
    superseded += np.bincount(attempt[kept[merged.repeated]], minlength=len(starts))
    row = kept[merged.last]
    repeated = int(merged.repeated.sum())
    return Joined(
        step=step[row],
        columns=merged.columns,
        attempt=attempt[row],
        row=row,
        survived=survived,
        attempt_of_row=attempt,
        first_step=first,
        last_step=last,
        rows=np.bincount(attempt, minlength=len(starts)),
        superseded_rows=superseded,
        redone_from=redone_from,
        merged=len(kept) - len(row) - repeated,
        repeated=repeated,
        late=int(late.sum()),
    )


def _single_attempt(step: np.ndarray, columns: dict[str, np.ndarray]) -> Joined:
    rows = len(step)
    attempt = np.zeros(rows, np.int32)
    return Joined(
        step=step,
        columns=dict(columns),
        attempt=attempt,
        row=np.arange(rows),
        survived=np.ones(rows, bool),
        attempt_of_row=attempt,
        first_step=step[:1],
        last_step=step[-1:],
        rows=np.array([rows]),
        superseded_rows=np.zeros(1, np.int64),
        redone_from=np.array([_NEVER]),
    )


def _late_rows(step: np.ndarray, columns: dict[str, np.ndarray]) -> np.ndarray:
    """Rows without a training loss that are out of order while the training rows around them go on: bool (rows,).

    An evaluation that finished late (train 58, 59, 60, then val 50, then train 61) is no resume; neither is one that
    came early. Only where both kinds of rows are logged, and only between two training rows.
    """
    rows = len(step)
    if "train_loss" not in columns:
        return np.zeros(rows, bool)
    has_train = ~np.isnan(columns["train_loss"])
    if has_train.all() or not has_train.any():
        return np.zeros(rows, bool)
    index = np.arange(rows)
    previous = np.maximum.accumulate(np.where(has_train, index, -1))
    following = np.minimum.accumulate(np.where(has_train, index, rows)[::-1])[::-1]
    between = ~has_train & (previous >= 0) & (following < rows)
    previous_step = step[np.where(between, previous, 0)]
    following_step = step[np.where(between, following, 0)]
    outside = (step < previous_step) | (step > following_step)
    return between & (following_step > previous_step) & outside


def _refuse_interleaved(first: np.ndarray, lengths: np.ndarray) -> None:
    """Two writers take turns: many attempts of a row or two, each of which begins further on than the one before it.

    (A run that crashes again and again begins at its checkpoint each time.)
    """
    count = len(lengths)
    advancing = (first[1:] > first[:-1]).mean() > 0.5 if count > 1 else False
    taking_turns = count > INTERLEAVED_ATTEMPTS and np.median(lengths) <= INTERLEAVED_ROWS and advancing
    if count > MAX_ATTEMPTS or taking_turns:
        raise TokenAxisError(
            f"the step goes backward {count - 1:,} times in {int(lengths.sum()):,} rows: not one run that was resumed, "
            "but two writers in one file, or a step column that does not hold optimizer steps",
            remedy=f"split the file by writer; or it is another column: {STEP_REMEDY}",
        )
