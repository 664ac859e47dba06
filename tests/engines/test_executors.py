"""The profiles for LSF and PBS, with stand-ins for the schedulers' commands that really run the jobs."""

from __future__ import annotations

import importlib.util
import os
import re
import subprocess
import time
from pathlib import Path

import pytest

from . import standins
from .conftest import Checkout, environment

#: profile -> the plugin that it needs
PLUGINS = {
    "lsf": "snakemake-executor-plugin-lsf",
    "pbs": "snakemake-executor-plugin-cluster-generic",
    "slurm": "snakemake-executor-plugin-slurm",
}


def needs_plugin(profile: str) -> None:
    plugin = PLUGINS.get(profile)
    if plugin is not None and importlib.util.find_spec(plugin.replace("-", "_")) is None:
        extra = "slurm" if profile == "slurm" else "schedulers"
        pytest.skip(f"needs {plugin}: pip install -e '.[{extra}]'")


def command(profile: str) -> tuple[str, ...]:
    """Snakemake with a profile, told to look more often than a real scheduler would like."""
    return (
        "snakemake", "--profile", f"workflow/profiles/{profile}", "--config", "runs={shards: 2}",
        "--seconds-between-status-checks", "2", "--until", "runs", "passports",
    )  # fmt: skip


def start(checkout: Checkout, commands: Path, profile: str) -> subprocess.Popen[str]:
    ours = environment()
    ours["PATH"] = f"{commands}{os.pathsep}{ours['PATH']}"
    return subprocess.Popen(
        command(profile), cwd=checkout.path, env=ours, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    )


def patch(checkout: Checkout, script: str, code: str) -> None:
    """Put `code` in front of a script's work."""
    path = checkout.path / "scripts" / script
    text = path.read_text(encoding="utf-8")
    path.write_text(text.replace('if __name__ == "__main__":\n', f'if __name__ == "__main__":\n    {code}\n'))


def without_comparison(checkout: Checkout) -> dict[str, bytes]:
    return {name: content for name, content in checkout.artifacts().items() if not name.startswith("comparison/")}


def memory_asked_for(folder: Path) -> list[int]:
    """Megabytes per job of every submission of a shard, oldest first."""
    asked = []
    for call in map(" ".join, standins.calls(folder)):
        if (found := re.search(r"-n (\d+) -R rusage\[mem=(\d+)", call)) is not None:  # LSF counts per core
            asked.append(int(found[1]) * int(found[2]))
        elif (found := re.search(r"select=1:ncpus=\d+:mem=(\d+)mb", call)) is not None:
            asked.append(int(found[1]))
    return [megabytes for megabytes in asked if megabytes > 1000]  # the stage `runs` has a job of its own


@pytest.mark.parametrize("profile", ["lsf", "pbs"])
def test_the_sweep_completes_with_the_same_bytes_as_at_home(
    profile: str, checkout: Checkout, tmp_path: Path, made_by_snakemake: Checkout
) -> None:
    needs_plugin(profile)
    asked = [2000]  # stability and conventions may run side by side in the job of a shard: 1,000 MB each
    if profile == "pbs":  # the plugin for LSF would take another 12 s to notice
        asked.append(4000)
        (checkout.path / "fail-once").touch()
        patch(checkout, "fits.py", 'Path("fail-once").exists() and (Path("fail-once").unlink(), sys.exit(1))')
    engine = start(checkout, standins.install(tmp_path / "scheduler"), profile)
    said, _ = engine.communicate()
    assert engine.returncode == 0, said
    assert without_comparison(checkout) == without_comparison(made_by_snakemake)
    assert memory_asked_for(tmp_path / "scheduler") == asked, "a job that failed gets more memory"
    assert len(asked) == 1 or ("Error in group" in said and "Trying to restart job" in said), "and is reported"
    (shard,) = {path.stem for path in (checkout.results / ".engine" / "shards").glob("*-of-002.json")}
    logs = {path.name for path in (checkout.results / ".engine" / "logs").glob("*.log")}
    assert logs >= {"runs.log", f"token_axis-{shard}.log", f"passports-{shard}.log"}, "a log for each job"


def test_a_job_that_pbs_ended_is_noticed_and_made_up_for(
    checkout: Checkout, tmp_path: Path, made_by_snakemake: Checkout
) -> None:
    needs_plugin("pbs")
    commands = standins.install(tmp_path / "scheduler")
    (checkout.path / "slow").touch()
    patch(checkout, "stability.py", '__import__("time").sleep(100 * Path("slow").exists())')
    engine = start(checkout, commands, "pbs")
    fits = checkout.results / ".engine" / "index" / "fits"
    until = time.monotonic() + 100
    while not list(fits.glob("*.json")) and engine.poll() is None and time.monotonic() < until:
        time.sleep(0.1)
    (checkout.path / "slow").unlink()
    spool = tmp_path / "scheduler" / "spool"
    active = [path.stem for path in spool.glob("*.group") if not path.with_suffix(".status").exists()]
    assert active
    subprocess.run([str(commands / "qdel"), *(f"{number}.standin" for number in active)], check=True)
    said, _ = engine.communicate(timeout=100)
    assert engine.returncode == 0, said
    assert "Error in group" in said and "Trying to restart job" in said
    assert without_comparison(checkout) == without_comparison(made_by_snakemake)


@pytest.mark.parametrize("profile", ["workstation", "slurm", "lsf", "pbs"])
def test_a_profile_plans_every_job(profile: str, checkout: Checkout) -> None:
    needs_plugin(profile)
    run = checkout.run("snakemake", "--profile", f"workflow/profiles/{profile}", "--dry-run", "--quiet", "progress")
    for rule in ("runs", "token_axis", "fits", "stability", "conventions", "passports", "comparison"):
        assert rule in run.stdout + run.stderr
