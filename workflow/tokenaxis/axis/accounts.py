"""What happened to the rows and cells of a log, in the words and shapes of docs/artifacts.md."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from tokenaxis.axis.attempts import Joined
from tokenaxis.axis.batch import Batch
from tokenaxis.axis.rows import UsableRows
from tokenaxis.axis.wording import counted, shown
from tokenaxis.errors import Notice

if TYPE_CHECKING:
    from tokenaxis.readers.base import RawLog

#: line numbers that an artifact lists
MAX_LINES = 100
_UNUSABLE = {
    "nan": "not finite (nan)",
    "inf": "not finite (inf)",
    "huge": "beyond 1e6, which is no loss in nats,",
    "text": "text, not a number,",
}


def superseded_tokens(joined: Joined, rows: UsableRows, batch: Batch) -> np.ndarray:
    """Tokens that each attempt spent on steps that a later attempt did again: float64 (attempts,).

    They reach from the step at which the later attempt resumed to the attempt's last logged step, that one included.
    With a batch column, each superseded row stands for the steps up to the attempt's next row.
    """
    start = np.maximum(joined.first_step, joined.redone_from)
    lost = start <= joined.last_step
    spent = np.zeros(len(start))
    if not lost.any():
        return spent
    first, behind = start[lost].astype(float), joined.last_step[lost] + 1.0
    if batch.schedule is not None:
        spent[lost] = batch.schedule.tokens_before(behind) - batch.schedule.tokens_before(first)
        return spent
    column = rows.columns.get("tokens_per_step")
    if batch.fixed is not None or column is None:
        kept_batch = np.interp(first, joined.step, batch.per_row)
        spent[lost] = (behind - first) * (batch.fixed if batch.fixed is not None else kept_batch)
        return spent
    return _by_column(joined, rows, column, start)


def _by_column(joined: Joined, rows: UsableRows, column: np.ndarray, start: np.ndarray) -> np.ndarray:
    gone = np.flatnonzero(~joined.survived)
    attempt, step, size = joined.attempt_of_row[gone], rows.step[gone], column[gone]
    order = np.lexsort((step, attempt))  # late rows are out of order
    attempt, step, size = attempt[order], step[order], size[order]
    known = np.maximum.accumulate(np.where(size > 0, np.arange(len(size)), -1))
    usual = column[column > 0][0]
    size = np.where(known >= 0, size[np.maximum(known, 0)], usual)
    ends = np.r_[attempt[1:] != attempt[:-1], True]
    begins = np.r_[True, ends[:-1]]
    until = np.where(ends, step + 1, np.r_[step[1:], 0])
    since = np.where(begins, np.minimum(step, start[attempt]), step)
    return np.bincount(attempt, weights=(until - since) * size, minlength=len(start))


def superseded_seconds(joined: Joined, rows: UsableRows) -> list[float | None] | None:
    """Wall time that each attempt spent on steps that a later attempt did again; None where the log has none at all.

    From the attempt's last row that counts (its first row, where none does) to its last row; None for an attempt whose
    rows do not say.
    """
    elapsed = rows.columns.get("elapsed_s")
    if elapsed is None:
        return None
    redone = joined.redone_from <= joined.last_step
    return [_seconds_lost(joined, elapsed, attempt) if redone[attempt] else 0.0 for attempt in range(len(redone))]


def _seconds_lost(joined: Joined, elapsed: np.ndarray, attempt: int) -> float | None:
    mine = np.flatnonzero((joined.attempt_of_row == attempt) & np.isfinite(elapsed))
    if not len(mine):
        return None
    counting = mine[joined.survived[mine]]
    spent = float(elapsed[mine[-1]] - elapsed[counting[-1] if len(counting) else mine[0]])
    return spent if spent >= 0 else None


def describe_attempts(joined: Joined, tokens: np.ndarray, seconds: list[float | None] | None) -> list[dict[str, Any]]:
    """The attempts as docs/artifacts.md describes them, oldest first; `tokens` as from `superseded_tokens`, `seconds`
    as from `superseded_seconds`."""
    columns = (joined.first_step, joined.last_step, joined.rows, joined.superseded_rows)
    described: list[dict[str, Any]] = [
        {
            "first_step": int(first),
            "last_step": int(last),
            "rows": int(rows),
            "superseded_rows": int(superseded),
            "superseded_tokens": number(float(spent)),
        }
        for first, last, rows, superseded, spent in zip(*columns, tokens, strict=True)
    ]
    for entry, lost in zip(described, seconds or (), strict=seconds is not None):
        entry["superseded_s"] = lost
    return described


def attempt_notices(joined: Joined, tokens: np.ndarray) -> list[Notice]:
    """What a reader of the result should know about attempts and merged rows."""
    notices = []
    count = len(joined.first_step)
    lost = f"{counted(joined.superseded, 'earlier row')} ({tokens.sum():,.0f} tokens) superseded"
    begun_again = np.flatnonzero(joined.first_step[1:] <= joined.first_step[:-1]) + 1
    if count > 1 and joined.first_step[-1] <= joined.first_step[0]:
        text = f"the log restarts from step {joined.first_step[-1]}, where it began: two runs in one file, or "
        text += "a step that counts within an epoch? The last one counts; "
        notices.append(Notice("restarted", text + lost))
    elif count > 1:
        where = shown("step", joined.first_step[1:])
        back = "" if not len(begun_again) else ", going back behind an earlier resume"
        notices.append(Notice("resumed", f"{count} attempts (resumed at {where}{back}): {lost}"))
    if joined.repeated:
        text = (
            f"{counted(joined.repeated, 'step row')} logged again with another loss (a resume at the last logged step, "
            "or two writers in one file): the later row counts"
        )
        notices.append(Notice("repeated_steps", text))
    if joined.late:
        text = (
            f"{counted(joined.late, 'evaluation row')} out of order, among later training rows: put on their own steps"
        )
        notices.append(Notice("late_rows", text))
    return notices


def unusable_cells(raw: RawLog, rows: UsableRows, joined: Joined) -> tuple[list[dict[str, Any]], list[Notice]]:
    """Cells of kept rows that hold no number though they are not blank, by column and kind, and a notice for each.

    A cell counts only where its step has no usable value of the column at all.
    """
    described, notices = [], []
    told_by_reader = any(notice.code == "text_in_cells" for notice in raw.warnings)  # with the text itself
    for (column, kind), lines in sorted(raw.unusable.items(), key=lambda item: item[0]):
        if column not in joined.columns:
            continue
        at = np.flatnonzero(np.isin(rows.lines, lines) & joined.survived)
        final = np.searchsorted(joined.step, rows.step[at])
        at = at[np.isnan(joined.columns[column][final])]
        if not len(at):
            continue
        steps, listed = rows.step[at], np.sort(rows.lines[at])
        described.append(
            {
                "column": column,
                "kind": kind,
                "rows": len(at),
                "first_step": int(steps.min()),
                "last_step": int(steps.max()),
                "lines": listed[:MAX_LINES].tolist(),
            }
        )
        what = _UNUSABLE[kind]
        text = (
            f"{named(column, raw)} is {what} in {counted(len(at), 'row')}, steps {steps.min()} to {steps.max()}, "
            f"{shown('line', listed)}: dropped"
        )
        if kind != "text" or not told_by_reader:
            notices.append(Notice(f"{kind}_cells", text))
    return described, notices


def bad_row_notices(raw: RawLog) -> list[Notice]:
    """A notice for rows that are unusable as rows, where the reader counted them without a word."""
    if not raw.bad_lines or raw.warnings:
        return []
    text = (
        f"{counted(len(raw.bad_lines), 'row')} dropped: no usable step, or incomplete ({shown('line', raw.bad_lines)})"
    )
    return [Notice("bad_rows", text)]


def named(column: str, raw: RawLog) -> str:
    """A column as the log calls it, with its canonical name where that differs."""
    own = raw.names.get(column, column)
    return column if own == column else f"{column} ('{own}')"


def number(value: float) -> int | float | None:
    """A JSON number: whole numbers as int, others as float, None where there is no finite one."""
    if not math.isfinite(value):
        return None
    return int(value) if value == int(value) and abs(value) < 2.0**53 else float(value)


def plain(value: Any) -> Any:
    """A fact's value as JSON holds it: no numpy types, no NaN or infinity (None instead), tuples as lists."""
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, dict):
        return {str(key): plain(inner) for key, inner in value.items()}
    if isinstance(value, list | tuple | np.ndarray):
        return [plain(inner) for inner in value]
    return value if value is None or isinstance(value, bool | int | str) else str(value)
