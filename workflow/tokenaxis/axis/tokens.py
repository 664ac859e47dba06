"""Tokens consumed before each step: from a tokens column, a declared schedule, or the batch of every step."""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import numpy as np

from tokenaxis.axis import wording
from tokenaxis.axis.batch import FILE_NAME, REMEDY, TOKENS_COLUMN, Batch
from tokenaxis.axis.tokens_column import AFTER, BEFORE, CountedTokens, implied_batch, recognise
from tokenaxis.errors import Notice, TokenAxisError

DECLARED, FORMAT, RECOGNISED, ASSUMED = "declared", "format", "recognised", "assumed"

#: relative difference beyond which a tokens column and the batch size contradict each other
_CONTRADICTION = 0.02
#: a first row further from step 0 than this many logging intervals means that earlier rows are not in the log
_INTERVALS_TO_FIRST_ROW = 2.0


@dataclass(frozen=True)
class Tokens:
    """The token axis of a run.

    Attributes:
        before: float64 (rows,), tokens consumed before each step, non-decreasing.
        source: where they come from, in words.
        convention: what the log's own column counts, "before" or "after" the step ("before" without a column).
        convention_source: "declared", "format", "recognised" or "assumed".
        bounds: lowest and highest tokens of the last row, where the log leaves them open.
    """

    before: np.ndarray
    source: str
    convention: str = BEFORE
    convention_source: str = ASSUMED
    bounds: tuple[float, float] | None = None
    warnings: list[Notice] = field(default_factory=list)


@dataclass(frozen=True)
class ConventionHints:
    """What is said about a tokens column before the log itself is asked, best first; None = not said."""

    declared: str | None
    format: str | None
    params: str | None


def tokens_from_batch(step: np.ndarray, batch: Batch) -> Tokens:
    """Tokens of a log without a tokens column.

    A fixed batch: step x batch. A declared schedule: integrated step by step, exact across rows that were not logged
    and for a log that starts in the middle. A batch column alone: cumulated, each gap with the batch of the row before
    it and the steps before the first row with its batch; where that is a guess, `bounds` say how far it may be off.

    Args:
        step: int64 (rows,), ascending, counted from 0 (counted from 1, every value is one batch of freedom off).
        batch: as resolved.

    Raises:
        TokenAxisError: the numbers are too large for a count of tokens.
    """
    steps = step.astype(float)
    with np.errstate(over="ignore"):  # absurd numbers become inf, which is refused
        if batch.schedule is not None:
            return _checked(Tokens(batch.schedule.tokens_before(steps), "batch schedule"))
        if batch.fixed is not None and batch.column is None:
            return _checked(Tokens(steps * batch.fixed, "step x batch"))
        before = np.empty(len(steps))
        before[0] = steps[0] * batch.per_row[0]
        np.cumsum(batch.per_row[:-1] * np.diff(steps), out=before[1:])
        before[1:] += before[0]
        bounds, warnings = _open_bounds(step, before, batch)
        source = "cumulated batch" if batch.fixed is None else "step x batch"
        return _checked(Tokens(before, source, bounds=bounds, warnings=warnings))


def tokens_from_column(
    step: np.ndarray, counted: CountedTokens, batch: Batch | None, hints: ConventionHints, log_name: str
) -> tuple[Tokens, Batch | None]:
    """Tokens of a log with a tokens column, and the batch (which the column itself implies where nothing else says it).

    Args:
        step: int64 (rows,), ascending.
        counted: the completed column.
        batch: as resolved, or None.
        hints: conventions that are stated; the log itself is asked last, and contradictions are reported.
        log_name: the column's own name.

    Returns:
        tokens, and batch; batch is None where it stays unknown.

    Raises:
        TokenAxisError: the stated convention "after" would make tokens negative.
    """
    batch, warnings = _batch_for_column(step, counted, batch)
    if batch is None:
        return Tokens(counted.tokens, f"column {log_name}"), None
    shown = recognise(step, counted.tokens, batch.per_row, by_column=batch.source != TOKENS_COLUMN)
    convention, source, notices = _convention(hints, shown)
    if batch.source == TOKENS_COLUMN and convention == AFTER:
        batch = _implied(step, counted.tokens, AFTER) or batch
    before = counted.tokens
    if convention == AFTER:
        before = _shifted(step, counted.tokens, batch.per_row, source)
    warnings = counted.warnings + warnings + notices + _contradiction(step, counted.tokens, batch)
    return _checked(Tokens(before, f"column {log_name}", convention, source, warnings=warnings)), batch


def _convention(hints: ConventionHints, shown: str | None) -> tuple[str, str, list[Notice]]:
    statements = ((hints.declared, DECLARED), (hints.format, FORMAT), (hints.params, ASSUMED))
    convention, source = next((statement for statement in statements if statement[0]), (None, ASSUMED))
    if convention is not None:
        if shown in (None, convention) or source == FORMAT:
            return convention, source, []
        text = (
            f"the tokens column is taken to count {convention} the step as stated, but the log shows counts {shown} it"
        )
        return convention, source, [Notice("tokens_convention_contradicted", text)]
    if shown == AFTER:
        text = "the tokens column counts after the row's step (it holds the step's own batch): shifted by one batch"
        return AFTER, RECOGNISED, [Notice("tokens_after", text)]
    return BEFORE, ASSUMED if shown is None else RECOGNISED, []


