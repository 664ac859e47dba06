"""What the library makes of logs, for scripts/inspect_log.py; described by workflow/schemas/inspect.schema.json."""

from __future__ import annotations

import math
import os
import re
from collections.abc import Sequence
from dataclasses import replace
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tokenaxis import readers
from tokenaxis.axis import losses
from tokenaxis.errors import TokenAxisError, printable
from tokenaxis.readers.remedies import of_format
from tokenaxis.stages.token_axis import axis_of
from tokenaxis.sweep import beside
from tokenaxis.sweep.declared import SweepDeclaration
from tokenaxis.sweep.discover import discover
from tokenaxis.sweep.folders import AIM, AIM_FOLDER, walk
from tokenaxis.sweep.model import Discovery, LogFile, Run
from tokenaxis.sweep.to_declare import to_declare

if TYPE_CHECKING:
    from tokenaxis.axis.model import TokenAxis

SCHEMA = "tokenaxis/inspect/1"
#: rows that are shown
_ROWS = 5
#: files below a log's folder that are looked at for whose settings are beside it
_MOST = 5000
#: keys of a token axis' metadata that are shown as they are
_KEYS = (
    "logged_steps",
    "rows",
    "bad_lines",
    "unusable",
    "attempts",
    "superseded_tokens",
    "tokens",
    "batch",
    "warmup",
    "lr",
    "columns",
    "facts",
    "warnings",
)


def inspect(
    paths: Sequence[Path], declared: SweepDeclaration, ignore: list[str], tokens_convention: str
) -> dict[str, Any]:
    """Everything about the logs at these paths, JSON-ready.

    Args:
        paths: files, each taken by itself with the settings beside it, or folders, searched as sweep directories are.
        declared: what is declared for them.
        ignore: names that are passed over in folders.
        tokens_convention: as in params.yaml.
    """
    content: dict[str, Any] = {"schema": SCHEMA, "runs": [], "refused": [], "passed_over": []}
    for path in paths:
        shown = printable(str(path))
        try:
            root, found = _found(path, declared, ignore)
        except (TokenAxisError, OSError) as error:
            reason = error.reason if isinstance(error, TokenAxisError) else f"cannot be read: {error.strerror}"
            remedy = error.remedy if isinstance(error, TokenAxisError) else None
            content["refused"].append(_refusal(shown, shown, reason, remedy))
            continue
        for run in found.runs:
            _add_run(content, shown, root, run, tokens_convention)
        for entry in found.refused:
            content["refused"].append(_refusal(shown, entry["name"], entry["reason"], entry["remedy"]))
        for entry in found.passed_over:
            if path.is_dir():
                content["passed_over"].append({"path": shown, **entry})
            else:
                reason = f"is not a training log: {entry['reason']}"
                content["refused"].append(_refusal(shown, entry["name"], reason, of_format(entry["name"])))
    return content


def _found(path: Path, declared: SweepDeclaration, ignore: list[str]) -> tuple[Path, Discovery]:
    if path.resolve().name == AIM_FOLDER and path.is_dir():
        raise TokenAxisError(f"is {AIM}")
    if path.is_dir():
        return path, discover(path, declared, ignore)
    root = path.parent
    found = discover(root, replace(declared, ignore=()), [], only=[path.name])
    facts_from = _beside(root, path.name, declared, ignore) if found.runs else ()
    found.runs = [replace(run, facts_from=facts_from) for run in found.runs]
    return root, found


def _beside(root: Path, name: str, declared: SweepDeclaration, ignore: list[str]) -> tuple[LogFile, ...]:
    """Files in a log's folder that state its settings, by the rule of a sweep: the folder holds no other run."""
    if not any(beside.states_settings(entry.name) for entry in os.scandir(root)):
        return ()
    paths = [path for path, _ in islice(walk(root, ignore, Discovery()), _MOST + 1)]
    if len(paths) > _MOST or name not in paths:
        return ()
    runs = discover(root, declared, ignore, only=paths).runs
    return next((run.facts_from for run in runs if any(file.path == name for file in run.files)), ())


