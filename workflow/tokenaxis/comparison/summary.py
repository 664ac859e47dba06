"""summary.json: the comparison in a few numbers, for the console, for DVC's metrics and for other programs."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from tokenaxis.comparison.answers import Answer, Answers
from tokenaxis.comparison.files import json_bytes
from tokenaxis.comparison.hindsight import Hindsight
from tokenaxis.comparison.model import Sweep
from tokenaxis.comparison.quantities import elided, natural, plural, short
from tokenaxis.comparison.quantities import target as target_text
from tokenaxis.errors import printable

SCHEMA = "tokenaxis/comparison/1"
WIDTH = 100
NAME_WIDTH = 28
CELL_WIDTH = 14
MOST_RUNS = 40
_WORDS = {"unreachable": "never", "not_available": "n/a"}


def summarise(
    sweep: Sweep,
    answers: Answers,
    headlines: list[str],
    fingerprint: str,
    past: Sequence[Hindsight] = (),
    min_runs: int = 1,
) -> dict[str, Any]:
    """JSON-ready; targets and cells are keyed by the target's text, so that a metric keeps its name.

    `min_runs`: targets that fewer runs were asked for come last where there is no room for all.
    """
    return {
        "schema": SCHEMA,
        "fingerprint": fingerprint,
        "sweep": sweep.name,
        "version": sweep.version,
        "runs": len(sweep.runs),
        "refused": [
            {key: printable(str(entry[key])) if entry.get(key) else None for key in ("name", "reason", "remedy")}
            for entry in sorted(sweep.refused, key=lambda entry: str(entry.get("name")))
        ],
        "passed_over": len(sweep.passed_over),
        "baseline": answers.baseline,
        "headlines": [printable(text) for text in headlines],
        "targets": {target_text(target): _target(answers, target) for target in answers.targets},
        "cells": {
            run: {
                target_text(target): _cell(cell)
                for target in answers.targets
                if (cell := answers.cells.get((run, target))) is not None
            }
            for run in answers.runs
        },
        "hindsight": [asdict(entry) for entry in past],
        "notices": [notice.as_dict() for notice in answers.notices],
        "min_runs_per_target": min_runs,
    }


def summary_bytes(summary: dict[str, Any]) -> bytes:
    """summary.json, as `files.json_bytes` would write it: json has no quick way to indent, and cells are its bulk."""
    place = "\0cells\0"
    head, _, rest = json_bytes(summary | {"cells": place}).decode("ascii").partition(json.dumps(place))
    runs = []
    for run in sorted(summary["cells"]):
        cells = summary["cells"][run]
        shown = [f"{json.dumps(target)}: {{\n{_members(cells[target], 8)}\n      }}" for target in sorted(cells)]
        text = ",\n      ".join(shown)
        runs.append(f"{json.dumps(run)}: " + (f"{{\n      {text}\n    }}" if shown else "{}"))
    text = ",\n    ".join(runs)
    return (head + (f"{{\n    {text}\n  }}" if runs else "{}") + rest).encode("ascii")


def _members(cell: dict[str, Any], indent: int) -> str:
    """Names and plain values, one a line."""
    space = " " * indent
    return space + json.dumps(cell, sort_keys=True, allow_nan=False, separators=(",\n" + space, ": "))[1:-1]


def metrics(summary: dict[str, Any]) -> dict[str, Any]:
    """The few numbers of `summarise` that are worth a line each in `dvc metrics show` and `dvc metrics diff`."""
    return {
        "runs": summary["runs"],
        "refused": len(summary["refused"]),
        "targets": {
            name: {key: entry[key] for key in ("best_run", "best_tokens", "reached", "predicted")}
            for name, entry in summary["targets"].items()
        },
        "hindsight_median_error": {f"{entry['horizon']:g}": entry["median_error"] for entry in summary["hindsight"]},
    }


def _target(answers: Answers, target: float) -> dict[str, Any]:
    ranking = answers.leading(target)
    best = ranking[0] if ranking else None
    return answers.counts(target) | {
        "best_run": best.run if best else None,
        "best_tokens": best.tokens if best else None,
        "best_status": best.status if best else None,
    }


def _cell(cell: Answer) -> dict[str, Any]:
    names = ("status", "loss", "step", "tokens", "low", "high", "interval_level", "verdict", "ratio_to_baseline")
    values = (cell.status, cell.loss, cell.step, cell.tokens, cell.low, cell.high, cell.level, cell.verdict, cell.ratio)
    return dict(zip(names, values, strict=True))


def table_text(summary: dict[str, Any], report: str | None = None) -> str:
    """Runs x targets as plain text of at most WIDTH columns, then the refused files and the report's path.

    Args:
        summary: what `summarise` made, or summary.json read back.
        report: path of the page as the user should see it; None: where the pipeline puts it.
    """
    targets = sorted(summary["targets"], key=float, reverse=True)
    shown = _shown_targets(summary, targets)
    width = min(NAME_WIDTH, max([len(printable(run)) for run in summary["cells"]] + [len("run")]))
    lines = [
        f"{printable(summary['sweep'])}: tokens to each target loss (nats per token), {plural(summary['runs'], 'run')}"
    ]
    if shown:
        lines.append(_line("run", [elided(target, CELL_WIDTH - 1) for target in shown], width))
        lines.append("-" * len(lines[-1]))
    runs = sorted(summary["cells"], key=natural)
    for run in runs[:MOST_RUNS]:
        cells = summary["cells"][run]
        lines.append(_line(elided(printable(run), width), [_short_cell(cells.get(target)) for target in shown], width))
    lines += _remarks(summary, runs, targets, shown)
    lines += [
        f"refused {elided(printable(entry['name']), 40)}: {elided(entry['reason'] or '', WIDTH - 51)}"
        for entry in summary["refused"][:MOST_RUNS]
    ]
    lines.append(f"report: {report or 'results/' + printable(summary['sweep']) + '/comparison/index.html'}")
    return "\n".join(line.rstrip() for line in lines) + "\n"


def _shown_targets(summary: dict[str, Any], targets: list[str]) -> list[str]:
    """The targets that fit, those with most answers first chosen; no target of a few runs beside those of many."""
    room = (WIDTH - NAME_WIDTH) // CELL_WIDTH
    count = {name: summary["targets"][name]["reached"] + summary["targets"][name]["predicted"] for name in targets}
    asked = {name: sum(name in cells for cells in summary["cells"].values()) for name in targets}
    common = [name for name in targets if asked[name] >= summary["min_runs_per_target"]] or targets
    chosen = sorted(common, key=lambda name: (-count[name], float(name)))[:room]
    return [name for name in targets if name in chosen]


def _line(name: str, cells: list[str], width: int) -> str:
    return name.ljust(width) + "".join(cell.rjust(CELL_WIDTH) for cell in cells)


def _short_cell(cell: dict[str, Any] | None) -> str:
    if cell is None:
        return "-"
    if cell["tokens"] is None or cell["status"] in _WORDS:
        return _WORDS.get(cell["status"], "n/a")
    half = ""
    if cell["low"] and cell["high"]:
        half = " ±" + _percent(100 * math.expm1(math.log(cell["high"] / cell["low"]) / 2))
    if cell["status"] == "predicted" and cell["low"] and not cell["high"]:
        return f">{short(cell['low'])}"
    return ("~" if cell["status"] == "predicted" else "") + short(cell["tokens"]) + half


def _percent(value: float) -> str:
    if value >= 99.5:
        return ">99%"
    return f"{value:.0f}%" if value >= 9.95 else f"{round(value, 1):g}%" if value >= 0.05 else "<0.1%"


def _remarks(summary: dict[str, Any], runs: list[str], targets: list[str], shown: list[str]) -> list[str]:
    lines = []
    if len(runs) > MOST_RUNS:
        lines.append(f"... and {plural(len(runs) - MOST_RUNS, 'more run', 'more runs')} in the report")
    if len(targets) > len(shown):
        lines.append(f"{plural(len(targets) - len(shown), 'more target', 'more targets')} in the report")
    levels = {
        cell["interval_level"]
        for cells in summary["cells"].values()
        for cell in cells.values()
        if cell["interval_level"]
    }
    if shown:
        half = f", ± half of the {100 * min(levels):g}% interval" if levels else ""
        lines.append(f"~ predicted, > at least{half}, never = unreachable, n/a = no answer")
        if any(target not in summary["cells"][run] for run in runs for target in shown):
            lines.append("- not asked: automatic targets lie around where each run stands; fits.targets asks all runs")
    return lines
