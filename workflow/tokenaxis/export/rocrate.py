"""Runs as an RO-Crate (https://w3id.org/ro/crate): files with a machine-readable account of what made them.

The crate holds each run's passport and token axis; raw logs are described by name, size and sha256, not copied. An
action per run links logs, program and results, after the profile of Process Run Crates.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from tokenaxis.export.run import ExportedRun, library

PROFILE = "https://w3id.org/ro/wfrun/process/0.5"
_MEDIA = {
    "passport.json": "application/json",
    "passport.md": "text/markdown",
    "token_axis.parquet": "application/vnd.apache.parquet",
}


def export(
    runs: Sequence[tuple[ExportedRun, Callable[[Path], None]]],
    folder: Path,
    name: str,
    to_json: Callable[[Any], str],
    date: str,
) -> Path:
    """Write a crate. -> its ro-crate-metadata.json.

    Args:
        runs: what to export, and for each run what writes its token axis to a path.
        folder: of the crate.
        name: of the sweep.
        to_json: writes the passport's JSON.
        date: of publication, ISO 8601; the format wants one.

    Raises:
        TokenAxisError: rocrate is not installed.
    """
    rocrate = library("rocrate.rocrate", "rocrate")
    entities = library("rocrate.model.contextentity", "rocrate")
    crate = rocrate.ROCrate()
    crate.name = f"tokenaxis: {name}"
    crate.description = "Training runs on a token axis, each with a passport that says where its numbers come from"
    crate.datePublished = date
    program = _add(crate, entities, "#tokenaxis", {"@type": "SoftwareApplication", "name": "tokenaxis"})
    program["softwareVersion"] = runs[0][0].passport["generated_by"].removeprefix("tokenaxis ")
    with tempfile.TemporaryDirectory() as scratch:
        for number, (run, write_axis) in enumerate(runs):
            source = Path(scratch) / str(number)
            source.mkdir()
            (source / "passport.json").write_text(to_json(run.passport), encoding="utf-8")
            (source / "passport.md").write_text(run.markdown, encoding="utf-8")
            write_axis(source / "token_axis.parquet")
            _describe(crate, entities, run, source, program)
        crate.write(folder)
    return folder / "ro-crate-metadata.json"


def _describe(crate: Any, entities: Any, run: ExportedRun, source: Path, program: Any) -> None:
    """One run: its results, its logs, and the action that made the ones from the others."""
    results = [
        crate.add_file(source / file, dest_path=f"{run.id}/{file}", properties={"encodingFormat": media})
        for file, media in _MEDIA.items()
    ]
    logs = [
        _add(
            crate,
            entities,
            f"#sha256:{log['sha256']}",
            {"@type": "CreativeWork", "name": log["path"], "sha256": log["sha256"], "contentSize": str(log["bytes"])},
        )
        for log in run.passport["run"]["files"]
    ]
    action = _add(
        crate,
        entities,
        f"#{run.id}",
        {"@type": "CreateAction", "name": f"passport of {run.passport['run']['name']}"},
    )
    action["instrument"], action["object"], action["result"] = program, logs, results
    crate.root_dataset.append_to("mentions", action)


def _add(crate: Any, entities: Any, identifier: str, properties: Mapping[str, Any]) -> Any:
    return crate.add(entities.ContextEntity(crate, identifier, properties=dict(properties)))
