"""The profile for SLURM on a real SLURM: slurmctld, slurmd and munged, started by the test itself."""

from __future__ import annotations

import importlib.util
import re
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from . import slurm
from .conftest import Checkout, environment

#: the profile, told to look more often than a real cluster's controller would like
COMMAND = (
    "snakemake", "--profile", "workflow/profiles/slurm", "--config", "runs={shards: 3}", "--until", "runs", "passports",
    "--seconds-between-status-checks", "2", "--slurm-init-seconds-before-status-checks", "2",
)  # fmt: skip


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[slurm.Slurm]:
    if importlib.util.find_spec("snakemake_executor_plugin_slurm") is None:
        pytest.skip("needs snakemake-executor-plugin-slurm: pip install -e '.[slurm]'")
    if (reason := slurm.why_not()) is not None:
        pytest.skip(reason)
    # munge's socket path must be short, and its folders must not be writable for others
    with slurm.Slurm(Path(str(tmp_path_factory.mktemp("slurm")))) as started:
        yield started


def without_comparison(artifacts: dict[str, bytes]) -> dict[str, bytes]:
    return {name: content for name, content in artifacts.items() if not name.startswith("comparison/")}


def labels(checkout: Checkout) -> set[str]:
    """The shards that hold runs."""
    return {path.stem for path in (checkout.results / ".engine" / "shards").glob("*-of-003.json")}


def patch(checkout: Checkout, script: str, code: str) -> None:
    """Put `code` in front of a script's work."""
    path = checkout.path / "scripts" / script
    text = path.read_text(encoding="utf-8")
    path.write_text(text.replace('if __name__ == "__main__":\n', f'if __name__ == "__main__":\n    {code}\n'))


def test_the_sweep_completes_with_the_same_bytes_as_at_home(
    cluster: slurm.Slurm, checkout: Checkout, made_by_snakemake: Checkout
) -> None:
    run = checkout.run(*(part for part in COMMAND if part not in ("--until", "runs", "passports")))
    assert checkout.artifacts() == made_by_snakemake.artifacts()
    assert "has been submitted with SLURM jobid" in run.stderr
    logs = {path.name for path in (checkout.results / ".engine" / "logs").glob("*.log")}
    shards = labels(checkout)
    assert len(shards) > 1
    expected = {f"{stage}-{shard}.log" for stage in ("token_axis", "passports") for shard in shards}
    assert logs >= expected | {"runs.log", "comparison.log"}, "a log for each job"


def memory_asked_for(cluster: slurm.Slurm, folder: Path) -> list[int]:
    """Megabytes of every job of a folder that SLURM still knows, oldest first."""
    asked = []
    for job in cluster.ask("scontrol", "--oneliner", "show", "jobs").splitlines():
        if f" WorkDir={folder} " in f"{job} ":
            asked += map(int, re.findall(r"MinMemory(?:Node|CPU)=(\d+)M", job))
    return asked


def test_a_failing_job_is_retried_with_more_memory_and_reported(
    cluster: slurm.Slurm, checkout: Checkout, made_by_snakemake: Checkout
) -> None:
    (checkout.path / "fail-once").touch()
    patch(checkout, "fits.py", 'Path("fail-once").exists() and (Path("fail-once").unlink(), sys.exit(1))')
    run = checkout.run(*COMMAND)
    assert "Error in group" in run.stderr and "Trying to restart job" in run.stderr
    # 1,000 MB for the stage `runs`; 2,000 for a shard, in whose job two stages may run side by side; one shard failed
    assert sorted(memory_asked_for(cluster, checkout.path)) == [1000, *[2000] * len(labels(checkout)), 4000]
    assert without_comparison(checkout.artifacts()) == without_comparison(made_by_snakemake.artifacts())
    patch(checkout, "stability.py", 'sys.exit("deliberate")')
    checkout.set_params("  windows: 300", "  windows: 200")
    run = checkout.run(*COMMAND, "--retries", "0", check=False)
    assert run.returncode != 0
    assert "Error in group" in run.stderr or "Error in rule stability" in run.stderr


def test_a_cancelled_job_is_made_up_for_by_running_again(
    cluster: slurm.Slurm, checkout: Checkout, made_by_snakemake: Checkout
) -> None:
    (checkout.path / "slow").touch()
    patch(checkout, "stability.py", '__import__("time").sleep(120 * Path("slow").exists())')
    engine = subprocess.Popen(
        (*COMMAND, "--retries", "0"), cwd=checkout.path, env=environment(), stderr=subprocess.PIPE, text=True
    )
    fits = checkout.results / ".engine" / "index" / "fits"
    until = time.monotonic() + 120
    while (
        not (0 < len(labels(checkout)) == len(list(fits.glob("*.json")))) and time.monotonic() < until
    ):  # then stability is what runs
        time.sleep(0.2)
    jobs = cluster.ask("squeue", "--noheader", "--format=%i").split()
    assert jobs
    cluster.ask("scancel", *jobs)
    _, said = engine.communicate(timeout=120)
    assert engine.returncode != 0, said
    assert not list((checkout.results / "passports").glob("*.json"))
    (checkout.path / "slow").unlink()
    checkout.run(*COMMAND)
    assert without_comparison(checkout.artifacts()) == without_comparison(made_by_snakemake.artifacts())
