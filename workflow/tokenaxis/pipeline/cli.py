"""The command line that all stage scripts share: by hand and for DVC without arguments, for Snakemake with a shard."""

from __future__ import annotations

import argparse
import contextlib
import os
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tokenaxis import params, store
from tokenaxis.errors import TokenAxisError
from tokenaxis.pipeline import ahead, locks, made_of
from tokenaxis.pipeline.progress import Progress
from tokenaxis.pipeline.spec import PER_RUN, STAGES
from tokenaxis.pipeline.work import (
    Work,
    from_manifest,
    from_params,
    params_path,
    results_of_listing,
    results_of_manifest,
)


def parser(stage: str, about: str) -> argparse.ArgumentParser:
    """Options of a stage script."""
    options = argparse.ArgumentParser(prog=f"scripts/{stage}.py", description=about)
    options.add_argument("--params", type=Path, help="params.yaml, or a section as JSON; default: ./params.yaml")
    options.add_argument("--sweep", metavar="NAME", help="another sweep than params.yaml names")
    options.add_argument("--logs", metavar="DIR", help="its directory of logs; default: sweeps/NAME")
    options.add_argument("--manifest", type=Path, help="a shard of the sweep (Snakemake); default: the whole sweep")
    options.add_argument("--run", metavar="ID", help="only this run")
    options.add_argument("--jobs", type=int, default=1, help="processes; 0 = as many as there are cores")
    options.add_argument("--log", type=Path, help="a file that gets a copy of what is printed")
    if stage in PER_RUN:
        options.add_argument(
            "--keep-going",
            action="store_true",
            help="exit with 0 although a fault of the program left runs out; the comparison, which engines run last, "
            "then exits with 1",
        )
    return options


def stage_main(stage: str, about: str, argv: list[str] | None = None) -> int:
    """Run a per-run stage. -> exit status: 0, 1 for a fault of the program, 2 for an expected failure."""
    args = parser(stage, about).parse_args(argv)
    say = Console(args.log)
    with expected(say) as outcome:
        inputs = _inputs(args, stage)
        work = work_from(args)
        if inputs is not None and ahead.is_done(stage, work.results, work.label, inputs):
            say.note(f"{stage} {work.label}: up to date; where the job of an earlier stage did it, its log says so")
            return 0
        outcome.status = _run(stage, work, args, say, inputs)
        if inputs is not None and outcome.status == 0:
            _go_on(stage, work, args, say)
    return outcome.status


def _run(
    stage: str, work: Work, args: argparse.Namespace, say: Callable[[str], None], inputs: str | None, wait: bool = True
) -> int:
    """Bring one stage up to date and say so. -> exit status."""
    from tokenaxis.pipeline.runner import run_stage

    part = "" if work.label == "all" else f" {work.label}"
    with at_work(args, work.results, stage, work.label, say, inputs, wait) as job:
        progress = Progress.on_terminal(f"{stage}{part}", work.results)
        summary = run_stage(stage, work, say, args.jobs or os.cpu_count() or 1, args.run, progress)
        strictly_refused = bool(summary.refused) and stage == "token_axis" and work.strict
        job.complete = not summary.failed and not strictly_refused
    say(f"{stage}{part}: {summary.computed} computed, {summary.current} up to date, {summary.refused} left out")
    if summary.failed:
        say(f"{stage}{part}: {summary.failed} failed by a fault of tokenaxis; the other runs go on")
        return 0 if args.keep_going else 1
    if strictly_refused:
        raise TokenAxisError(f"{summary.refused} logs were refused and runs.strict is true")
    return 0


def _go_on(stage: str, work: Work, args: argparse.Namespace, say: Callable[[str], None]) -> None:
    """Do the later stages of the shard too. Whatever goes wrong with them is for their own jobs to meet and say."""
    with contextlib.suppress(Exception):
        for later, inputs in ahead.stages_after(stage, work.results, work.label):
            section = params_path(work.results, later)
            _run(later, from_manifest(args.manifest, section), args, say, inputs, wait=False)


def _inputs(args: argparse.Namespace, stage: str) -> str | None:
    """What a job of Snakemake's is made of, taken before it reads any of it: what changes while it waits makes its note
    unfit. None for other work, and for a single run, of which nothing is noted.

    An orphan of a killed engine may wait for a lock with what it read long before; its results must not count as made
    of what the next engine wrote since.
    """
    if args.manifest is None or args.run is not None:
        return None
    if STAGES[stage].per_run:
        return made_of.digest(results_of_manifest(args.manifest), stage, args.manifest.stem)
    return made_of.digest(results_of_listing(args.manifest), stage, "all")


@dataclass
class Job:
    """Whether a stage brought everything up to date."""

    complete: bool = False


@contextlib.contextmanager
def at_work(
    args: argparse.Namespace,
    results: Path,
    stage: str,
    label: str,
    say: Callable[[str], None],
    inputs: str | None,
    wait: bool = True,
) -> Iterator[Job]:
    """Hold the stage while the block runs; if it completes a job of Snakemake's, note that it was made from `inputs`.

    Raises:
        locks.Busy: another process has the stage, and `wait` is False.
    """
    with locks.stage(results, stage, label, args.run is not None, say, wait):
        job = Job()
        if args.run is not None:
            yield job
            return
        made_of.forget(results, stage, label)
        yield job
        if job.complete and inputs is not None:
            made_of.remember(results, stage, label, inputs)


