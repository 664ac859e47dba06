"""Stage runs: the sweep directory -> runs.json, which says what every file in it is."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from tokenaxis import store
from tokenaxis.errors import TokenAxisError
from tokenaxis.pipeline import fingerprints
from tokenaxis.pipeline.hashes import Hashes
from tokenaxis.pipeline.ledger import Ledger, record
from tokenaxis.pipeline.work import ENGINE, index_path


def find(sweep: str, root: Path, ignore: list[str], results: Path) -> dict[str, Any]:
    """What is in the sweep directory, JSON-ready: runs, refused, passed_over, notices, and `fits`, what the sweep
    declares for that stage.

    Args:
        sweep: name of the sweep.
        root: its directory of raw logs.
        ignore: glob patterns of names that are passed over.
        results: results/<sweep>, for the caches.

    Raises:
        TokenAxisError: no such directory, not a single file in it, or a declaration file that does not fit its schema.
    """
    from tokenaxis.sweep import declared, discover  # 40 ms, which a job that only writes what was found need not pay

    declaration = declared.load(sweep, results / ENGINE / "valid", root)
    found = discover.discover(root, declaration, ignore, results / ENGINE / "discovery.json")
    if not (found.runs or found.refused or found.passed_over):
        raise no_runs(root, found.passed_over, found.refused)
    for entry in found.refused:  # the libraries below do not know what the sweep is called
        entry["remedy"] = entry["remedy"] and entry["remedy"].replace("<sweep>", sweep)
    return {
        "sweep": sweep,
        "fits": declaration.fits(),
        "runs": [run.as_record() for run in found.runs],
        "refused": found.refused,
        "passed_over": found.passed_over,
        "notices": found.notices,
    }


def no_runs(root: Path | str, passed_over: Sequence[Any], refused: Sequence[Any]) -> TokenAxisError:
    """The failure of a sweep in which nothing is a run."""
    if not passed_over and not refused:
        reason, remedy = "it holds no file", "put raw logs there, or name another directory: logs: in params.yaml"
    else:
        files = "file" if len(passed_over) == 1 else "files"
        reason = f"{len(passed_over)} {files} passed over, {len(refused)} refused"
        remedy = "python scripts/inspect_log.py DIR says why, file by file"
    return TokenAxisError(f"no runs in {root}: {reason}", remedy=remedy)


def listing(found: dict[str, Any], root: Path, hashes: Hashes) -> dict[str, Any]:
    """The content of runs.json: what was found, with the sha256 of each file in place of its times."""
    runs, refused = [], list(found["refused"])
    for run in found["runs"]:
        files = [_described(file, root, hashes, run["name"], refused) for file in run["files"]]
        facts_from = [_described(file, root, hashes, run["name"], refused) for file in run["facts_from"]]
        runs.append(run | {"files": files, "facts_from": facts_from})
    content = {key: found[key] for key in ("sweep", "fits", "passed_over", "notices")} | {
        "runs": runs,
        "refused": refused,
    }
    return content | {"schema": "tokenaxis/runs/1", "fingerprint": fingerprints.combine("runs", content)}


def _described(
    file: dict[str, Any], root: Path, hashes: Hashes, run: str, refused: list[dict[str, Any]]
) -> dict[str, Any]:
    """A file without its times, and without what is not said of it; one that cannot be read any more is refused."""
    try:
        digest = hashes.sha256(root / file["path"])
    except TokenAxisError as error:
        refused.append({"name": run, "reason": error.reason, "remedy": None})
        digest = None
    said = {key: value for key, value in file.items() if value is not None and key != "stamp"}
    return said | {"sha256": digest}


def write(found: dict[str, Any], root: Path, results: Path) -> dict[str, Any]:
    """Bring runs.json and its index up to date. -> its content."""
    hashes = Hashes.load(results / ENGINE / "hashes" / "all.json")
    content = listing(found, root, hashes)
    path = results / "runs.json"
    store.write_text_if_changed(path, store.to_json(content))
    hashes.save()
    files = {path.name: record(path)}
    entry = {"fingerprint": content["fingerprint"], "status": "ok", "files": files}
    Ledger(index_path(results, "runs", "all"), {"runs": entry}).save("runs")
    return content
