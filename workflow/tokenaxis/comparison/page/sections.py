"""What the template needs, section by section: texts and exact values, no markup but figures, style and script."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from tokenaxis.comparison import quantities as q
from tokenaxis.comparison.answers import Answer
from tokenaxis.comparison.headlines import orders_by_convention
from tokenaxis.comparison.model import RunResult
from tokenaxis.comparison.page.plotting import payload, plotly_source
from tokenaxis.comparison.page.svg import inline
from tokenaxis.comparison.tables import batch_stages, flops_field, in_order, warnings_of
from tokenaxis.errors import printable

if TYPE_CHECKING:
    from tokenaxis.comparison.page.render import Material

#: verdicts in words for the page's key
VERDICTS = {
    "CONVERGED": "the newest interval is narrow enough",
    "NOT YET CONVERGED": "the interval is still wide",
    "NOT ENOUGH DATA": "too few rows for a fit",
    "DIVERGED": "the loss rises at the end of the log",
    "REACHED": "the target lies inside the log",
}
STATUS_WORDS = {
    "reached": "reached",
    "predicted": "predicted",
    "unreachable": "unreachable",
    "not_available": "no answer",
}


def context(material: Material) -> dict[str, Any]:
    """Everything that page.html.j2 names."""
    from markupsafe import Markup

    from tokenaxis.comparison.page.render import FOLDER

    sweep, answers = material.sweep, material.answers
    runs = in_order(sweep.runs)
    return {
        "sweep": sweep,
        "style": Markup((FOLDER / "page.css").read_text(encoding="utf-8")),
        "script": Markup((FOLDER / "page.js").read_text(encoding="utf-8")),
        "plotly": Markup(plotly_source() or ""),
        "explore": Markup((FOLDER / "explore.js").read_text(encoding="utf-8")),
        "data": Markup(payload(material)) if plotly_source() else "",
        "counts": _counts(material),
        "headlines": material.headlines,
        "notices": [notice.message for notice in answers.notices],
        "figures": {drawing.name: _figure(material, drawing) for drawing in material.drawings},
        "targets": [q.target(target) for target in answers.targets],
        "target_rows": [_target_row(material, run) for run in runs],
        "level": _level(material),
        "baseline": answers.baseline,
        "baseline_reason": answers.baseline_reason,
        "verdicts": VERDICTS,
        "hindsight": [_hindsight(entry) for entry in material.hindsight],
        "differences": [_difference(entry) for entry in material.differences],
        "trade_offs": [_trade_off(entry) for entry in material.trade_offs],
        "conventions": _conventions(material, runs),
        "run_rows": [_run_row(material, run, row) for run, row in zip(runs, material.tables["runs"].rows, strict=True)],
        "refused": material.tables["refused"].rows,
        "passed_over": sorted(sweep.passed_over, key=lambda entry: str(entry.get("name"))),
        "parameters": _parameters(sweep.parameters),
        "tables": [(name, _files_of(name), len(table.rows)) for name, table in material.tables.items()],
    }


def _files_of(table: str) -> list[str]:
    kinds = ("csv", "parquet", "md", "tex") if table == "targets" else ("csv", "parquet")
    return [f"{table}.{kind}" for kind in kinds]


def _counts(material: Material) -> list[tuple[str, str]]:
    sweep, answers = material.sweep, material.answers
    statuses = [cell.status for cell in answers.cells.values()]
    found = [(q.whole(len(sweep.runs)), "run compared" if len(sweep.runs) == 1 else "runs compared")]
    found.append((q.whole(len(answers.targets)), "target loss" if len(answers.targets) == 1 else "target losses"))
    found += [(q.whole(statuses.count(status)), f"answers {word}") for status, word in STATUS_WORDS.items()
              if status in statuses]  # fmt: skip
    if sweep.refused:
        found.append((q.whole(len(sweep.refused)), "file refused" if len(sweep.refused) == 1 else "files refused"))
    return found


def _figure(material: Material, drawing: Any) -> dict[str, Any]:
    from markupsafe import Markup

    return {
        "name": drawing.name,
        "title": drawing.title,
        "caption": drawing.caption,
        "alt": drawing.alt,
        "svg": Markup(inline(material.inline[drawing.name], f"figure-{drawing.name}-alt")),
        "files": [f"figures/{drawing.name}.{kind}" for kind in material.figure_kinds],
    }


def _level(material: Material) -> str:
    levels = sorted({cell.level for cell in material.answers.cells.values() if cell.level is not None})
    return " or ".join(q.percent(level) for level in levels)


def _target_row(material: Material, run: RunResult) -> dict[str, Any]:
    answers = material.answers
    hours = {(row["run"], row["target"]): row["hours"] for row in material.tables["targets"].rows}
    cells = [
        _cell(answers.cells.get((run.id, target)), target, hours.get((run.id, target)), answers.baseline)
        for target in answers.targets
    ]
    return {
        "run": run.id,
        "label": label(run.id),
        "name": run.name,
        "anchor": anchor(run.id),
        "cells": cells,
        "loss": (run.fits.get("loss") or "").replace("_", " ") if answers.mixed else "",
        "baseline": run.id == answers.baseline,
    }


def label(run: str) -> str:
    """A run's name for the first column of a table; the whole name is in the tooltip and in the run's details."""
    return q.elided(printable(run), 36)


def anchor(run: str) -> str:
    """A fragment identifier for a run: safe whatever the run is called."""
    return "run-" + quote(run, safe="", errors="surrogatepass").replace("%", "_")


def _cell(cell: Answer | None, target: float, hours: float | None, baseline: str | None) -> dict[str, Any]:
    if cell is None:
        return {
            "status": "not_asked",
            "word": q.MISSING,
            "sort": "",
            "lines": [],
            "title": "not a target of this run",
        }
    if not cell.answered:
        return {"status": cell.status, "word": STATUS_WORDS[cell.status], "sort": "", "lines": [],
                "reason": cell.reason or cell.verdict_reason, "title": cell.reason or ""}  # fmt: skip
    title = f"{q.exact(cell.tokens)} tokens"
    if cell.low is not None:
        high = q.exact(cell.high) if cell.high is not None else "unbounded"
        title += f", {q.percent(cell.level)} interval from {q.exact(cell.low)} to {high}"
    place = [f"step {q.whole(cell.step)}"] if cell.step is not None else []
    place += [q.duration(hours * 3600)] if hours is not None else []
    lines = [" · ".join(place)] if place else []
    if cell.ratio is not None and cell.run != baseline:
        lines.append(
            f"{q.times(cell.ratio)} {q.times_interval(cell.ratio_low, cell.ratio_high)} baseline".replace("  ", " ")
        )
    if cell.status == "predicted" and cell.horizon:
        lines.append(f"{q.times(cell.horizon)} the tokens seen")
    return {
        "status": cell.status,
        "word": STATUS_WORDS[cell.status],
        "sort": repr(cell.tokens),
        "tokens": q.short(cell.tokens),
        "interval": q.interval(cell.low, cell.high),
        "title": title,
        "lines": lines,
        "verdict": cell.verdict if cell.verdict and cell.verdict != "REACHED" else None,
        "verdict_reason": cell.verdict_reason or "",
        "crossed_back": cell.crossed_back,
        "warnings": [code.replace("_", " ") for code in cell.warnings],
        "reason": None,
    }


def _hindsight(entry: Any) -> dict[str, Any]:
    share = f" ({100 * entry.held / entry.intervals:.0f}%)" if entry.intervals else ""
    held = f"{entry.held} of {entry.intervals}{share}" if entry.intervals else q.MISSING
    return {
        "horizon": q.times(entry.horizon),
        "predictions": entry.predictions,
        "unanswered": entry.unanswered,
        "median": q.error(entry.median_error),
        "high": q.error(entry.high_error),
        "held": held,
    }


def _difference(entry: Any) -> dict[str, Any]:
    return {
        "run": entry.run,
        "label": label(entry.run),
        "anchor": anchor(entry.run),
        "basis": "tokens" if entry.basis == "tokens" else f"FLOP ({entry.basis})",
        "tokens": q.short(entry.run_tokens),
        "title": f"{q.exact(entry.run_tokens)} tokens of the run, {q.exact(entry.baseline_tokens)} of the baseline",
        "loss": f"{entry.run_loss:.4f}",
        "baseline": f"{entry.baseline_loss:.4f}",
        "difference": f"{entry.difference:+.4f} [{entry.low:+.4f}, {entry.high:+.4f}]",
        "sort": repr(entry.difference),
        "verdict": entry.verdict,
    }


def _trade_off(entry: Any) -> dict[str, Any]:
    critical = entry.critical
    low = q.short(critical.low) if critical.low is not None else "0"
    high = f"{q.short(critical.high)}]" if critical.high is not None else "unbounded)"
    return {
        "target": q.target(entry.target),
        "batch": f"{q.short(critical.batch)} [{low}, {high}" if critical.batch else q.MISSING,
        "title": f"{q.exact(critical.batch)} tokens per step",
        "tokens_min": q.short(critical.tokens_min),
        "steps_min": q.short(critical.steps_min),
        "points": critical.points,
        "runs": ", ".join(point.cell.run for point in entry.used),
        "reason": critical.reason or "",
    }


def _conventions(material: Material, runs: list[RunResult]) -> dict[str, Any]:
    table, focus = material.tables["conventions"], material.answers.focus
    names = sorted({row["convention"] for row in table.rows})
    by_run = {(row["run"], row["convention"]): row for row in table.rows}
    key = flops_field(focus) if focus is not None else ""
    formulas = {row["convention"]: row["formula"] for row in table.rows if row["formula"]}
    rows = []
    for run in runs:
        found = [by_run.get((run.id, name), {}) for name in names]
        missing = run.conventions.get("not_available") or {}
        reasons = sorted({f"{name.replace('_', ' ')}: {reason}" for name, reason in missing.items()})
        rows.append({
            "run": run.id,
            "label": label(run.id),
            "anchor": anchor(run.id),
            "per_token": [_number(row.get("flops_per_token")) for row in found],
            "to_target": [_number(row.get(key)) for row in found],
            "mfu": _mfu(run.conventions.get("mfu")),
            "reason": "; ".join(reasons),
        })  # fmt: skip
    return {
        "names": names,
        "formulas": [(name, formulas.get(name, "")) for name in names],
        "focus": q.target(focus) if focus is not None else None,
        "has_targets": any(row.get(key) for row in table.rows),
        "common_reason": rows[0]["reason"] if len({row["reason"] for row in rows}) == 1 else "",
        "has_mfu": any(row["mfu"] for row in rows),
        "rows": rows,
        "orders": sorted(orders_by_convention(table, focus).items()),
    }


def _number(value: float | None) -> tuple[str, str]:
    return q.flop(value), q.exact(value) + " FLOP"


def _mfu(entry: dict[str, Any] | None) -> str:
    if not entry:
        return ""
    span = entry.get("range")
    value = f"{q.percent(span[0])} to {q.percent(span[1])}" if span else q.percent(entry.get("value"))
    return (
        f"{value} ({entry.get('convention') or 'all conventions'}; peak from {entry.get('peak_source') or 'not known'})"
    )


def _run_row(material: Material, run: RunResult, row: dict[str, Any]) -> dict[str, Any]:
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
        "facts": [_fact(key, facts[key]) for key in sorted(facts)],
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


def _parameters(parameters: dict[str, Any]) -> list[tuple[str, str]]:
    """Flat (section.key, value) pairs in order."""
    pairs: list[tuple[str, str]] = []

    def walk(prefix: str, value: Any) -> None:
        if isinstance(value, dict) and value:
            for key in sorted(value):
                walk(f"{prefix}.{key}" if prefix else str(key), value[key])
        else:
            pairs.append((prefix, printable(json.dumps(value, ensure_ascii=False, sort_keys=True, default=str))))

    walk("", parameters)
    return [pair for pair in pairs if pair[0]]