def _refusal(path: str, name: str, reason: str, remedy: str | None) -> dict[str, Any]:
    declare = to_declare(name, remedy)
    return {"path": path, "name": name, "format": None, "reason": reason, "remedy": remedy, "declare": declare}


def _add_run(content: dict[str, Any], shown: str, root: Path, run: Run, tokens_convention: str) -> None:
    record = run.as_record()
    try:
        axis = axis_of(root, record, tokens_convention)
    except TokenAxisError as error:
        refusal = _refusal(shown, run.name, _reason(error), error.remedy and printable(error.remedy))
        seen = _without_batch(root, record, tokens_convention)
        content["refused"].append(refusal | {"format": run.format, "seen": seen})
        return
    content["runs"].append({"path": shown, **_recognised(run), **_described(axis)})


def _reason(error: TokenAxisError) -> str:
    return printable(error.reason if error.line is None else f"line {error.line}: {error.reason}")


def _without_batch(root: Path, record: dict[str, Any], tokens_convention: str) -> dict[str, Any] | None:
    """What can be said of a log of which only the batch size is unknown; None of any other."""
    declared = record["declared"]
    if "tokens_per_step" in declared or "batch_schedule" in declared:
        return None
    try:
        axis = axis_of(root, record | {"declared": declared | {"tokens_per_step": 1.0}}, tokens_convention)
    except TokenAxisError:
        return None
    if any(warning["code"] == "step_from_tokens" for warning in axis.meta["warnings"]):
        return None  # without the batch there are no steps either
    described = _described(axis)
    for key in ("tokens", "batch", "superseded_tokens"):
        described[key] = None
    for place in (described["first"], described["last"], *described["first_rows"], *described["attempts"]):
        place |= dict.fromkeys(("tokens", "tokens_per_step", "superseded_tokens") & place.keys())
    for loss in described["losses"].values():
        for place in ("first", "best", "last"):
            loss[place]["tokens"] = None
    counted = re.compile(r" \([\d,]+ tokens\)")  # of the batch that stood in for the unknown one
    described["warnings"] = [entry | {"message": counted.sub("", entry["message"])} for entry in described["warnings"]]
    return described


def _recognised(run: Run) -> dict[str, Any]:
    """How a run was recognised, and what it consists of."""
    return {
        "id": run.id,
        "name": run.name,
        "format": run.format,
        "format_about": readers.by_name(run.format).about,
        "files": [{"path": printable(file.path), "bytes": file.bytes} for file in run.files],
        "part": run.part,
        "grouped_because": run.grouped_because,
        "facts_from": [printable(file.path) for file in run.facts_from],
        "declared": run.declared,
    }


def _described(axis: TokenAxis) -> dict[str, Any]:
    meta = axis.meta
    non_finite: dict[str, int] = {}
    for entry in meta["unusable"]:
        if entry["kind"] in ("nan", "inf", "huge"):
            non_finite[entry["column"]] = non_finite.get(entry["column"], 0) + entry["rows"]
    return {key: meta[key] for key in _KEYS} | {
        "non_finite": non_finite,
        "losses": losses.summarise(axis.columns),
        "first": _row(axis, 0),
        "last": _row(axis, len(axis.columns["step"]) - 1),
        "first_rows": [_row(axis, row) for row in range(min(_ROWS, len(axis.columns["step"])))],
    }


def _row(axis: TokenAxis, row: int) -> dict[str, Any]:
    """One row, None where a cell has no value."""
    cells = {name: values[row].item() for name, values in axis.columns.items()}
    return {
        name: None if isinstance(value, float) and not math.isfinite(value) else value for name, value in cells.items()
    }


def as_lines(content: dict[str, Any]) -> list[str]:
    """One line for each refusal, for stderr."""
    lines = []
    for entry in content["refused"]:
        inside = entry["name"] != entry["path"] and entry["name"] != os.path.basename(entry["path"])
        place = f"{entry['path']}/{entry['name']}" if inside else entry["path"]
        lines.append(f"{place}: {entry['reason']}" + (f" -- {entry['remedy']}" if entry["remedy"] else ""))
    return lines
