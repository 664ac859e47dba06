"""From a raw log to its token axis: the order of the steps, and the description of the result."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from tokenaxis.axis import accounts, wording
from tokenaxis.axis.attempts import Joined, join_attempts
from tokenaxis.axis.batch import Batch, no_batch, resolve_batch
from tokenaxis.axis.batch_column import BatchColumn
from tokenaxis.axis.means import place_means
from tokenaxis.axis.model import TokenAxis
from tokenaxis.axis.rows import UsableRows, usable_rows
from tokenaxis.axis.stages import describe_stages, stage_starts
from tokenaxis.axis.tokens import DECLARED, FORMAT, ConventionHints, Tokens, tokens_from_batch, tokens_from_column
from tokenaxis.axis.tokens_column import AFTER, BEFORE, complete
from tokenaxis.axis.warmup import RateSummary, Warmup, find_warmup, summarise_rate
from tokenaxis.columns import LOSSES
from tokenaxis.declarations import Declaration
from tokenaxis.errors import Notice, TokenAxisError
from tokenaxis.readers.remedies import CONVENTION

if TYPE_CHECKING:
    from tokenaxis.readers.base import IntervalMean, RawLog

SCHEMA = "tokenaxis/token_axis/1"
_OPTIONAL = ("train_loss", "val_loss", "lr", "grad_norm", "elapsed_s")


def build_axis(raw: RawLog, declaration: Declaration, name: str, tokens_convention: str) -> TokenAxis:
    """One clean table, one row a step, on the axis of tokens consumed before the step.

    Args:
        raw: rows in file order, as a reader hands them over; left alone.
        declaration: what the user declares about the run.
        name: the run's name, a path relative to the sweep; its last component may state the batch size.
        tokens_convention: "auto", "before" or "after": what a tokens column counts where neither the declaration nor
            the format says so ("auto": ask the log itself).

    Raises:
        TokenAxisError: no usable row, no loss, no batch size, or tokens that cannot be.
    """
    try:
        with np.errstate(over="ignore", invalid="ignore"):  # absurd numbers become inf, and are refused
            return _build(raw, declaration, name, _hints(raw, declaration, tokens_convention))
    except TokenAxisError as error:
        raise error.within(name) from None


def _build(raw: RawLog, declaration: Declaration, name: str, hints: ConventionHints) -> TokenAxis:
    rows = usable_rows(raw)
    if not any(loss in rows.columns for loss in LOSSES):
        remedy = "declare the column that holds it, e.g. `defaults: {columns: {train_loss: my_loss}}`"
        raise TokenAxisError("the log has neither a training nor a validation loss", remedy=remedy)
    placed = place_means(rows, _mean(raw, declaration))
    rows = placed.rows
    joined = join_attempts(rows.step, rows.columns)
    column = BatchColumn.from_values(joined.columns.get("tokens_per_step"))
    updates = placed.steps_are_updates and _counts_after(raw, hints)
    said = ConventionHints(None, BEFORE, None) if updates else hints
    tokens, batch = _tokens_and_batch(raw, rows, joined, column, declaration, name, said)
    if updates:
        tokens = replace(tokens, convention=AFTER, convention_source=DECLARED if hints.declared else FORMAT)
    if placed.behind.any():
        tokens = replace(tokens, before=tokens.before + placed.behind[joined.row] * batch.per_row)
    starts, stage_notices = stage_starts(batch.per_row)
    rate = joined.columns.get("lr")
    warmup = find_warmup(joined.step, rate, starts)
    lost = accounts.superseded_tokens(joined, rows, batch)
    unusable, cell_notices = accounts.unusable_cells(raw, rows, joined)
    warnings = [
        *raw.warnings,
        *accounts.bad_row_notices(raw),
        *rows.warnings,
        *placed.notices,
        *accounts.attempt_notices(joined, lost),
        *cell_notices,
        *_column_notices(joined, rows, raw, column),
        *batch.warnings,
        *tokens.warnings,
        *stage_notices,
        *_warmup_notices(warmup, declaration),
        *_plan_notices(joined.step, tokens.before, declaration),
    ]
    meta = {
        "schema": SCHEMA,
        "run": name,
        "format": raw.format,
        "logged_steps": [int(raw.columns["step"].min()), int(raw.columns["step"].max())],
        "rows": _row_counts(raw, rows, joined, placed.split),
        "bad_lines": [int(line) for line in rows.bad_lines[: accounts.MAX_LINES]],
        "unusable": unusable,
        "attempts": accounts.describe_attempts(joined, lost, accounts.superseded_seconds(joined, rows)),
        "superseded_tokens": accounts.number(float(lost.sum())),
        "tokens": _describe_tokens(tokens),
        "batch": {"source": batch.source, "stages": describe_stages(starts, joined.step, tokens.before, batch.per_row)},
        "warmup": {"end_step": warmup.end_step, "inside": warmup.inside, "reason": warmup.reason},
        "lr": _describe_rate(summarise_rate(joined.step, rate, warmup)),
        "columns": dict(raw.names),
        "facts": [
            {"key": key, "value": accounts.plain(value), "source": source, "note": note}
            for key, value, source, note in raw.facts
        ],
        "warnings": [notice.as_dict() for notice in warnings],
    }
    return TokenAxis(_table(joined, tokens, batch), meta)


def _hints(raw: RawLog, declaration: Declaration, tokens_convention: str) -> ConventionHints:
    for value in (declaration.tokens_convention, raw.tokens_convention):
        if value not in (None, BEFORE, AFTER):
            raise TokenAxisError(f"tokens_convention is '{value}'", remedy=CONVENTION)
    if tokens_convention not in ("auto", BEFORE, AFTER):
        raise TokenAxisError(
            f"token_axis.tokens_convention is '{tokens_convention}'", remedy="set `auto`, `before` or `after`"
        )
    stated = None if tokens_convention == "auto" else tokens_convention
    return ConventionHints(declaration.tokens_convention, raw.tokens_convention, stated)


def _tokens_and_batch(
    raw: RawLog,
    rows: UsableRows,
    joined: Joined,
    column: BatchColumn | None,
    declaration: Declaration,
    name: str,
    hints: ConventionHints,
) -> tuple[Tokens, Batch]:
    counted = None
    if "tokens" in joined.columns:
        counted = complete(joined.step, joined.columns["tokens"], joined.attempt, rows.lines[joined.row])
    batch = resolve_batch(joined.step, column, declaration, raw.facts, name)
    if counted is not None:
        tokens, batch = tokens_from_column(joined.step, counted, batch, hints, raw.names.get("tokens", "tokens"))
    elif batch is not None:
        tokens = tokens_from_batch(joined.step, batch)
    if batch is None:
        raise no_batch(name)
    return tokens, batch


def _table(joined: Joined, tokens: Tokens, batch: Batch) -> dict[str, np.ndarray]:
    table = {
        "step": joined.step,
        "tokens": tokens.before,
        "tokens_per_step": batch.per_row,
        "attempt": joined.attempt,
    }
    table.update((name, joined.columns[name]) for name in _OPTIONAL if name in joined.columns)
    return {name: np.ascontiguousarray(values) for name, values in table.items()}  # a file turned around is a view


def _mean(raw: RawLog, declaration: Declaration) -> IntervalMean | None:
    """What the training loss is a mean over: as declared, else as the reader knows; None: of one step."""
    from tokenaxis.readers.base import IntervalMean

    known = raw.means.get("train_loss")
    steps = declaration.facts.get("train_loss_interval_steps")
    if steps is None:
        return known
    if isinstance(steps, bool) or not isinstance(steps, int | float) or not 1 <= steps < 2**53:
        raise TokenAxisError(f"the declared train_loss_interval_steps, {steps!r}, is no number of steps")
    return IntervalMean(float(steps), known is not None and known.counted_after)


def _counts_after(raw: RawLog, hints: ConventionHints) -> bool:
    stated = next((said for said in (hints.declared, hints.format, hints.params) if said), None)
    return "tokens" in raw.columns and stated == AFTER


def _row_counts(raw: RawLog, rows: UsableRows, joined: Joined, split: int) -> dict[str, int]:
    losses = {loss: joined.columns.get(loss) for loss in LOSSES}
    return {
        "read": int(raw.rows_read),
        "bad": len(rows.bad_lines),
        "superseded": joined.superseded,
        "merged": joined.merged,
        "kept": len(joined.step),
        **({"split": split} if split else {}),
        **{f"with_{loss}": 0 if values is None else int((~np.isnan(values)).sum()) for loss, values in losses.items()},
    }


def _describe_tokens(tokens: Tokens) -> dict[str, Any]:
    return {
        "source": tokens.source,
        "convention": tokens.convention,
        "convention_source": tokens.convention_source,
        "first": accounts.number(float(tokens.before[0])),
        "last": accounts.number(float(tokens.before[-1])),
        "bounds": None if tokens.bounds is None else [accounts.number(bound) for bound in tokens.bounds],
    }


def _describe_rate(rate: RateSummary | None) -> dict[str, Any] | None:
    if rate is None:
        return None
    return {"peak": rate.peak, "last": rate.last, "constant_after_warmup": rate.constant_after_warmup}


def _column_notices(joined: Joined, rows: UsableRows, raw: RawLog, column: BatchColumn | None) -> list[Notice]:
    notices = [
        Notice("empty_column", f"the column {accounts.named(name, raw)} holds no finite number")
        for name in (*LOSSES, "tokens", "tokens_per_step")
        if name in joined.columns and np.isnan(joined.columns[name]).all()
    ]
    if column is not None and len(column.unusable):
        lines = wording.shown("line", np.sort(rows.lines[joined.row[column.unusable]]))
        text = f"{wording.counted(len(column.unusable), 'batch size')} of zero or less ({lines}): taken as blank"
        notices.append(Notice("unusable_batch", text))
    return notices


def _warmup_notices(warmup: Warmup, declaration: Declaration) -> list[Notice]:
    if warmup.inside:
        return [Notice("inside_warmup", warmup.reason)]
    if warmup.end_step is None and declaration.fit_start_step is None:
        return [Notice("warmup_not_visible", f"the end of warm-up cannot be seen: {warmup.reason}")]
    return []


def _plan_notices(step: np.ndarray, tokens: np.ndarray, declaration: Declaration) -> list[Notice]:
    """A planned end that the log has passed already is misspelt, or of another run."""
    found = []
    for key, planned, last, unit in (
        ("planned_tokens", declaration.planned_tokens, float(tokens[-1]), "tokens"),
        ("planned_steps", declaration.planned_steps, float(step[-1]), "steps"),
    ):
        if planned is not None and planned < last:
            text = f"{key} is declared as {planned:,.0f}, but the log already holds {last:,.0f} {unit}"
            found.append(Notice("planned_end_passed", text))
    return found
