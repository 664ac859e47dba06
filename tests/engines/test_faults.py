"""What goes wrong around a pipeline: full or read-only disks, two engines at once, growing logs, clocks, odd files."""

from __future__ import annotations

import json
import os
import shutil
import socket
import stat
import subprocess
import threading
import time
from collections.abc import Callable, Iterator

import numpy as np
import pytest

from tokenaxis import store

from .conftest import Checkout, environment, write_log

Copy = Callable[[Checkout], Checkout]
STAGES = ("runs", "token_axis", "fits", "stability", "conventions", "passports", "comparison")


def expected_failure(run: subprocess.CompletedProcess[str], text: str) -> None:
    """One line that says what is wrong, exit status 2, no traceback."""
    assert run.returncode == 2, run.stderr
    assert "Traceback" not in run.stderr
    errors = [line for line in run.stderr.splitlines() if line.startswith("error: ")]
    assert len(errors) == 1 and text in errors[0], run.stderr


# -- disks


@pytest.fixture
def small_disk(checkout: Checkout) -> Iterator[Callable[[str], None]]:
    """Puts results/ on a file system of its own; call it with a size to make it larger."""
    results = checkout.path / "results"
    results.mkdir()

    def mount(options: str) -> None:
        subprocess.run(
            ["mount", "-t", "tmpfs", "-o", options, "tokenaxis-test", str(results)], check=True, capture_output=True
        )

    if os.geteuid() != 0:
        pytest.skip("a small disk needs root: mount -t tmpfs")
    try:
        mount("size=160k")
    except subprocess.CalledProcessError as error:
        pytest.skip(f"no tmpfs can be mounted here: {error.stderr.decode().strip()}")
    try:
        yield lambda size: mount(f"remount,size={size}")
    finally:
        subprocess.run(["umount", str(results)], check=True)


def test_a_full_disk_is_one_line_and_with_room_the_work_goes_on(
    checkout: Checkout, small_disk: Callable[[str], None], made_by_snakemake: Checkout
) -> None:
    failed = []
    for stage in STAGES:
        run = checkout.run("python", f"scripts/{stage}.py", "--jobs", "2", check=False)
        if run.returncode != 0:
            expected_failure(run, "No space left on device")
            failed.append(stage)
            break
    assert failed, "160 kB were enough"
    engine = checkout.snakemake(check=False)
    assert engine.returncode != 0
    assert "No space left on device" in engine.stderr and "Traceback" not in engine.stderr
    for path in checkout.files():
        assert path.suffix != ".json" or json.loads(path.read_bytes()), path
    small_disk("64m")
    checkout.snakemake()
    assert checkout.artifacts() == made_by_snakemake.artifacts()


@pytest.mark.parametrize("size", ["500k", "1200k", "2500k"])  # tables, figures, page
def test_a_disk_that_fills_up_in_the_comparison_is_one_line(
    size: str, checkout: Checkout, small_disk: Callable[[str], None], made_by_snakemake: Checkout
) -> None:
    small_disk(size)
    run = checkout.snakemake(check=False)
    assert run.returncode != 0
    assert "Error in rule comparison" in run.stderr, "another stage was hit: other sizes are needed"
    assert "No space left on device" in run.stderr and "Traceback" not in run.stderr
    small_disk("64m")
    checkout.snakemake()
    assert checkout.artifacts() == made_by_snakemake.artifacts()


def test_read_only_results_are_one_line_and_stay_as_they_are(
    made_by_snakemake: Checkout, copy_of: Copy, unprivileged: list[str]
) -> None:
    checkout = copy_of(made_by_snakemake)
    before = checkout.artifacts()
    checkout.set_params("targets: [3.2, 2.9]", "targets: [3.2, 2.8]")
    made = [checkout.path / "results", *(checkout.path / "results").rglob("*")]
    for path in made:
        path.chmod(path.stat().st_mode & ~0o222)
    try:
        for command in (["python", "scripts/fits.py"], ["snakemake", "--cores", "2"]):
            expected_failure(checkout.run(*unprivileged, *command, check=False), "Permission denied")
    finally:
        for path in made:
            path.chmod(path.stat().st_mode | stat.S_IWUSR)
    assert checkout.artifacts() == before


# -- two at once


def start(checkout: Checkout, *command: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        command, cwd=checkout.path, env=environment(), stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    )


