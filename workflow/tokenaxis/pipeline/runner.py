"""Runs one stage over many runs: only what is not current, one run's trouble never another's."""

from __future__ import annotations

import importlib
import os
import time
import traceback
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tokenaxis import store
from tokenaxis.errors import TokenAxisError, printable
from tokenaxis.pipeline import fingerprints
from tokenaxis.pipeline.ledger import Ledger, stamp
from tokenaxis.pipeline.progress import Progress, followed
from tokenaxis.pipeline.spec import STAGES, Stage
from tokenaxis.pipeline.work import Work
from tokenaxis.sweep.ids import shard_of

REFUSED = "refused.json"
#: a temporary file that is older was left by a writer that was killed
LONGEST_WRITE_S = 300.0


@dataclass(frozen=True)
class Task:
    """One run in one stage: what a stage's `compute(task)` is given.

    Attributes:
        run: record of the run, as in runs.json.
        fingerprint: what the artifact must carry.
        work: the surroundings (folders, parameters).
        upstream: stage -> fingerprint of the artifact that this one is made from.
    """

    stage: Stage
    run: dict[str, Any]
    fingerprint: str
    work: Work
    upstream: dict[str, str]

    def path(self, suffix: str, stage: str | None = None) -> Path:
        """An artifact of this run."""
        return self.work.results / (stage or self.stage.name) / f"{self.run['id']}.{suffix}"

    def stamp(self, kind: str) -> dict[str, Any]:
        """What every JSON artifact starts with."""
        return {"schema": f"tokenaxis/{kind}/1", "fingerprint": self.fingerprint, "run": self.run["id"]}


@dataclass
class Summary:
    """What happened to the runs of a stage."""

    computed: int = 0
    current: int = 0
    refused: int = 0
    failed: int = 0


def run_stage(
    name: str,
    work: Work,
    say: Callable[[str], None],
    jobs: int = 1,
    only: str | None = None,
    progress: Progress | None = None,
) -> Summary:
    """Bring the artifacts of one stage up to date.

    Args:
        name: the stage.
        work: runs, folders, parameters.
        say: takes a line for the console.
        jobs: processes.
        only: id of the one run to look at; then neither the index nor other runs' files are touched.
        progress: told of every run that is done.

    Raises:
        TokenAxisError: `only` names no run, or results cannot be written.
    """
    stage = STAGES[name]
    ledger = Ledger.load(work.index(name))
    runs = work.runs if only is None else [run for run in work.runs if run["id"] == only]
    if only is not None and not runs:
        raise TokenAxisError(f"there is no run {only!r} in this sweep", remedy="ids are listed in runs.json")
    upstream = {up: Ledger.load(work.index(up)) for up in stage.upstream}
    compute = importlib.import_module(f"tokenaxis.stages.{name}").compute
    entries: dict[str, dict[str, Any]] = {}
    summary = Summary()
    todo: list[Task] = []
    for run in runs:
        task = _task(stage, run, work, upstream)
        if task is None:
            _remove(stage, run["id"], work)
            summary.refused += 1
        elif (entry := _current(task, ledger)) is not None:
            entries[run["id"]] = entry
            summary.current += 1
            summary.refused += entry["status"] == "refused"
        else:
            todo.append(task)
    refusals: dict[str, list[str]] = {}
    for task, status, message in followed(_each(compute, todo, jobs), len(todo), progress):
        if status == "refused":
            refusals.setdefault(message, []).append(task.run["name"])
        elif message:
            say(message)
        if status == "failed":
            summary.failed += 1
            continue
        summary.computed += 1
        summary.refused += status == "refused"
        entries[task.run["id"]] = _entry(task, status)
    for reason, names in refusals.items():
        say(refusal_line(names, reason))
    if only is None:
        _prune(stage, work)
        ledger.entries = entries
        work.hashes.save()
        if not summary.failed:
            ledger.save(name)
    return summary


def refusal_line(names: list[str], reason: str) -> str:
    """One line for all files that were refused for the same reason."""
    shown = ", ".join(names[:3]) + ("" if len(names) <= 3 else f" and {len(names) - 3} more")
    return f"refused: {shown}: {reason}"


def _task(stage: Stage, run: dict[str, Any], work: Work, ledgers: dict[str, Ledger]) -> Task | None:
    """The task with its fingerprint; None when the run was refused upstream."""
    module = importlib.import_module(f"tokenaxis.stages.{stage.name}")
    prints: dict[str, str] = {}
    for up in stage.upstream:
        found = _upstream_fingerprint(STAGES[up], run["id"], work, ledgers[up])
        if found is None:
            return None
        prints[up] = found
    inputs = [prints, {name: work.params[name] for name in stage.sections}, module.inputs(run, work)]
    return Task(stage, run, fingerprints.combine(stage.name, inputs), work, prints)


def _upstream_fingerprint(stage: Stage, run_id: str, work: Work, ledger: Ledger) -> str | None:
    entry = ledger.entries.get(run_id)
    if entry is not None:
        return entry["fingerprint"] if entry["status"] == "ok" else None
    return _embedded(work.results / stage.name / f"{run_id}.{stage.suffixes[-1]}")


def _embedded(path: Path) -> str | None:
    return store.parquet_fingerprint(path) if path.suffix == ".parquet" else store.json_fingerprint(path)


