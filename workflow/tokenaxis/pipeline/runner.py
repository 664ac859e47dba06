"""Runs one stage over many runs: only what is not current, one run's trouble never another's."""

from __future__ import annotations

import importlib
import os
import signal
import time
import traceback
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tokenaxis import store
from tokenaxis.errors import TokenAxisError, printable
from tokenaxis.pipeline import fingerprints
from tokenaxis.pipeline.ledger import Ledger, record
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
        summary.computed += status != "failed"
        summary.failed += status == "failed"
        summary.refused += status == "refused"
        entries[task.run["id"]] = _entry(task, status)
    for reason, names in refusals.items():
        say(refusal_line(names, reason))
    if only is None:
        _prune(stage, work)
        ledger.entries = entries
        work.hashes.save()
        ledger.save(name)
    return summary


def refusal_line(names: list[str], reason: str) -> str:
    """One line for all files that were refused for the same reason."""
    return f"refused: {refusal_names(names)}: {reason}"


def refusal_names(names: list[str]) -> str:
    """The first of some names, and how many more there are."""
    return ", ".join(names[:3]) + ("" if len(names) <= 3 else f" and {len(names) - 3} more")


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
    folder = work.results / stage.name
    if ledger.intact(run_id, folder):
        entry = ledger.entries[run_id]
        return entry["fingerprint"] if entry["status"] == "ok" else None
    if (folder / f"{run_id}.{REFUSED}").exists():
        return None
    return _embedded(folder / f"{run_id}.{stage.suffixes[-1]}")


def _embedded(path: Path) -> str | None:
    return store.parquet_fingerprint(path) if path.suffix == ".parquet" else store.json_fingerprint(path)


def _current(task: Task, ledger: Ledger) -> dict[str, Any] | None:
    """The index entry of a run whose artifacts are current, else None."""
    folder = task.work.results / task.stage.name
    entry = ledger.entries.get(task.run["id"])
    if entry is not None and entry["fingerprint"] == task.fingerprint:
        if entry["status"] == "failed":
            return None  # what failed may not fail again: memory, a library that was mended
        if ledger.intact(task.run["id"], folder):
            return entry
        return _entry(task, entry["status"]) if ledger.same_content(task.run["id"], folder) else None
    refusal = store.read_json(task.path(REFUSED))
    if isinstance(refusal, dict) and refusal.get("fingerprint") == task.fingerprint:
        return None if refusal.get("fault") else _entry(task, "refused")
    carry = [suffix for suffix in task.stage.suffixes if suffix != "md"]
    if any(_embedded(task.path(suffix)) != task.fingerprint for suffix in carry):
        return None
    # Markdown carries no fingerprint: it is written before its partner, which does
    return _entry(task, "ok") if all(task.path(suffix).exists() for suffix in task.stage.suffixes) else None


def _entry(task: Task, status: str) -> dict[str, Any]:
    suffixes = task.stage.suffixes if status == "ok" else (REFUSED,)
    files = {path.name: record(path) for path in (task.path(suffix) for suffix in suffixes)}
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
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C reaches the parent too, which ends its children
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
    _forget_former(task)
    try:
        return compute(task), ""
    except TokenAxisError as error:
        if isinstance(error.__cause__, OSError) and task.work.results in Path(error.file or "").parents:
            raise  # disk full, or read-only: as true of every other run
        _leave_out(task, {"reason": _reason(error), "remedy": error.remedy and printable(error.remedy)})
        return "refused", _reason(error) + (f" -- {printable(error.remedy)}" if error.remedy else "")
    except Exception as error:
        reason = f"a fault of tokenaxis in stage {task.stage.name}: {type(error).__name__}: {error}"
        _leave_out(task, {"reason": printable(reason), "remedy": "report it with the log", "fault": True})
        return "failed", f"error: {task.run['name']}: {reason}\n{traceback.format_exc()}"


def _leave_out(task: Task, why: dict[str, Any]) -> None:
    """Put a refusal in the place of a run's artifacts."""
    for suffix in reversed(task.stage.suffixes):
        task.path(suffix).unlink(missing_ok=True)
    store.write_json(task.path(REFUSED), task.stamp("refused") | {"name": task.run["name"]} | why)


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
