"""Stage comparison: the artifacts of all runs -> tables, figures and one page."""

from __future__ import annotations

import functools
import gc
import hashlib
import os
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import tokenaxis
from tokenaxis import store
from tokenaxis.columns import LOSSES
from tokenaxis.errors import TokenAxisError
from tokenaxis.pipeline import fingerprints
from tokenaxis.pipeline.ledger import Ledger, record
from tokenaxis.pipeline.progress import Progress
from tokenaxis.pipeline.runner import REFUSED
from tokenaxis.pipeline.spec import PER_RUN, STAGES
from tokenaxis.pipeline.work import ENGINE

if TYPE_CHECKING:
    from tokenaxis.comparison.model import RunResult, Source
    from tokenaxis.pipeline.work import Work

#: written last; carries the fingerprint of the whole folder
SUMMARY = "summary.json"
#: folder of the engines' state with what is known of each run
DIGESTS = "digests"
#: (stage, ending) of the artifacts of a run that the comparison reads
READ = (
    ("token_axis", "parquet"),
    ("fits", "json"),
    ("stability", "parquet"),
    ("stability", "json"),
    ("conventions", "json"),
)
#: columns that it reads of them
AXIS_COLUMNS = ("step", "tokens", "tokens_per_step", "attempt", *LOSSES, "lr", "elapsed_s")
STABILITY_COLUMNS = ("target", "window_tokens", "predicted_tokens", "low", "high")


def update(work: Work) -> bool:
    """Bring results/<sweep>/comparison up to date. -> whether anything was computed.

    Raises:
        TokenAxisError: an earlier stage has not run.
    """
    listing = _listing(work)
    left_out = _left_out(work)
    refused = listing["refused"] + [_shown(item) for item in left_out.values()]
    made_of = {run: made for run, made in _passport_fingerprints(work).items() if run not in left_out}
    missing = [run["id"] for run in work.runs if run["id"] not in made_of and run["id"] not in left_out]
    if missing:
        raise TokenAxisError(f"there is no passport of {missing[0]}", remedy="run the stages before comparison")
    inputs = [made_of, refused, listing["passed_over"], _shown_parameters(work), tokenaxis.__version__]
    fingerprint = fingerprints.combine("comparison", inputs)
    folder, index = work.results / "comparison", Ledger.load(work.index("comparison"))
    entry = index.entries.get("comparison")
    sources = [_source(work, run, made_of[run["id"]]) for run in work.runs if run["id"] in made_of]
    read = hashlib.sha256("\n".join(str(source.key) for source in sources).encode()).hexdigest()
    if entry is not None and entry.get("read") not in (None, read):
        current = False  # an artifact was touched since: what was edited by hand then may have been mended
    else:
        known = entry is not None and entry["fingerprint"] == fingerprint and index.intact("comparison", folder)
        current = known or _as_written(folder, fingerprint)
    if not current:
        _make(work, listing["passed_over"], refused, sources, folder, fingerprint)
    files = {str(path.relative_to(folder)): record(path) for path in sorted(folder.rglob("*")) if path.is_file()}
    index.entries = {"comparison": {"fingerprint": fingerprint, "status": "ok", "files": files, "read": read}}
    index.save("comparison")
    return not current


def _as_written(folder: Path, fingerprint: str) -> bool:
    """Whether the folder is the comparison of that fingerprint, whole: the other engine's, a copy's or a pulled one."""
    from tokenaxis.comparison import files

    summary = store.read_json(folder / SUMMARY)
    if not isinstance(summary, dict) or summary.get("fingerprint") != fingerprint:
        return False
    return files.intact(folder, summary.get("files") or {SUMMARY: ""})


def _make(
    work: Work, passed_over: list[Any], refused: list[Any], sources: list[Source], folder: Path, fingerprint: str
) -> None:
    from tokenaxis import comparison
    from tokenaxis.comparison.model import Sweep

    if (progress := Progress.on_terminal("comparison", work.results)) is not None:
        progress.start(len(sources))
        sources = [replace(source, load=_followed(source, progress)) for source in sources]
    sweep = Sweep(work.sweep, [], refused, passed_over, _shown_parameters(work), tokenaxis.__version__)
    (folder / SUMMARY).unlink(missing_ok=True)  # until it is there again, the folder counts as unfinished
    gc.disable()  # nothing here is garbage in a circle, apart from figures: looking for it is a tenth of the time
    try:
        comparison.make(
            sweep,
            work.params["comparison"],
            folder,
            fingerprint,
            sources=sources,
            digests=work.results / ENGINE / DIGESTS,
            code=fingerprints.code_digest("comparison"),
        )
    finally:
        gc.freeze()  # else the first search goes through all that there is once more
        gc.enable()