def _current(task: Task, ledger: Ledger) -> dict[str, Any] | None:
    """The index entry of a run whose artifacts are current, else None."""
    folder = task.work.results / task.stage.name
    entry = ledger.entries.get(task.run["id"])
    known = entry is not None and entry["fingerprint"] == task.fingerprint
    if known and ledger.intact(task.run["id"], folder):
        return entry
    if store.json_fingerprint(task.path(REFUSED)) == task.fingerprint:
        return _entry(task, "refused")
    carry = [suffix for suffix in task.stage.suffixes if suffix != "md"]
    plain = [suffix for suffix in task.stage.suffixes if suffix == "md"]
    if any(_embedded(task.path(suffix)) != task.fingerprint for suffix in carry):
        return None
    for suffix in plain:  # carries no fingerprint: as good as its partner, unless somebody touched it since
        path = task.path(suffix)
        if stamp(path) is None or (known and entry is not None and entry["files"].get(path.name) != stamp(path)):
            return None
    return _entry(task, "ok")


def _entry(task: Task, status: str) -> dict[str, Any]:
    suffixes = (REFUSED,) if status == "refused" else task.stage.suffixes
    files = {path.name: stamp(path) for path in (task.path(suffix) for suffix in suffixes) if path.exists()}
    return {"fingerprint": task.fingerprint, "status": status, "files": files}


def _each(compute: Callable[[Task], str], todo: list[Task], jobs: int) -> Iterator[tuple[Task, str, str]]:
    """(task, "ok" | "refused" | "failed", message) for each, in order, in `jobs` processes."""
    if min(jobs, len(todo)) <= 1:
        for task in todo:
            yield (task, *_guarded(compute, task))
        return
    import multiprocessing

    # fork: the children share what the parent has imported, which costs more than the arithmetic of a run
    context = multiprocessing.get_context("fork")
    importlib.import_module(compute.__module__).warm_up()
    with context.Pool(min(jobs, len(todo)), initializer=_remember, initargs=(compute, todo)) as pool:
        for task, outcome in zip(todo, pool.imap(_by_number, range(len(todo)), chunksize=4), strict=True):
            yield (task, *outcome)


_shared: tuple[Callable[[Task], str], list[Task]] | None = None


def _remember(compute: Callable[[Task], str], todo: list[Task]) -> None:
    global _shared  # set once in each child, before its first task
    _shared = compute, todo


def _by_number(number: int) -> tuple[str, str]:
    assert _shared is not None
    compute, todo = _shared
    return _guarded(compute, todo[number])


def _guarded(compute: Callable[[Task], str], task: Task) -> tuple[str, str]:
    """Compute one run; an error of any kind stays with this run, apart from results that cannot be written.

    What was there before and may not be written again goes first: a kill at any moment leaves the new artifact, the
    old one or none, never a refusal beside a table.
    """
    name = f"{task.stage.name}: {task.run['name']}"
    _forget_former(task)
    try:
        return compute(task), ""
    except TokenAxisError as error:
        if isinstance(error.__cause__, OSError) and task.work.results in Path(error.file or "").parents:
            raise  # disk full, or read-only: as true of every other run
        if task.stage.name != "token_axis":
            return "failed", f"error: {name}: {error}"
        task.path(task.stage.suffixes[-1]).unlink(missing_ok=True)
        store.write_json(
            task.path(REFUSED),
            task.stamp("refused")
            | {"name": task.run["name"], "reason": _reason(error), "remedy": error.remedy and printable(error.remedy)},
        )
        return "refused", _reason(error) + (f" -- {printable(error.remedy)}" if error.remedy else "")
    except Exception:
        return "failed", f"error: {name}: this is a fault of tokenaxis\n{traceback.format_exc()}"


def _forget_former(task: Task) -> None:
    for suffix in (REFUSED, *(suffix for suffix in task.stage.suffixes if suffix == "md")):
        task.path(suffix).unlink(missing_ok=True)


def _reason(error: TokenAxisError) -> str:
    return printable(error.reason if error.line is None else f"line {error.line}: {error.reason}")


def _remove(stage: Stage, run_id: str, work: Work) -> None:
    for suffix in (*stage.suffixes, REFUSED):
        (work.results / stage.name / f"{run_id}.{suffix}").unlink(missing_ok=True)


def _prune(stage: Stage, work: Work) -> None:
    """Delete artifacts of runs that are gone, as far as they belonged to this shard."""
    ids = {run["id"] for run in work.runs}
    prune_folder(work.results / stage.name, ids, (*stage.suffixes, REFUSED), work.shard, work.shards)


def _abandoned(temporary: Path) -> bool:
    """Whether nobody can be writing a temporary file any more: that takes milliseconds."""
    try:
        return abs(time.time() - temporary.stat().st_mtime) > LONGEST_WRITE_S
    except OSError:
        return False


def prune_folder(folder: Path, run_ids: set[str], suffixes: tuple[str, ...], shard: int = 0, shards: int = 1) -> None:
    """Delete `<run>.<suffix>` for runs that are not in `run_ids` and hash to the shard, and leftovers of kills."""
    try:
        names = os.listdir(folder)
    except FileNotFoundError:
        return
    for name in names:
        if store.TEMPORARY in name and _abandoned(folder / name):
            (folder / name).unlink(missing_ok=True)
            continue
        for suffix in sorted(suffixes, key=len, reverse=True):
            if name.endswith(f".{suffix}"):
                run_id = name[: -len(suffix) - 1]
                if run_id not in run_ids and shard_of(run_id, shards) == shard:
                    (folder / name).unlink(missing_ok=True)
                break
