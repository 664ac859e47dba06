"""Rows of a raw log that can be used as rows: a step that is a whole number, in the order of training."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from tokenaxis.axis.attempts import is_newest_first
from tokenaxis.errors import Notice, TokenAxisError
from tokenaxis.readers import steps
from tokenaxis.readers.remedies import quoted

if TYPE_CHECKING:
    from tokenaxis.readers.base import RawLog

#: no log is written so rarely, and no batch that is worth a log is so small
_LEAST_TOKENS = 16_384


@dataclass(frozen=True)
class UsableRows:
    """Rows in the order of training.

    Attributes:
        step: int64 (rows,).
        columns: canonical name -> float64 (rows,), without `step`.
        lines: int64 (rows,), 1-based lines of the file.
        bad_lines: lines of rows that are unusable as rows, ascending.
        warnings: what was set right.
    """

    step: np.ndarray
    columns: dict[str, np.ndarray]
    lines: np.ndarray
    bad_lines: list[int]
    warnings: list[Notice]


def usable_rows(raw: RawLog) -> UsableRows:
    """Rows with a step that is a whole number of 0 or more; a file sorted from last to first is turned around.

    Raises:
        TokenAxisError: no row is left, or most steps are no whole numbers (epochs, fractions).
    """
    step = raw.columns["step"]
    columns = {name: values for name, values in raw.columns.items() if name != "step"}
    lines, bad_lines, warnings = raw.lines, list(raw.bad_lines), []
    if not len(step):
        raise TokenAxisError("no row with a usable step", remedy=steps.REMEDY if raw.rows_read else None)
    steps.refuse_beyond(step, lines)
    whole = step.astype(np.int64) if step.min() > -steps.LARGEST_STEP and step.max() <= steps.LARGEST_STEP else None
    if whole is None or whole.min() < 0 or (whole != step).any():
        with np.errstate(invalid="ignore"):
            good = (step >= 0) & (step <= steps.LARGEST_STEP) & (np.floor(step) == step)
        steps.refuse_mostly_bad(step, good, lines)
        warnings += steps.notices(step[~good], lines[~good])
        bad_lines = sorted(bad_lines + lines[~good].tolist())
        whole, lines = step[good].astype(np.int64), lines[good]
        columns = {name: values[good] for name, values in columns.items()}
    warnings += _not_steps(whole, raw)
    if is_newest_first(whole):
        text = f"the rows go backward from step {whole[0]} to {whole[-1]} (newest first): read in reverse order"
        warnings.append(Notice("newest_first", text))
        whole, lines = whole[::-1], lines[::-1]
        columns = {name: values[::-1] for name, values in columns.items()}
    return UsableRows(whole, columns, lines, bad_lines, warnings)


def _not_steps(step: np.ndarray, raw: RawLog) -> list[Notice]:
    """A step column that counts in thousands from the first row on may hold tokens or samples."""
    if len(step) < 3 or "tokens" in raw.columns or raw.names.get("step") == raw.names.get("tokens"):
        return []
    gaps = np.diff(step)
    smallest = int(gaps[gaps > 0].min(initial=steps.LARGEST_STEP))
    if not _LEAST_TOKENS <= smallest < steps.LARGEST_STEP or step.min() < smallest or (step % smallest).any():
        return []
    own = raw.names.get("step", "step")
    text = (
        f"the column {own!r} counts by {smallest:,}: if these are tokens, not optimizer steps, declare e.g. "
        f"`defaults: {{columns: {{tokens: {quoted(own)}}}, tokens_per_step: {smallest}}}`, if each step was logged"
    )
    return [Notice("step_may_be_tokens", text)]