def _followed(source: Source, progress: Progress) -> Callable[[], RunResult]:
    """The run's `load`, of which `progress` is told."""

    def load() -> RunResult:
        progress.step(source.id)
        return source.load()

    return load


def _shown_parameters(work: Work) -> dict[str, Any]:
    """The sections that decide numbers; where the logs are and how the work is cut up is nobody's business."""
    return {name: work.params[name] for name in STAGES["comparison"].sections}


def console_table(work: Work) -> str:
    """The table of runs and targets in plain text.

    Raises:
        TokenAxisError: the comparison has not been made.
    """
    from tokenaxis import comparison

    summary = store.read_json(work.results / "comparison" / SUMMARY)
    if summary is None:
        raise TokenAxisError("there is no comparison yet", remedy="run snakemake --cores 8, or dvc repro")
    return comparison.console_table(summary, str(work.results / "comparison" / "index.html"))


def _listing(work: Work) -> dict[str, Any]:
    listing = store.read_json(work.results / "runs.json")
    if listing is None:
        raise TokenAxisError("is missing", file=str(work.results / "runs.json"), remedy="run scripts/runs.py first")
    return listing


def faults(work: Work) -> list[str]:
    """Names of runs that a fault of the program left out."""
    return [item["name"] for item in _left_out(work).values() if item.get("fault")]


def _left_out(work: Work) -> dict[str, dict[str, Any]]:
    """Run id -> what a stage left in place of its artifact."""
    found: dict[str, dict[str, Any]] = {}
    for stage in PER_RUN:
        folder = work.results / stage
        present = {entry.name for entry in os.scandir(folder)} if folder.is_dir() else set()
        for run in work.runs:
            name = f"{run['id']}.{REFUSED}"
            if name in present and run["id"] not in found and (item := store.read_json(folder / name)) is not None:
                found[run["id"]] = item
    return found


def _shown(item: dict[str, Any]) -> dict[str, Any]:
    return {key: item[key] for key in ("name", "reason", "remedy")}


def _passport_fingerprints(work: Work) -> dict[str, str]:
    """Run id -> fingerprint of its passport, which is made from all the others."""
    folder = work.results / "passports"
    known: dict[str, str] = {}
    for path in sorted(work.index("passports").parent.glob("*.json")):
        ledger = Ledger.load(path)
        known |= {run: entry["fingerprint"] for run, entry in ledger.entries.items() if ledger.intact(run, folder)}
    found = {
        run["id"]: known.get(run["id"]) or store.json_fingerprint(folder / f"{run['id']}.json") for run in work.runs
    }
    return {run_id: fingerprint for run_id, fingerprint in found.items() if fingerprint}


def _source(work: Work, run: dict[str, Any], fingerprint: str) -> Source:
    """Where the run's artifacts are. The key names what they were made from, and how the files themselves look: one
    that was edited or repaired without a new fingerprint is read again."""
    from tokenaxis.comparison.model import Source

    paths = {artifact: f"{work.results}/{artifact[0]}/{run['id']}.{artifact[1]}" for artifact in READ}
    stamps = [_stamp(path) for path in paths.values()]
    return Source(run["id"], run["name"], f"{fingerprint} {stamps}", functools.partial(_result, run, paths))


def _stamp(path: str) -> tuple[int, int] | None:
    try:
        status = os.stat(path)
    except OSError:
        return None
    return status.st_size, status.st_mtime_ns


def _result(run: dict[str, Any], paths: dict[tuple[str, str], str]) -> RunResult:
    from tokenaxis.comparison.model import RunResult

    columns, meta = store.read_parquet(Path(paths["token_axis", "parquet"]), AXIS_COLUMNS)
    windows = Path(paths["stability", "parquet"])
    return RunResult(
        id=run["id"],
        name=run["name"],
        axis_meta=meta,
        columns=lambda: columns,
        fits=store.read_json(Path(paths["fits", "json"])),
        stability=store.read_json(Path(paths["stability", "json"])),
        stability_table=lambda: store.read_parquet(windows, STABILITY_COLUMNS)[0],
        conventions=store.read_json(Path(paths["conventions", "json"])),
    )
