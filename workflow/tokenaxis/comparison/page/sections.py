"""What the template needs, section by section: texts and exact values, no markup but figures, style and script."""

from __future__ import annotations

import functools
import json
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from tokenaxis.comparison import quantities as q
from tokenaxis.comparison.digest import read_drawn, whole_chart
from tokenaxis.comparison.model import RunResult
from tokenaxis.comparison.page.comparisons import (
    Rows,
    conventions_view,
    hindsight_view,
    scaling_view,
    trade_off_view,
)
from tokenaxis.comparison.page.markup import Parts
from tokenaxis.comparison.page.pair_rows import difference_row
from tokenaxis.comparison.page.plotting import payload, plotly_bytes, thinned_to
from tokenaxis.comparison.page.svg import inline
from tokenaxis.comparison.page.target_rows import STATUS_WORDS, target_row
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


def context(material: Material, parts: Parts) -> dict[str, Any]:
    """Everything that page.html.j2 names; what there is a piece of for each run has a place in `parts`."""
    from markupsafe import Markup

    from tokenaxis.comparison.page.render import FOLDER

    sweep, answers, shelf = material.sweep, material.answers, material.shelf
    runs = in_order(sweep.runs)
    plotly = plotly_bytes()

    def later(maker: Callable[[], Iterable[bytes]]) -> Any:
        return Markup(parts.later(maker))

    def rows(texts: Callable[[], Iterable[str]]) -> Any:
        return later(lambda: (text.encode("utf-8") for text in texts()))

    def of_each_run(part: str) -> Any:
        return later(lambda: (shelf.part(run.id, part) for run in runs))

    return {
        "sweep": sweep,
        "style": Markup((FOLDER / "page.css").read_text(encoding="utf-8")),
        "script": Markup((FOLDER / "page.js").read_text(encoding="utf-8")),
        "plotly": "" if plotly is None else later(lambda: [plotly]),
        "explore": Markup((FOLDER / "explore.js").read_text(encoding="utf-8")),
        "data": "" if plotly is None else later(lambda: payload(material, functools.partial(_chart, material))),
        "thinned": "" if plotly is None else thinned_to(len(runs)),
        "counts": _counts(material),
        "headlines": material.headlines,
        "notices": [notice.message for notice in answers.notices],
        "figures": {drawing.name: _figure(material, drawing) for drawing in material.drawings},
        **_matrices(material, runs, rows),
        "level": _level(material),
        "baseline": answers.baseline,
        "baseline_reason": answers.baseline_reason,
        "verdicts": VERDICTS,
        "hindsight": [hindsight_view(entry) for entry in material.hindsight],
        "differences": material.differences and rows(lambda: map(difference_row, material.differences)),
        "scaling": scaling_view(material.scaling),
        "batch_fitted": any(entry.critical.batch for entry in material.trade_offs),
        "trade_offs": [trade_off_view(entry) for entry in material.trade_offs],
        "conventions": conventions_view(material, runs, rows),
        "run_rows": runs and of_each_run("row"),
        "run_details": of_each_run("details"),
        "refused": material.tables["refused"].rows,
        "passed_over": sorted(sweep.passed_over, key=lambda entry: str(entry.get("name"))),
        "parameters": _parameters(sweep.parameters),
        "tables": [(name, _files_of(name), len(table.rows)) for name, table in material.tables.items()],
    }


def _chart(material: Material, run: str) -> bytes:
    """What the charts draw of a run: all that there is of a coloured one, of a grey one a thinned copy."""
    if run not in material.palette:
        return material.shelf.part(run, "chart")
    raw, windows = read_drawn(run, material.shelf.part(run, "drawn"))
    return whole_chart(replace(material.curves[run], raw=raw), windows)


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
        "svg": Markup(inline(drawing.svg, f"figure-{drawing.name}-alt")),
        "files": [f"figures/{drawing.name}.{kind}" for kind in material.figure_kinds],
    }


def _level(material: Material) -> str:
    levels = sorted({cell.level for cell in material.answers.cells.values() if cell.level is not None})
    return " or ".join(q.percent(level) for level in levels)


def _matrices(material: Material, runs: list[RunResult], rows: Rows) -> dict[str, Any]:
    """The table of runs and targets, and a second one of the targets that too few runs were asked for."""
    answers = material.answers
    asked = Counter(target for _, target in answers.cells)
    main = [target for target in answers.targets if asked[target] >= min(material.min_runs, len(runs))]
    main = main or list(answers.targets)  # every run was asked for something else
    rest = [target for target in answers.targets if target not in main]
    concerned = [run for run in runs if any((run.id, target) in answers.cells for target in rest)]
    hours = {(row["run"], row["target"]): row["hours"] for row in material.tables["targets"].rows}
    return {
        "targets": [q.target(target) for target in main],
        "target_rows": runs and rows(lambda: (target_row(material, run, main, hours) for run in runs)),
        "more_targets": [q.target(target) for target in rest],
        "more_rows": concerned and rows(lambda: (target_row(material, run, rest, hours) for run in concerned)),
        "sparse": any(asked[target] < len(runs) for target in main),
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
