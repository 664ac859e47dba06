"""SIGKILL at random moments: nothing half-written is seen, the same command again gives what an undisturbed run gives.

50 kills a test run; TOKENAXIS_KILLS=500 asks for more.
"""

from __future__ import annotations

import contextlib
import json
import os
import random
import re
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tokenaxis import store

from .conftest import Checkout, environment, write_log

KILLS = int(os.environ.get("TOKENAXIS_KILLS", "50"))
#: how many of them hit what; Snakemake is the dearest
SHARES = {"snakemake": 0.2, "dvc": 0.16, "scripts": 0.56, "comparison": 0.08}
STAGES = ("runs", "token_axis", "fits", "stability", "conventions", "passports")


def kills(of: str) -> int:
    """How many kills are for one kind of victim."""
    return max(2, round(KILLS * SHARES[of]))


def snakemake(shards: int) -> tuple[str, ...]:
    return ("snakemake", "--cores", "2", "--until", "runs", "passports", "--config", f"runs={{shards: {shards}}}")


DVC = ("dvc", "repro", "passports")
#: file -> what DVC says of it when it was killed while it wrote it (docs/dvc.md)
DAMAGED = {
    "dvc.lock": r"'\./dvc\.lock' (validation failed|is invalid)",
    ".dvc/tmp/rwlock": r"Unable to read RWLock-file '\.dvc/tmp/rwlock'",
}


def enter(checkout: Checkout, state: int) -> None:
    """One of two states of the sweep; between them every stage has work to do."""
    params = checkout.path / "params.yaml"
    lists = ("targets: [3.2, 2.9]", "targets: [3.2, 2.8]")
    text = params.read_text(encoding="utf-8")
    params.write_text(text.replace(lists[1 - state], lists[state]), encoding="utf-8")
    write_log(checkout.logs / "a_0.5Mbs.csv", seed=0, rows=(400, 450)[state])
    # refused in one state, a run in the other: neither may leave anything behind
    (checkout.logs / "b_0.25Mbs.csv").write_text("step,train_loss\n1,3.0\n2,2.9\n", encoding="utf-8")
    if state == 0:
        write_log(checkout.logs / "b_0.25Mbs.csv", seed=1, batch=250_000)


@pytest.fixture(scope="module")
def undisturbed(template: Path, tmp_path_factory: pytest.TempPathFactory) -> list[dict[str, bytes]]:
    """The artifacts of both states, each made in a checkout of its own without any trouble."""
    made = []
    for state in (0, 1):
        folder = tmp_path_factory.mktemp("undisturbed") / "checkout"
        shutil.copytree(template, folder, symlinks=True)
        checkout = Checkout(folder)
        enter(checkout, state)
        checkout.run(*snakemake(1))
        made.append(checkout.artifacts())
    assert made[0].keys() == made[1].keys()
    return made


def assert_nothing_half_written(checkout: Checkout) -> None:
    for path in checkout.files():
        with contextlib.suppress(FileNotFoundError):  # an orphan of the killed engine may still be at work
            content = path.read_bytes()
            if path.suffix == ".json":
                json.loads(content)
            elif path.suffix == ".parquet":
                assert store.read_parquet(path)[0], path
            else:
                assert content.endswith(b"\n"), path


def killed(checkout: Checkout, command: tuple[str, ...], after_s: float, with_children: bool) -> bool:
    """Start a command and kill it. -> whether it was still running."""
    process = subprocess.Popen(
        command, cwd=checkout.path, env=environment(), stderr=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
        start_new_session=True,
    )  # fmt: skip
    time.sleep(after_s)
    running = process.poll() is None
    if with_children:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
    else:
        process.kill()
    process.wait()
    return running


def seconds(checkout: Checkout, command: tuple[str, ...]) -> float:
    start = time.monotonic()
    checkout.run(*command)
    return time.monotonic() - start


def again(checkout: Checkout, command: tuple[str, ...]) -> None:
    """The same command once more; after a kill in the very moment in which DVC writes one of its two files in place, as
    docs/dvc.md says."""
    repeated = checkout.run(*command, check=False)
    if repeated.returncode and command is DVC:
        damaged = [file for file, words in DAMAGED.items() if re.search(words, repeated.stderr)]
        assert damaged, repeated.stderr
        for file in damaged:
            (checkout.path / file).unlink()
        repeated = checkout.run(*command, check=False)
    assert repeated.returncode == 0, f"{command} ended with {repeated.returncode}\n{repeated.stdout}\n{repeated.stderr}"