def _shifted(step: np.ndarray, tokens: np.ndarray, batch: np.ndarray, source: str) -> np.ndarray:
    """Counts from after the step -> before it; never below 0 and never decreasing by the rounding of printed counts."""
    before = tokens - batch
    if before[0] < 0 and tokens[0] < 0.5 * batch[0] and source != FORMAT:
        raise TokenAxisError(
            f"a tokens column that counts after the step cannot be {tokens[0]:,.0f} at step {step[0]}, where the batch "
            f"is {batch[0]:,.0f} tokens: the tokens before the step would be negative",
            remedy="declare `defaults: {tokens_convention: before}`",
        )
    return np.maximum.accumulate(np.maximum(before, 0.0))


def _batch_for_column(
    step: np.ndarray, counted: CountedTokens, batch: Batch | None
) -> tuple[Batch | None, list[Notice]]:
    """The batch to go with a tokens column: what the column implies beats a file's name that contradicts it."""
    if batch is None:
        return _implied(step, counted.tokens, BEFORE), []
    if batch.source != FILE_NAME or not _contradiction(step, counted.tokens, batch):
        return batch, []
    implied = _implied(step, counted.tokens, BEFORE)
    if implied is None:
        return batch, []
    text = (
        f"the file's name says {batch.per_row[0]:,.0f} tokens per step, but the tokens column grows by "
        f"{_mean_batch(step, counted.tokens):,.0f} per step, which is used"
    )
    return implied, [Notice("batch_name_contradicted", text)]


def _implied(step: np.ndarray, tokens: np.ndarray, convention: str) -> Batch | None:
    per_row = implied_batch(step, tokens, convention)
    if per_row is None:
        return None
    return Batch(TOKENS_COLUMN, per_row, fixed=per_row[0] if (per_row == per_row[0]).all() else None)


def _mean_batch(step: np.ndarray, tokens: np.ndarray) -> float:
    return float((tokens[-1] - tokens[0]) / (step[-1] - step[0]))


def _contradiction(step: np.ndarray, tokens: np.ndarray, batch: Batch) -> list[Notice]:
    """Whether a tokens column grows at another rate than the batch says (counts of one rank, another accumulation)."""
    if batch.source == TOKENS_COLUMN or len(step) < 2:
        return []
    if batch.schedule is not None:
        ends = batch.schedule.tokens_before(step[[0, -1]].astype(float))
        lowest = highest = float(ends[1] - ends[0])
    else:
        gaps = np.diff(step)
        first, last = float((batch.per_row[:-1] * gaps).sum()), float((batch.per_row[1:] * gaps).sum())
        lowest, highest = min(first, last), max(first, last)
    grown, slack = float(tokens[-1] - tokens[0]), 2 * float(batch.per_row.max())
    if lowest * (1 - _CONTRADICTION) - slack <= grown <= highest * (1 + _CONTRADICTION) + slack:
        return []
    text = (
        f"the tokens column grows by {grown:,.0f} over the log, the batch size ({batch.source}) says {lowest:,.0f}: "
        "one of them is wrong; the column is used for the tokens"
    )
    return [Notice("tokens_disagree_with_batch", text)]


def _open_bounds(step: np.ndarray, before: np.ndarray, batch: Batch) -> tuple[tuple[float, float] | None, list[Notice]]:
    """Bounds of the last row's tokens where the log hides a switch of the batch, or what came before its first row."""
    warnings: list[Notice] = []
    lowest = highest = 0.0
    if batch.column is not None:
        lowest, highest, rows = batch.column.switch_bounds(step)
        if len(rows):
            text = (
                "the batch size switches in a gap between two logged rows (before "
                f"{wording.shown('step', step[rows])}): the tokens there are "
                f"uncertain by {highest - lowest:,.0f}; declare batch_schedule for exact ones"
            )
            warnings.append(Notice("switch_in_gap", text))
    interval = float(np.median(np.diff(step))) if len(step) > 1 else math.inf
    if step[0] > _INTERVALS_TO_FIRST_ROW * interval:
        # ASSUME: no step before the log's first row used a larger batch than the largest in the log.
        lowest -= before[0]
        highest += float(step[0]) * float(batch.per_row.max()) - before[0]
        text = (
            f"the log starts at step {step[0]} (mid-run): the tokens before its first row are unknown, since its batch "
            f"size may have changed before; {before[0]:,.0f} is assumed, the first row's batch for every earlier step. "
            "Declare tokens_per_step or batch_schedule for exact ones"
        )
        warnings.append(Notice("tokens_offset_unknown", text))
    if not warnings:
        return None, []
    return (float(before[-1] + lowest), float(before[-1] + highest)), warnings


def _checked(tokens: Tokens) -> Tokens:
    if not np.isfinite(tokens.before[-1]) or tokens.before[-1] > 2.0**63:
        raise TokenAxisError(
            f"step and batch size give {tokens.before[-1]:.3g} tokens, which is no count of tokens", remedy=REMEDY
        )
    return tokens
