"""What the page says about each log: a row of the table of runs, and the details behind it."""

from __future__ import annotations

import json
from typing import Any
from urllib.parse import quote

from tokenaxis.comparison import quantities as q
from tokenaxis.comparison.model import RunResult
from tokenaxis.comparison.page.markup import escaped
from tokenaxis.comparison.page.names import anchor, label
from tokenaxis.comparison.tables import batch_stages, warnings_of

#: runs whose facts the page holds itself; with more, their passports do
MOST_WITH_FACTS = 100


def run_row(run: RunResult, row: dict[str, Any]) -> str:
    """The run's row of the table of runs, as HTML; `row` as in `tables.run_row`."""
    name = escaped(run.id)
    title = f"{q.exact(row['last_tokens'])} tokens"
    superseded = q.short(row["superseded_tokens"]) if row["superseded_tokens"] else ""
    return (
        f'<tr data-run="{name}"><th scope="row"><a href="#{anchor(run.id)}" title="{name} ({escaped(run.name)})">'
        f'{escaped(label(run.id))}</a></th><td data-sort="{escaped(row["last_tokens"])}" title="{title}">'
        f"{q.short(row['last_tokens'])}</td><td>{q.whole(row['last_step'])}</td>"
        f'<td data-sort="{escaped(row["batch_first"])}">{_batch_text(run)}</td>'
        f"<td>{q.loss(row['last_train_loss'])}</td><td>{q.loss(row['last_val_loss'])}</td>"
        f"<td>{escaped(row['rows_kept'])} / {escaped(row['rows_read'])}</td>"
        f"<td>{escaped(row['attempts'])}</td><td>{superseded}</td><td>{len(warnings_of(run))}</td>"
        f'<td><a href="{_passport(run)}">passport</a></td></tr>\n'
    )


def details(run: RunResult, row: dict[str, Any], with_facts: bool) -> str:
    """What is known of the log, behind its name, as HTML; `row` as in `tables.run_row`."""
    warnings = warnings_of(run)
    about = f"{escaped(run.name)}{' · ' + escaped(row['format']) if row['format'] else ''}"
    if warnings:
        about += f" · {len(warnings)} warning{'s' if len(warnings) > 1 else ''}"
    return (
        f'<details class="run" id="{anchor(run.id)}" data-run="{escaped(run.id)}"><summary><b>{escaped(run.id)}</b> '
        f'<span class="muted">{about}</span></summary><dl class="details">{_entries(run, row, warnings, with_facts)}'
        f'<div><dt>passport</dt><dd><a href="{_passport(run)}">Where each number comes from</a></dd></div>'
        "</dl></details>\n"
    )


def _entries(run: RunResult, row: dict[str, Any], warnings: list[dict[str, str]], with_facts: bool) -> str:
    facts = run.conventions.get("facts") or {}
    rows = {key: escaped(row[f"rows_{key}"]) for key in ("read", "kept", "superseded", "merged", "bad")}
    account = "{read} read = {kept} kept + {superseded} superseded + {merged} merged + {bad} bad".format(**rows)
    attempts = [_attempt(entry) for entry in (run.axis_meta.get("attempts") or [])[:50]]
    stages = [_stage(stage) for stage in batch_stages(run)[:50]]
    source = f'<span class="muted">from: {escaped(row["batch_source"])}</span>' if row["batch_source"] else ""
    said = [f"{escaped(entry['message'])} <code>{escaped(entry['code'])}</code>" for entry in warnings]
    conflicts = [escaped(_conflict(entry)) for entry in run.conventions.get("conflicts") or []]
    parts = (
        ("warnings", _list("ul", said, ' class="warn"')),
        ("rows", account),
        ("attempts", _list("ol", [escaped(text) for text in attempts])),
        ("batch", _list("ol", [escaped(text) for text in stages]) + (source if stages else "")),
        ("fit", escaped(_fit_text(run.fits))),
        ("facts", _facts_table(run.id, facts) if with_facts and facts else ""),
        ("conflicts", _list("ul", conflicts, ' class="warn"')),
    )
    return "".join(f"<div><dt>{name}</dt>{_described(text)}</div>" for name, text in parts if text)


def _described(markup: str) -> str:
    return markup if markup.startswith("<dd") else f"<dd>{markup}</dd>"


def _list(kind: str, items: list[str], attribute: str = "") -> str:
    return f"<{kind}>{''.join(f'<li{attribute}>{item}</li>' for item in items)}</{kind}>" if items else ""


def _facts_table(run: str, facts: dict[str, Any]) -> str:
    head = "".join(f'<th scope="col">{name}</th>' for name in ("fact", "value", "source", "note"))
    rows = []
    for key in sorted(facts):
        name, value, source, note = map(escaped, _fact(key, facts[key]))
        texts = f'<td>{value}</td><td class="text">{source}</td><td class="text">{note}</td>'
        rows.append(f'<tr><th scope="row">{name}</th>{texts}</tr>')
    return (
        f'<dd class="scroll" tabindex="0" role="region" aria-label="Facts of {escaped(run)}"><table><thead><tr>{head}'
        f"</tr></thead><tbody>{''.join(rows)}</tbody></table></dd>"
    )


def _passport(run: RunResult) -> str:
    return f"../passports/{quote(run.id, safe='', errors='surrogatepass')}.md"


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