@pytest.mark.parametrize("engine", ["snakemake", "dvc"])
def test_a_killed_engine_is_started_again_and_nothing_else_is_to_do(
    checkout: Checkout, undisturbed: list[dict[str, bytes]], engine: str
) -> None:
    moments = random.Random(f"kill {engine}")
    longest: dict[tuple[str, ...], float] = {}
    hits = 0
    for number in range(kills(engine)):
        # shards side by side now and then, one mostly: that takes half of the time
        command = DVC if engine == "dvc" else snakemake(3 if number % 4 == 0 else 1)
        if command not in longest:
            enter(checkout, number % 2)
            longest[command] = seconds(checkout, command)
        state = 1 - number % 2
        enter(checkout, state)
        hits += killed(
            checkout, command, moments.uniform(0.2, 1.0) * longest[command], with_children=moments.random() < 0.5
        )
        assert_nothing_half_written(checkout)
        again(checkout, command)
        assert checkout.artifacts() == undisturbed[state], f"kill {number}"
    assert hits, "the engine was always faster than the kill"


def test_a_killed_stage_script_leaves_whole_artifacts(checkout: Checkout, undisturbed: list[dict[str, bytes]]) -> None:
    moments = random.Random("kill scripts")
    scripts = {stage: (sys.executable, f"scripts/{stage}.py", "--jobs", "2") for stage in STAGES}
    longest = {stage: seconds(checkout, command) for stage, command in scripts.items()}
    hits = 0
    for number in range(kills("scripts")):
        state = 1 - number % 2
        enter(checkout, state)
        at = number % len(STAGES)
        for stage in STAGES[:at]:
            checkout.run(*scripts[stage])
        victim = STAGES[at]
        hits += killed(checkout, scripts[victim], moments.uniform(0.3, 1.0) * longest[victim], with_children=True)
        assert_nothing_half_written(checkout)
        for stage in STAGES[at:]:
            checkout.run(*scripts[stage])
        assert checkout.artifacts() == undisturbed[state], f"kill {number} of {victim}"
    assert hits, "the scripts were always faster than the kill"


def test_a_killed_comparison_is_made_again_whole(made_by_snakemake: Checkout, copy_of) -> None:
    checkout = copy_of(made_by_snakemake)
    expected = checkout.artifacts()
    command = (sys.executable, "scripts/comparison.py")
    (checkout.results / "comparison" / "index.html").unlink()
    longest = seconds(checkout, command)
    moments = random.Random("kill comparison")
    hits = 0
    for _ in range(kills("comparison")):
        (checkout.results / "comparison" / "index.html").unlink()
        hits += killed(checkout, command, moments.uniform(0.3, 1.0) * longest, with_children=True)
        for name, content in checkout.artifacts().items():
            assert content == expected[name], name
        checkout.run(*command)
        assert checkout.artifacts() == expected
    assert hits, "the comparison was always faster than the kill"


def test_leftovers_of_kills_are_tidied_up_later(made_by_snakemake: Checkout, copy_of) -> None:
    checkout = copy_of(made_by_snakemake)
    places = ("fits/a_0.5Mbs.json", "runs.json", "comparison/.index.html", "comparison/figures/.loss.svg",
              ".engine/discovery.json", ".engine/index/fits/000-of-002.json")  # fmt: skip
    old = [checkout.results / f"{place}.tmp-123" for place in places]
    new = [checkout.results / f"{place}.tmp-124" for place in places]  # somebody may be writing these at the moment
    for path in (*old, *new):
        path.write_text("{", encoding="utf-8")
    for path in old:
        os.utime(path, (time.time() - 3600, time.time() - 3600))
    checkout.run("python", "scripts/fits.py")
    assert not old[0].exists(), "a stage tidies its own folder"
    checkout.snakemake("--dry-run")
    assert not [path for path in old if path.exists()]
    assert all(path.exists() for path in new)
