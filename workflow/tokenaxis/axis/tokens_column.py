"""A tokens column of the log: what it counts, what it implies about the batch, and what is wrong with it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tokenaxis.axis.wording import counted, shown
from tokenaxis.errors import Notice, TokenAxisError

BEFORE, AFTER = "before", "after"

#: share of a batch within which a logged count is taken for a multiple of the batch (counts are rounded when printed)
_COUNT_TOLERANCE = 0.02
#: share of rows that must agree with a convention where no row shows step 0
_AGREEING_ROWS = 0.9
#: relative rounding of counts printed with three digits, `1.25B`
_PRINTED = 0.006
#: a log with more different increments than this does not show stages but rounded or varying counts
_MAX_STAGES = 64


@dataclass(frozen=True)
class CountedTokens:
    """A tokens column, one cell a step: `tokens` float64 (rows,) as logged, of which `filled` are interpolated."""

    tokens: np.ndarray
    filled: int
    warnings: list[Notice]


def complete(step: np.ndarray, cells: np.ndarray, attempt: np.ndarray, lines: np.ndarray) -> CountedTokens | None:
    """Check and complete a tokens column; None where it holds no number, or a single one in a longer log.

    A counter that starts again with a resumed attempt (the process counts its own tokens) is put on the earlier one's.

    Args:
        step: int64 (rows,), ascending.
        cells: float64 (rows,), NaN where blank.
        attempt: int32 (rows,).
        lines: int64 (rows,), line of each row, for the message.

    Raises:
        TokenAxisError: negative tokens, or tokens that decrease while the step goes on.
    """
    known = np.flatnonzero(~np.isnan(cells))
    if len(known) < min(2, len(cells)):
        return None
    partial = len(known) < len(cells)
    tokens, steps = (cells[known], step[known]) if partial else (cells, step)
    _refuse_negative(tokens, steps, lines, known)
    warnings: list[Notice] = []
    if (tokens[1:] < tokens[:-1]).any():
        tokens, warnings = _joined_counter(steps, tokens, attempt[known])
        _refuse_decrease(tokens, steps, lines, known)
    if partial:
        tokens = _interpolated(step, steps, tokens)
        text = f"{counted(len(cells) - len(known), 'row')} without a token count got it from their neighbours"
        warnings.append(Notice("tokens_filled", text))
    return CountedTokens(tokens, len(cells) - len(known), warnings)


def implied_batch(step: np.ndarray, tokens: np.ndarray, convention: str) -> np.ndarray | None:
    """Tokens per step that a tokens column implies: float64 (rows,), positive; None where it implies none.

    With counts from before the step, the difference to the next row is what the row's own steps consumed; with counts
    from after it, the difference from the previous row. Counts printed with few digits are recognised by a constant
    batch that explains all of them within their rounding; else each row gets the mean over the stretch to the next
    different count.

    Args:
        step: int64 (rows,), ascending.
        tokens: float64 (rows,), non-decreasing, as logged.
        convention: "before" or "after".
    """
    if len(step) < 2 or not tokens[-1] > tokens[0]:
        return None
    rate = np.diff(tokens) / np.diff(step)
    if not _shows_stages(rate):
        typical = float(np.median(rate[: max(1, len(rate) // 3)]))
        expected = tokens[0] + typical * (step - step[0])
        if typical > 0 and (np.abs(tokens - expected) <= _PRINTED * tokens + typical).all():
            return np.full(len(step), typical)
        distinct = np.flatnonzero(np.r_[True, tokens[1:] > tokens[:-1]])
        mean = np.diff(tokens[distinct]) / np.diff(step[distinct])
        rate = np.repeat(mean, np.diff(distinct))
        rate = np.r_[rate, np.full(len(step) - 1 - len(rate), mean[-1])]
    rounded = np.rint(rate)
    rate = np.where(np.abs(rate - rounded) <= 1e-6 * rounded, rounded, rate)
    return np.r_[rate[:1], rate] if convention == AFTER else np.r_[rate, rate[-1:]]


def recognise(step: np.ndarray, tokens: np.ndarray, batch: np.ndarray, by_column: bool) -> str | None:
    """Whether the counts stand for before or after the row's step, as far as the log itself shows it.

    Shown by the row of step 0 (0 tokens: before; its own batch: after); by a fixed batch b (step·b or, in logs that
    count steps from 1, (step - 1)·b: before; (step + 1)·b: after); or by two neighbouring steps of different batch,
    between which the counter moves by the first one's batch (before) or the second one's (after). A counter that
    equals step·b stays as it is: an evaluation after `step` updates has seen just these tokens.

    Args:
        step: int64 (rows,), ascending.
        tokens: float64 (rows,), as logged, complete.
        batch: float64 (rows,).
        by_column: the batch has a source besides the tokens themselves, so that its switches are evidence.
    """
    if step[0] == 0:
        for excess, convention in ((tokens[0], BEFORE), (tokens[0] - batch[0], AFTER)):
            if abs(excess) <= _COUNT_TOLERANCE * batch[0]:
                return convention
    if (batch == batch[0]).all():
        steps_counted = tokens / batch[0] - step
        for difference, convention in ((0, BEFORE), (1, AFTER), (-1, BEFORE)):
            if (np.abs(steps_counted - difference) <= _COUNT_TOLERANCE).mean() >= _AGREEING_ROWS:
                return convention
    return _shown_by_switch(step, tokens, batch) if by_column else None


def _shown_by_switch(step: np.ndarray, tokens: np.ndarray, batch: np.ndarray) -> str | None:
    at = np.flatnonzero((batch[1:] != batch[:-1]) & (step[1:] - step[:-1] == 1))
    if not len(at):
        return None
    moved = tokens[at + 1] - tokens[at]
    tolerance = _COUNT_TOLERANCE * np.minimum(batch[at], batch[at + 1])
    before = np.abs(moved - batch[at]) <= tolerance
    after = np.abs(moved - batch[at + 1]) <= tolerance
    if before.all() == after.all():
        return None
    return BEFORE if before.all() else AFTER


def _shows_stages(rate: np.ndarray) -> bool:
    """Whether the increments are few constant stretches, each positive."""
    if not rate.min() > 0:
        return False
    changes = np.abs(rate[1:] - rate[:-1]) > 1e-6 * rate[:-1]
    return int(changes.sum()) < min(_MAX_STAGES, max(8, len(rate) // 8))


def _interpolated(step: np.ndarray, known_step: np.ndarray, known_tokens: np.ndarray) -> np.ndarray:
    """Linear in the step between known counts, at the nearest rate beyond them (never below 0)."""
    tokens = np.interp(step, known_step, known_tokens)
    ahead, behind = step < known_step[0], step > known_step[-1]
    first, last = _rate(known_step, known_tokens, 0), _rate(known_step, known_tokens, len(known_step) - 2)
    tokens[ahead] = np.maximum(known_tokens[0] - first * (known_step[0] - step[ahead]), 0.0)
    tokens[behind] = known_tokens[-1] + last * (step[behind] - known_step[-1])
    return tokens


def _rate(step: np.ndarray, tokens: np.ndarray, row: int) -> float:
    """Tokens per step between `row` and the next."""
    return float((tokens[row + 1] - tokens[row]) / (step[row + 1] - step[row]))


def _joined_counter(step: np.ndarray, tokens: np.ndarray, attempt: np.ndarray) -> tuple[np.ndarray, list[Notice]]:
    """Counters that started again with an attempt, moved up to where the attempt before it had got."""
    tokens = tokens.copy()
    seams = np.flatnonzero((attempt[1:] != attempt[:-1]) & (tokens[1:] < tokens[:-1])) + 1
    if not len(seams):
        return tokens, []
    for row in seams.tolist():
        neighbour = row - 2 if row > 1 else min(row, len(step) - 2)
        rate = max(_rate(step, tokens, neighbour), 0.0)
        reached = tokens[row - 1] + rate * (step[row] - step[row - 1])
        tokens[row:] += reached - tokens[row]
    text = f"the token counter starts again at {shown('step', step[seams])}: continued from the earlier attempt"
    return tokens, [Notice("tokens_restarted", text)]


def _refuse_negative(tokens: np.ndarray, step: np.ndarray, lines: np.ndarray, known: np.ndarray) -> None:
    if tokens.min() >= 0:
        return
    row = int(np.argmax(tokens < 0))
    raise TokenAxisError(
        f"the tokens column is negative at step {step[row]}: {tokens[row]:,.0f}",
        line=int(lines[known[row]]),
        remedy="declare another column, e.g. `defaults: {columns: {tokens: consumed_tokens}}`, or remove the column",
    )


def _refuse_decrease(tokens: np.ndarray, step: np.ndarray, lines: np.ndarray, known: np.ndarray) -> None:
    falls = tokens[1:] < tokens[:-1]
    if not falls.any():
        return
    row = int(np.argmax(falls)) + 1
    raise TokenAxisError(
        f"the tokens column decreases from {tokens[row - 1]:,.0f} to {tokens[row]:,.0f} at step {step[row]}, "
        "while the step goes on",
        line=int(lines[known[row]]),
        remedy="declare another column, e.g. `defaults: {columns: {tokens: consumed_tokens}}`, or split the file there",
    )
