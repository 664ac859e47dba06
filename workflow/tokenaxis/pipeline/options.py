"""What the Snakefile must know of Snakemake's command line while it is parsed: Snakemake decides it later."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from tokenaxis.pipeline.work import manifest_path

#: a job of a cluster costs some 5 s before it starts: so many runs are worth that
RUNS_OF_A_CLUSTER_JOB = 50
#: options that look at the workflow and run nothing
LOOKS = ("dryrun", "lint", "list_rules", "dag", "rulegraph", "summary", "report")


def option(arguments: list[str], name: str) -> Any:
    """The value of an option, profile included; None if there is none."""
    from snakemake.cli import parse_args  # type: ignore[import-untyped]

    try:
        return getattr(parse_args(arguments)[1], name, None)
    except SystemExit:
        return None


def only_looks(arguments: list[str]) -> bool:
    """Whether Snakemake was asked to show something, not to run jobs."""
    return any(option(arguments, name) for name in LOOKS)


def shards(asked: int | str, runs: int, cores: int | None, results: Path, arguments: list[str]) -> int:
    """The number of shards: as asked for, or by the cores, or on a cluster by the runs."""
    if asked != "auto":
        count = int(asked)
    elif cores:
        count = cores
    elif option(arguments, "executor") in (None, "local"):
        count = shards_before(results)
    else:
        count = -(-runs // RUNS_OF_A_CLUSTER_JOB)
    return max(1, min(runs, count))


def shards_before(results: Path) -> int:
    """The number of the last parse: who only asks (`--report`, `--summary`) need not give `--cores`."""
    try:
        return int(count_path(results).read_text(encoding="ascii"))
    except (OSError, ValueError):
        return 1


def count_path(results: Path) -> Path:
    """Where the number of shards is kept."""
    return manifest_path(results, "count").with_suffix(".txt")
