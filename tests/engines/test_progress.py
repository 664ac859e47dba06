"""Long work says how far it is, to whoever watches and to nobody else."""

from __future__ import annotations

import os
import pty
import subprocess
from types import SimpleNamespace

from tokenaxis.pipeline.progress import Progress, followed

from .conftest import Checkout, environment


class Clock:
    """Seconds that pass only when they are told to."""

    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


def outcomes(count: int, clock: Clock, seconds_each: float):
    for number in range(count):
        clock.now += seconds_each
        yield SimpleNamespace(run={"id": f"run{number}"}), "ok", ""


def said(count: int, seconds_each: float, rows: int | None = 10_000) -> list[str]:
    lines: list[str] = []
    clock = Clock()
    progress = Progress("fits", lines.append, lambda run: rows, clock, every=3.0)
    assert len(list(followed(outcomes(count, clock, seconds_each), count, progress))) == count
    return lines


def test_it_says_runs_rows_rates_and_the_time_left() -> None:
    # 400 runs at 1/8 s: after 3 s 24 are done, 376 are left at 8 a second
    assert said(400, 0.125)[0] == "fits: 24 of 400 runs, 240k rows, 8 runs/s, 80k rows/s, 47 s left"


def test_it_speaks_every_three_seconds_and_not_for_short_work() -> None:
    assert len(said(400, 0.125)) == 16  # 50 s, and nothing at the very end
    assert said(20, 0.125) == []


def test_rows_that_nobody_knows_are_not_invented() -> None:
    assert said(400, 0.125, rows=None)[0] == "fits: 24 of 400 runs, 8 runs/s, 47 s left"


def test_a_run_takes_no_notice_of_being_unwatched(checkout: Checkout) -> None:
    script = (
        "import sys, runpy; sys.path.insert(0, 'workflow'); from tokenaxis.pipeline import progress; "
        "progress.EVERY_S = 0.0; progress.Progress.__init__.__defaults__ = (progress.time.monotonic, 0.0); "
        "sys.argv = ['scripts/token_axis.py']; runpy.run_path('scripts/token_axis.py', run_name='__main__')"
    )
    checkout.run("python", "scripts/runs.py")
    run = checkout.run("python", "-c", script)
    assert "runs/s" not in run.stderr
    (checkout.results / ".engine" / "index" / "token_axis" / "all.json").unlink()
    for path in (checkout.results / "token_axis").glob("*.parquet"):
        path.unlink()
    assert b"token_axis: 1 of 4 runs, 400 rows" in on_a_terminal(checkout, script)
    for stage in ("fits", "stability", "conventions", "passports"):
        checkout.run("python", f"scripts/{stage}.py")
    assert b"comparison: 1 of 4 runs, 400 rows" in on_a_terminal(
        checkout, script.replace("token_axis.py", "comparison.py")
    )


def on_a_terminal(checkout: Checkout, script: str) -> bytes:
    """What a script shows on a terminal."""
    leader, follower = pty.openpty()
    process = subprocess.Popen(
        ["python", "-c", script], cwd=checkout.path, env=environment(), stderr=follower, stdout=follower
    )
    os.close(follower)
    shown = b""
    while chunk := _read(leader):
        shown += chunk
    assert process.wait() == 0, shown
    return shown


def _read(leader: int) -> bytes:
    try:
        return os.read(leader, 4096)
    except OSError:  # EIO: the other side is closed
        return b""
