"""Stage token_axis: raw files of a run -> one row a step on a token axis."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tokenaxis import readers, store
from tokenaxis.axis import build_axis, joining, losses, pace
from tokenaxis.axis.model import TokenAxis
from tokenaxis.declarations import Declaration
from tokenaxis.errors import Notice, TokenAxisError, printable
from tokenaxis.facts import published
from tokenaxis.memory import keep_freed
from tokenaxis.readers import sqlite
from tokenaxis.readers.settings_files import facts_in
from tokenaxis.readers.writers import as_validation, folder_role

if TYPE_CHECKING:
    from tokenaxis.pipeline.runner import Task
    from tokenaxis.pipeline.work import Work


def inputs(run: dict[str, Any], work: Work) -> list[Any]:
    """What decides the table beside parameters and code: the files' bytes and names, how they are one run, and what is
    declared."""
    hashes = []
    for file in (*run["files"], *run["facts_from"]):
        details = [file.get(key) for key in ("format", "part", "first_step")]
        try:
            digest = work.hashes.sha256(work.root / file["path"])
        except TokenAxisError as error:  # gone or unreadable since it was found: `compute` will refuse it by name
            digest = error.reason
        beside = (work.root / (file["path"] + ending) for ending in sqlite.BESIDE)
        details += [work.hashes.sha256(path) for path in beside if os.path.isfile(path)]
        hashes.append([printable(file["path"]), digest, *details])
    return [hashes, len(run["files"]), run["format"], run["join"], run["declared"]]


def compute(task: Task) -> str:
    """Write `<run>.parquet`. -> "ok"

    Raises:
        TokenAxisError: the log cannot be used; the reason and the remedy.
    """
    keep_freed()
    try:
        axis = axis_of(task.work.root, task.run, task.work.params["token_axis"]["tokens_convention"])
    except TokenAxisError as error:  # the libraries below do not know what the sweep is called
        error.remedy = error.remedy and error.remedy.replace("<sweep>", task.work.sweep)
        raise
    meta = axis.meta | {"run": task.run["id"], "losses": losses.summarise(axis.columns)}
    store.write_parquet(task.path("parquet"), axis.columns, meta, task.fingerprint)
    return "ok"


def axis_of(root: Path, run: dict[str, Any], tokens_convention: str) -> TokenAxis:
    """The token axis of a run, facts of pace included.

    Args:
        root: the sweep directory.
        run: its record, as in runs.json.
        tokens_convention: as in params.yaml.

    Raises:
        TokenAxisError: the log cannot be used; the reason and the remedy.
    """
    declaration = Declaration.from_dict(run["declared"])
    raw = read_run(root, run, declaration)
    axis = build_axis(raw, declaration, printable(run["files"][0]["path"]), tokens_convention)
    axis.meta["run"] = run["name"]
    logged = pace.facts(axis.columns, axis.meta["attempts"]) + axis.meta["facts"]  # the log's own word wins a tie
    axis.meta["facts"] = [*filter(None, map(published, logged))]
    return axis


def read_run(root: Path, run: dict[str, Any], declaration: Declaration) -> readers.RawLog:
    """All files of a run as one log, with the facts of the settings beside them.

    A file of several that cannot be read is left out with a warning.

    Raises:
        TokenAxisError: none can be read, or they are not one run.
    """
    pieces, left_out = [], []
    for file in run["files"]:
        try:
            pieces.append(_piece(root, run, file, declaration))
        except TokenAxisError as error:
            if len(run["files"]) == 1:
                raise
            left_out.append(error.within(printable(file["path"])))
    if not pieces:
        raise left_out[0]
    raw = joining.join_logs(pieces, run["join"] or "attempts")
    raw.warnings += [Notice("file_left_out", f"left out: {error}") for error in left_out]
    for file in run["facts_from"]:
        raw.facts += facts_in(str(root / file["path"]), f"{printable(file['path'])} beside the log")
    return raw


def _piece(root: Path, run: dict[str, Any], file: dict[str, Any], declaration: Declaration) -> joining.Piece:
    reader = readers.by_name(file.get("format") or run["format"])
    log = readers.read(str(root / file["path"]), declaration, reader, file.get("part"))
    if run["join"] == "columns" and folder_role(os.path.dirname(file["path"])) == "val":
        log = as_validation(log)
    return joining.Piece(printable(file["path"]), log, file.get("first_step"))


def warm_up() -> None:
    """Import once what every run needs, before processes are forked."""
    import pyarrow._parquet
    import pyarrow.csv  # noqa: F401

    from tokenaxis import arrow  # noqa: F401
