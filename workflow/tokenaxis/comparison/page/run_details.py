"""What the page says about each log: a row of the table of runs, and the details behind it."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from tokenaxis.comparison import quantities as q
from tokenaxis.comparison.model import RunResult
from tokenaxis.comparison.page.names import anchor, label
from tokenaxis.comparison.tables import batch_stages, warnings_of

if TYPE_CHECKING:
    from tokenaxis.comparison.page.render import Material

#: runs whose facts the page holds itself; with more, their passports do
MOST_WITH_FACTS = 100


def run_row(material: Material, run: RunResult, row: dict[str, Any]) -> dict[str, Any]:
    small = len(material.sweep.runs) <= MOST_WITH_FACTS
    meta, fits, facts = run.axis_meta, run.fits, run.conventions.get("facts") or {}
    return {
        **row,
        "label": label(run.id),
        "last_step_text": q.whole(row["last_step"]),
        "anchor": anchor(run.id),
        "passport": f"../passports/{quote(run.id, safe='', errors='surrogatepass')}.md",
        "batch": _batch_text(run),
        "tokens_text": q.short(row["last_tokens"]),
        "tokens_title": f"{q.exact(row['last_tokens'])} tokens",
        "superseded": q.short(row["superseded_tokens"]) if row["superseded_tokens"] else "",
        "train": q.loss(row["last_train_loss"]),
        "val": q.loss(row["last_val_loss"]),
        "warning_list": warnings_of(run),
        "stages": [_stage(stage) for stage in batch_stages(run)[:50]],
        "attempt_list": [_attempt(entry) for entry in (meta.get("attempts") or [])[:50]],
        "fit_text": _fit_text(fits),
        "facts": [_fact(key, facts[key]) for key in sorted(facts)] if small else [],
        "conflicts": [_conflict(entry) for entry in run.conventions.get("conflicts") or []],
    }


def _batch_text(run: RunResult) -> str:
    stages = batch_stages(run)
    if not stages:
        return q.MISSING
    if len(stages) == 1:
        return q.short(stages[0]["tokens_per_step"])
    ends = q.short(stages[0]["tokens_per_step"]), q.short(stages[-1]["tokens_per_step"])
    return f"{ends[0]} → {ends[1]} in {len(stages)} stages"


def _stage(stage: dict[str, Any]) -> str:
    first, last = (q.whole(stage.get(f"{end}_step")) for end in ("first", "last"))
    return f"steps {first} to {last}: {q.exact(stage['tokens_per_step'])} tokens per step"


def _attempt(entry: dict[str, Any]) -> str:
    first, last = (q.whole(entry.get(f"{end}_step")) for end in ("first", "last"))
    text = f"steps {first} to {last}, {q.plural(entry['rows'], 'row')}"
    if entry.get("superseded_rows"):
        text += f"; the next attempt repeated {q.plural(entry['superseded_rows'], 'row')} of it"
        text += f" ({q.short(entry.get('superseded_tokens'))} tokens)"
    return text


def _fit_text(fits: dict[str, Any]) -> str:
    fit = fits.get("fit")
    if not fit:
        return fits.get("fit_not_available") or ""
    return (
        f"{fits.get('law')} law on {fits.get('loss')} from step {q.whole(fits.get('fit_start_step'))}: irreducible "
        f"loss {q.loss(fit.get('irreducible_loss'))} nats per token, exponent {q.loss(fit.get('exponent'))}"
        + (f", at a bound: {', '.join(fit['at_bounds'])}" if fit.get("at_bounds") else "")
    )


def _fact(key: str, fact: dict[str, Any]) -> tuple[str, str, str, str]:
    value = fact.get("value")
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, sort_keys=True)
    return key, text, str(fact.get("source") or ""), str(fact.get("note") or "")


def _conflict(entry: dict[str, Any]) -> str:
    kept, ignored = (json.dumps(entry.get(key), ensure_ascii=False, sort_keys=True) for key in ("kept", "ignored"))
    return f"{entry.get('key')}: kept {kept}, ignored {ignored}"