def work_from(args: argparse.Namespace) -> Work:
    """The task that the options describe."""
    if args.manifest is None:
        return from_params(args.params or params.find("params.yaml"), args.sweep, args.logs)
    return from_manifest(args.manifest, args.params)


def runs_main(about: str, argv: list[str] | None = None) -> int:
    """Run the stage `runs`. -> exit status."""
    from tokenaxis.pipeline.runner import REFUSED, prune_folder, refusal_line
    from tokenaxis.stages import runs

    args = parser("runs", about).parse_args(argv)
    say = Console(args.log)
    with expected(say) as outcome:
        inputs = _inputs(args, "runs")
        found, root, results, strict = _found(args)
        with at_work(args, results, "runs", "all", say, inputs) as job:
            content = runs.write(found, root, results)
            job.complete = bool(content["runs"]) and not (content["refused"] and strict)
        refusals: dict[str, list[str]] = {}
        for item in content["refused"]:
            reason = item["reason"] + (f" -- {item['remedy']}" if item["remedy"] else "")
            refusals.setdefault(reason, []).append(item["name"])
        for reason, names in refusals.items():
            say(refusal_line(names, reason))
        for notice in content["notices"]:
            say(f"runs: {notice['message']}")
        ids = {run["id"] for run in content["runs"]}
        for stage in PER_RUN:
            prune_folder(results / stage, ids, (*STAGES[stage].suffixes, REFUSED))
        passed_over = len(content["passed_over"])
        say(f"runs: {len(ids)} runs, {len(content['refused'])} files refused, {passed_over} passed over")
        if not ids:
            raise runs.no_runs(root, content["passed_over"], content["refused"])
        if content["refused"] and strict:
            raise TokenAxisError(f"{len(content['refused'])} files were refused and runs.strict is true")
    return outcome.status


def _found(args: argparse.Namespace) -> tuple[dict[str, Any], Path, Path, bool]:
    """(what is in the sweep directory, that directory, results/<sweep>, whether a refusal is a failure)."""
    if args.manifest is not None:
        found = store.read_json(args.manifest)
        return found, Path(found["root"]), Path(found["results"]), found["strict"]
    from tokenaxis.stages import runs

    loaded = params.load(args.params or params.find("params.yaml"), Path("results"), args.sweep, args.logs)
    root, results = Path(loaded["logs"]), Path("results") / loaded["sweep"]
    return runs.find(loaded["sweep"], root, loaded["runs"]["ignore"], results), root, results, loaded["runs"]["strict"]


def comparison_main(about: str, argv: list[str] | None = None) -> int:
    """Run the stage `comparison`, or only print its table. -> exit status."""
    options = parser("comparison", about)
    options.add_argument("--show", action="store_true", help="print the table of runs and targets, change nothing")
    args = options.parse_args(argv)
    say = Console(args.log)
    with expected(say) as outcome:
        from tokenaxis.stages import comparison

        inputs = _inputs(args, "comparison")
        work = work_from(args)
        if not args.show:
            with at_work(args, work.results, "comparison", "all", say, inputs) as job:
                say(f"comparison: {'computed' if comparison.update(work) else 'up to date'}")
                job.complete = True
            if failed := comparison.faults(work):
                from tokenaxis.pipeline.runner import refusal_names

                say(f"comparison: without {refusal_names(failed)}, by a fault of tokenaxis; see the logs of the stages")
                outcome.status = 1
        if args.manifest is not None and not args.show:
            say(f"report: {work.results}/comparison/index.html; its table: scripts/comparison.py --show")
        if args.show or args.manifest is None:
            print(comparison.console_table(work))
    return outcome.status


class Console:
    """Prints lines to stderr, and to a log file if there is one."""

    def __init__(self, log: Path | None):
        self.log, self.mode = log, "w"

    def __call__(self, line: str) -> None:
        print(line, file=sys.stderr, flush=True)
        self.note(line)

    def note(self, line: str) -> None:
        """A line for the log alone."""
        if self.log is None:
            return
        try:
            self.log.parent.mkdir(parents=True, exist_ok=True)
            with open(self.log, self.mode, encoding="utf-8") as file:
                file.write(line + "\n")
            self.mode = "a"
        except OSError:
            self.log = None  # a full disk: the console has it all, and the stage itself will say what is wrong


class expected:
    """Turns an expected failure into one line and exit status 2; other exceptions pass."""

    def __init__(self, say: Callable[[str], None]):
        self.say, self.status = say, 0

    def __enter__(self) -> expected:
        return self

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> bool:
        if isinstance(error, KeyboardInterrupt):
            self.say("interrupted; what was done is kept, and the same command goes on from there")
            self.status = 130  # as shells have it: 128 + SIGINT
            return True
        if isinstance(error, OSError) and error.filename is not None:
            error = TokenAxisError(f"cannot be used: {error.strerror}", file=str(error.filename))
        if not isinstance(error, TokenAxisError):
            return False
        self.say(f"error: {error}")
        self.status = 2
        return True