def test_a_second_snakemake_is_told_that_the_first_is_at_work(checkout: Checkout, made_by_snakemake: Checkout) -> None:
    first = start(checkout, "snakemake", "--cores", "2")
    lock = checkout.results / ".engine" / "locks" / "snakemake"
    until = time.monotonic() + 60
    while not (lock.exists() and lock.read_text()) and time.monotonic() < until:
        time.sleep(0.01)
    expected_failure(checkout.snakemake(check=False), f"another snakemake (process {first.pid}) is at work")
    assert checkout.snakemake("--dry-run").returncode == 0, "looking is allowed"
    output, _ = first.communicate()
    assert first.returncode == 0, output
    assert checkout.artifacts() == made_by_snakemake.artifacts()


def test_both_engines_at_once_do_no_harm(checkout: Checkout, made_by_snakemake: Checkout) -> None:
    engines = [start(checkout, "snakemake", "--cores", "2"), start(checkout, "dvc", "repro")]
    for engine in engines:
        output, _ = engine.communicate()
        assert engine.returncode == 0, output
    assert checkout.artifacts() == made_by_snakemake.artifacts()
    before = checkout.times()
    checkout.snakemake()
    checkout.dvc()
    assert checkout.times() == before


# -- logs and clocks


def test_a_log_that_grows_while_it_is_read_gives_whole_rows_and_later_the_rest(checkout: Checkout) -> None:
    log = checkout.logs / "a_0.5Mbs.csv"
    content = log.read_bytes()
    lines = content.splitlines(keepends=True)
    truth = np.array([float(line.split(b",")[1]) for line in lines[1:]])
    at = len(b"".join(lines[:60])) + 7  # within a row
    log.write_bytes(content[:at])
    done = threading.Event()

    def write_on() -> None:
        with open(log, "ab", buffering=0) as file:
            for place in range(
                at, len(content), 31
            ):  # 31: no multiple of a row's length, so most writes end within one
                file.write(content[place : place + 31])
                time.sleep(0.01)
        done.set()

    writer = threading.Thread(target=write_on)
    writer.start()
    seen = []
    while not done.is_set():
        checkout.run("python", "scripts/runs.py")
        checkout.run("python", "scripts/token_axis.py")
        columns, _ = store.read_parquet(checkout.results / "token_axis" / "a_0.5Mbs.parquet")
        rows = len(columns["step"])
        assert np.array_equal(columns["train_loss"], truth[:rows])  # exact: a torn number would be another one
        seen.append(rows)
    writer.join()
    checkout.snakemake("--until", "token_axis")
    columns, _ = store.read_parquet(checkout.results / "token_axis" / "a_0.5Mbs.parquet")
    assert np.array_equal(columns["train_loss"], truth)
    assert seen and seen[0] < len(truth), "the log was complete before it was looked at"


def last_step(checkout: Checkout) -> int:
    return json.loads((checkout.results / "fits" / "a_0.5Mbs.json").read_text())["observed"]["step"]


def test_a_clock_that_was_wrong_hides_no_change(made_by_snakemake: Checkout, copy_of: Copy) -> None:
    checkout = copy_of(made_by_snakemake)
    tomorrow = time.time() + 86_400
    for path in [*checkout.logs.rglob("*"), *(checkout.path / "results").rglob("*")]:
        os.utime(path, (tomorrow, tomorrow))
    write_log(checkout.logs / "a_0.5Mbs.csv", seed=0, rows=450)
    checkout.snakemake()
    assert last_step(checkout) == 450
    assert "Nothing to be done" in checkout.snakemake().stderr


def test_a_restored_mtime_hides_no_change(made_by_snakemake: Checkout, copy_of: Copy) -> None:
    checkout = copy_of(made_by_snakemake)
    checkout.snakemake()
    log = checkout.logs / "a_0.5Mbs.csv"
    before = log.stat()
    text = log.read_text()
    log.write_text(text.replace("\n400,", "\n402,"))  # as many bytes
    os.utime(log, ns=(before.st_atime_ns, before.st_mtime_ns))
    assert log.stat().st_size == before.st_size
    checkout.snakemake()
    assert last_step(checkout) == 402


def test_a_log_that_changes_while_a_job_runs_is_not_forgotten(made_by_snakemake: Checkout, copy_of: Copy) -> None:
    checkout = copy_of(made_by_snakemake)
    checkout.snakemake()
    write_log(checkout.logs / "a_0.5Mbs.csv", seed=0, rows=450)
    checkout.snakemake("--dry-run")  # writes the manifests that know of it
    for index in (checkout.results / ".engine" / "index").rglob("*.json"):
        os.utime(index)  # what a job that began before would leave: an index younger than the manifest
    checkout.snakemake()
    assert last_step(checkout) == 450


