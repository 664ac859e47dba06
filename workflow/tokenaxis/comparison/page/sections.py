"""What the template needs, section by section: texts and exact values, no markup but figures, style and script."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from tokenaxis.comparison import quantities as q
from tokenaxis.comparison.answers import Answer
from tokenaxis.comparison.curves import Curve
from tokenaxis.comparison.model import RunResult
from tokenaxis.comparison.page.comparisons import (
    conventions_view,
    difference_view,
    hindsight_view,
    scaling_view,
    trade_off_view,
)
from tokenaxis.comparison.page.names import anchor, label
from tokenaxis.comparison.page.plotting import payload, plotly_source
from tokenaxis.comparison.page.run_details import run_row
from tokenaxis.comparison.page.svg import inline
from tokenaxis.comparison.tables import in_order
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
    hours = {(row["run"], row["target"]): row["hours"] for row in material.tables["targets"].rows}
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
        **_matrices(material, runs, hours),
        "level": _level(material),
        "baseline": answers.baseline,
        "baseline_reason": answers.baseline_reason,
        "verdicts": VERDICTS,
        "hindsight": [hindsight_view(entry) for entry in material.hindsight],
        "differences": [difference_view(entry) for entry in material.differences],
        "scaling": scaling_view(material.scaling),
        "batch_fitted": any(entry.critical.batch for entry in material.trade_offs),
        "trade_offs": [trade_off_view(entry) for entry in material.trade_offs],
        "conventions": conventions_view(material, runs),
        "run_rows": [run_row(material, run, row) for run, row in zip(runs, material.tables["runs"].rows, strict=True)],
        "refused": material.tables["refused"].rows,
        "passed_over": sorted(sweep.passed_over, key=lambda entry: str(entry.get("name"))),
        "parameters": _parameters(sweep.parameters),
        "tables": [(name, _files_of(name), len(table.rows)) for name, table in material.tables.items()],
    }


def _files_of(table: str) -> list[str]:
    return [f"{table}.{kind}" for kind in ("csv", "parquet", "md", "tex")]


def _counts(material: Material) -> list[tuple[str, str]]:
    sweep, answers = material.sweep, material.answers
    statuses = [cell.status for cell in answers.cells.values()]
    found = [(q.whole(len(sweep.runs)), "run compared" if len(sweep.runs) == 1 else "runs compared")]
    found.append((q.whole(len(answers.targets)), "target loss" if len(answers.targets) == 1 else "target losses"))
    for status, word in STATUS_WORDS.items():
        if status in statuses:
            about = "without an answer" if status == "not_available" else f"answers {word}"
            found.append((q.whole(statuses.count(status)), about))
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


def _matrices(
    material: Material, runs: list[RunResult], hours: dict[tuple[str, float], float | None]
) -> dict[str, Any]:
    """The table of runs and targets, and a second one of the targets that too few runs were asked for."""
    answers = material.answers
    asked = {target: sum((run, target) in answers.cells for run in answers.runs) for target in answers.targets}
    main = [target for target, count in asked.items() if count >= min(material.min_runs, len(runs))]
    main = main or list(answers.targets)  # every run was asked for something else
    rest = [target for target in answers.targets if target not in main]
    concerned = [run for run in runs if any((run.id, target) in answers.cells for target in rest)]
    return {
        "targets": [q.target(target) for target in main],
        "target_rows": [_target_row(material, run, main, hours) for run in runs],
        "more_targets": [q.target(target) for target in rest],
        "more_rows": [_target_row(material, run, rest, hours) for run in concerned],
        "sparse": any((run.id, target) not in answers.cells for run in runs for target in main),
    }


def _target_row(
    material: Material, run: RunResult, targets: list[float], hours: dict[tuple[str, float], float | None]
) -> dict[str, Any]:
    answers = material.answers
    cells = []
    for target in targets:
        cell = answers.cells.get((run.id, target))
        if cell is None:
            cells.append(_not_asked(material.curves[run.id], target))
        else:
            cells.append(_cell(cell, hours.get((run.id, target)), answers.baseline))
    return {
        "run": run.id,
        "label": label(run.id),
        "name": run.name,
        "anchor": anchor(run.id),
        "cells": cells,
        "loss": (run.fits.get("loss") or "").replace("_", " ") if answers.mixed else "",
        "baseline": run.id == answers.baseline,
    }


def _not_asked(curve: Curve, target: float) -> dict[str, Any]:
    """Why a run has nothing to say about a target of other runs: automatic targets lie around where it stands."""
    word, why = "not asked", "this target is not one of the run's"
    if len(curve.smooth.value):
        low, high = float(curve.smooth.value.min()), float(curve.smooth.value.max())
        if target > high:
            word, why = "starts below", "the run's first logged losses lie below this target already"
        elif target > low:
            word, why = "passed early", "the run passed this loss long before its end: not one of its automatic targets"
        else:
            word, why = "too far", "too far below the run's last loss to be one of its automatic targets"
    return {"status": "not_asked", "word": word, "sort": "", "lines": [], "title": f"{why}; fits.targets asks all runs"}


def _cell(cell: Answer, hours: float | None, baseline: str | None) -> dict[str, Any]:
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
        lines.append(f"{q.times(cell.ratio)} baseline {q.times_interval(cell.ratio_low, cell.ratio_high)}".rstrip())
    if cell.reached_by_end is not None and cell.status == "predicted":
        lines.append(f"{q.chance(cell.reached_by_end)} by the planned end")
    if cell.low_calibrated is not None:
        lines.append(f"calibrated {q.interval(cell.low_calibrated, cell.high_calibrated)}")
    if cell.calibration:
        title += f"; {cell.calibration}"
    return {
        "status": cell.status,
        "word": STATUS_WORDS[cell.status],
        "sort": repr(cell.tokens),
        "tokens": q.short(cell.tokens),
        "interval": q.interval(cell.low, cell.high),
        "title": title,
        "lines": lines,
        "horizon": q.times(cell.horizon) if cell.status == "predicted" and cell.horizon else "",
        "verdict": cell.verdict if cell.verdict and cell.verdict != "REACHED" else None,
        "verdict_reason": cell.verdict_reason or "",
        "crossed_back": cell.crossed_back,
        "warnings": [code.replace("_", " ") for code in cell.warnings],
        "reason": None,
    }


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
