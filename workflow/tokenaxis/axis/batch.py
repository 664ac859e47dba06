"""Tokens per optimizer step for every row, and where they are known from.

Order: a column of the log > what is declared (a schedule before a fixed size) > what the log says about itself >
the file's own name > the steps of a tokens column. Without any of them the log is refused with the line to declare.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import PurePosixPath
from typing import Any

import numpy as np

from tokenaxis.axis.batch_column import BatchColumn
from tokenaxis.axis.schedule import BatchSchedule
from tokenaxis.declarations import Declaration
from tokenaxis.errors import Notice, TokenAxisError
from tokenaxis.readers.batch_name import NamedBatch, batch_in_name
from tokenaxis.readers.remedies import declare

COLUMN, DECLARED, SCHEDULE = "column", "declared", "declared schedule"
LOG, FILE_NAME, TOKENS_COLUMN = "log", "file name", "tokens column"

#: the remedy that every refusal for want of a batch size ends with
REMEDY = (
    f"{declare('tokens_per_step: 524288')}, or pass --batch-size 524288 "
    "(tokens in one optimizer step: sequences x sequence length x ranks x accumulation)"
)
#: fact key under which readers hand over a batch counted in sequences
SEQUENCES_KEY = "sequences_per_step"
#: relative difference below which two batch sizes are one number that was printed twice
SAME = 1e-6


@dataclass(frozen=True)
class Batch:
    """Tokens per step and how they are known.

    Attributes:
        source: one of the constants of this module.
        per_row: float64 (rows,), positive.
        fixed: the one batch of the whole run, None where it changes or may have changed outside the log.
        schedule: the declared schedule, where the log does not contradict it.
        column: the log's own column, where nothing but it says what the batch was; else None.
        warnings: what a reader of the result should know.
    """

    source: str
    per_row: np.ndarray
    fixed: float | None = None
    schedule: BatchSchedule | None = None
    column: BatchColumn | None = None
    warnings: list[Notice] = field(default_factory=list)


def resolve_batch(
    step: np.ndarray,
    column: BatchColumn | None,
    declaration: Declaration,
    facts: Sequence[tuple[str, Any, str, str | None]],
    name: str,
) -> Batch | None:
    """The batch from the best source but a tokens column; None where there is no source (see `no_batch`).

    Args:
        step: int64 (rows,), ascending.
        column: the log's own column, None without one or with an empty one.
        declaration: what the user declares.
        facts: facts of the log itself, as in RawLog.
        name: the run's name; only its last path component is looked at.

    Raises:
        TokenAxisError: a declared schedule that is none, cells that nothing can fill, a name that is ambiguous.
    """
    schedule = None if declaration.batch_schedule is None else BatchSchedule.from_pairs(declaration.batch_schedule)
    declared = _positive(declaration.tokens_per_step, "the declared tokens_per_step")
    if column is not None:
        return _from_column(step, column, schedule, declared)
    if schedule is not None:
        return Batch(SCHEDULE, schedule.batch_at(step), schedule=schedule)
    if declared is not None:
        return _fixed(DECLARED, declared, step)
    from_log = batch_in_facts(facts, declaration)
    if from_log is not None:
        return _fixed(LOG, from_log, step)
    named = batch_in_name(PurePosixPath(name).name)
    if named is not None:
        return _fixed(FILE_NAME, named.tokens_per_step, step, _notices_of_name(named))
    return None


def no_batch(name: str) -> TokenAxisError:
    """The refusal of a log whose batch size nothing states; a folder's name is shown, but not believed.

    A folder holds more than one run: a name such as `exp_2Mbs` is a hint to the user, and no statement about a file.
    """
    hint = ""
    for folder in reversed(PurePosixPath(name).parts[:-1]):
        try:
            named = batch_in_name(folder)
        except TokenAxisError:
            continue
        if named is not None:
            stated = f"`defaults: {{tokens_per_step: {named.tokens_per_step:.0f}}}`"
            hint = f"if the folder's name '{folder}' is right: {stated}; else "
            break
    return TokenAxisError(
        "the batch size is unknown: no batch or tokens column, nothing declared, none in the file's name",
        remedy=hint + REMEDY,
    )


def batch_in_facts(facts: Sequence[tuple[str, Any, str, str | None]], declaration: Declaration) -> float | None:
    """Tokens per step from the facts of a log: stated in tokens, or in sequences together with a sequence length.

    What the training loop emitted wins over what a reader detected, the later over the earlier. Values that are no
    positive number are passed over.
    """
    found = {key: value for key, value, _, _ in sorted(facts, key=lambda fact: fact[2] == "emitted")}
    stated = _number(found.get("tokens_per_step"))
    if stated is not None:
        return stated
    length = _number(declaration.seq_len) or _number(found.get("seq_len"))
    sequences = _number(found.get(SEQUENCES_KEY))
    return None if length is None or sequences is None else length * sequences


def _from_column(
    step: np.ndarray, column: BatchColumn, schedule: BatchSchedule | None, declared: float | None
) -> Batch:
    known = column.known
    warnings: list[Notice] = []
    planned = schedule.batch_at(step) if schedule is not None else declared
    if planned is not None:
        wrong = np.flatnonzero(known & ~np.isclose(column.cells, planned, rtol=SAME, atol=0))
        if not len(wrong):  # what is declared and what the log shows agree: exact everywhere
            return Batch(COLUMN, np.full(len(step), planned), fixed=None if schedule else declared, schedule=schedule)
        warnings.append(_contradicted(step, column, schedule, planned, int(wrong[0])))
    filled, notices = column.filled(step, declared)
    single = filled[0] if (filled == filled[0]).all() else None
    return Batch(COLUMN, filled, fixed=single, column=column, warnings=warnings + notices)


def _contradicted(
    step: np.ndarray, column: BatchColumn, schedule: BatchSchedule | None, planned: np.ndarray | float, row: int
) -> Notice:
    says = np.broadcast_to(planned, len(step))[row]
    text = (
        f"what is declared about the batch size is not what the log shows: {says:,.0f} tokens at step {step[row]}, "
        f"where the log's own column has {column.cells[row]:,.0f}; the column is used"
    )
    return Notice("batch_declared_ignored" if schedule is None else "batch_schedule_contradicted", text)


def _fixed(source: str, tokens_per_step: float, step: np.ndarray, warnings: list[Notice] | None = None) -> Batch:
    return Batch(source, np.full(len(step), tokens_per_step), fixed=tokens_per_step, warnings=warnings or [])


def _notices_of_name(named: NamedBatch) -> list[Notice]:
    if not named.plain:
        return []
    text = f"'{named.text}' in the file's name is read as {named.tokens_per_step:,.0f} tokens (not sequences) per step"
    return [Notice("batch_from_plain_name", text)]


def _positive(value: float | None, what: str) -> float | None:
    if value is None:
        return None
    if not (math.isfinite(value) and value > 0):
        raise TokenAxisError(f"{what}, {value}, is not a positive number of tokens", remedy=REMEDY)
    return float(value)


def _number(value: Any) -> float | None:
    if isinstance(value, bool) or not isinstance(value, int | float | np.number):
        return None
    number = float(value)
    return number if math.isfinite(number) and number > 0 else None