# -- a sweep directory that nobody tidied

HOSTILE = [
    "with space_0.5Mbs.csv", "quote'_0.5Mbs.csv", 'double"_0.5Mbs.csv', "$(touch PWNED)_0.5Mbs.csv",
    "`touch PWNED`_0.5Mbs.csv", "; touch PWNED;_0.5Mbs.csv", "new\nline_0.5Mbs.csv", "-rf_0.5Mbs.csv",
    "{run}_0.5Mbs.csv", "%s_0.5Mbs.csv", "CON_0.5Mbs.csv", "ünï_0.5Mbs.csv", "tab\t_0.5Mbs.csv", "*_0.5Mbs.csv",
    "a...b_0.5Mbs.csv", "x" * 240 + "_0.5Mbs.csv", "Same_0.5Mbs.csv", "same_0.5Mbs.csv", "\x1b[31m_0.5Mbs.csv",
    "#!_0.5Mbs.csv",
]  # fmt: skip


def everything_outside(checkout: Checkout) -> set[str]:
    """Paths of the checkout and of the folder around it, apart from results and Snakemake's own."""
    around = checkout.path.parent
    names = {os.path.join(folder, name) for folder, dirs, files in os.walk(around) for name in dirs + files}
    ours = (str(checkout.path / "results"), str(checkout.path / ".snakemake"))
    return {name for name in names if not name.startswith(ours) and "__pycache__" not in name}


def test_hostile_names_and_odd_files_are_handled_or_refused_by_name(
    checkout: Checkout, unprivileged: list[str]
) -> None:
    shutil.rmtree(checkout.logs)
    for number, name in enumerate(HOSTILE):
        write_log(checkout.logs / name, seed=number, rows=60)
    write_log(checkout.logs / os.fsdecode(b"bad\xff_0.5Mbs.csv"), seed=99, rows=60)
    (checkout.logs / "empty_0.5Mbs.csv").touch()
    (checkout.logs / "loop").symlink_to(".")
    (checkout.logs / "around").symlink_to("around")
    (checkout.logs / "dangling_0.5Mbs.csv").symlink_to("nothing")
    os.mkfifo(checkout.logs / "fifo_0.5Mbs.csv")
    listener = socket.socket(socket.AF_UNIX)
    here = os.getcwd()
    os.chdir(checkout.logs)  # a socket's path may not be longer than 107 bytes
    listener.bind("socket_0.5Mbs.csv")
    os.chdir(here)
    write_log(checkout.logs / "secret_0.5Mbs.csv", seed=1)
    (checkout.logs / "secret_0.5Mbs.csv").chmod(0)
    (checkout.logs / "closed").mkdir(mode=0)
    outside = everything_outside(checkout)
    try:
        run = checkout.run(*unprivileged, "snakemake", "--cores", "2")
    finally:
        listener.close()
        (checkout.logs / "closed").chmod(0o700)
    assert everything_outside(checkout) == outside
    found = json.loads((checkout.results / "runs.json").read_text())
    assert len(found["runs"]) == len(HOSTILE) + 1
    assert len({item["id"].lower() for item in found["runs"]}) == len(found["runs"]), "ids differ on any file system"
    refused = {item["name"] for item in found["refused"]}
    assert {"empty_0.5Mbs.csv", "secret_0.5Mbs.csv", "closed", "around", "dangling_0.5Mbs.csv"} <= refused
    assert {"fifo_0.5Mbs.csv", "socket_0.5Mbs.csv"} <= {item["name"] for item in found["passed_over"]}
    assert "\x1b" not in run.stderr + run.stdout, "no name may steer a terminal"
    for item in found["runs"]:
        assert (checkout.results / "passports" / f"{item['id']}.json").exists()


@pytest.mark.slow
def test_a_hundred_thousand_files_are_looked_at_once(checkout: Checkout) -> None:
    folder = checkout.logs / "many"
    folder.mkdir()
    for number in range(100_000):
        (folder / f"checkpoint-{number}.bin").touch()
    checkout.snakemake("--until", "runs")
    found = json.loads((checkout.results / "runs.json").read_text())
    assert len(found["runs"]) == 4
    start = time.monotonic()
    checkout.snakemake("--dry-run", "--quiet", "all")
    # 1.5 s on a quiet machine, of which 0.9 are Snakemake's own; opening every file again would be 5 s more
    assert time.monotonic() - start < 20
