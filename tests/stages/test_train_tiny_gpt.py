"""The script that made the demo sweep: real training steps, the log that it leaves, a kill and a resume."""

from __future__ import annotations

import csv
import importlib.util
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tokenaxis import readers
from tokenaxis.axis import build_axis
from tokenaxis.declarations import Declaration

#: smallest model and batch, so that a run costs little more than importing torch
SMALL = ["--layers", "1", "--heads", "1", "--width", "8", "--val-every", "4", "--warmup-steps", "2", "--seed", "3"]

needs_torch = pytest.mark.skipif(
    importlib.util.find_spec("torch") is None, reason="torch is an extra: make test TORCH=1"
)


def train(root: Path, out: Path, *options: str) -> subprocess.CompletedProcess[str]:
    """Run the script on batches of 250 tokens, 8 steps planned."""
    command = [sys.executable, "scripts/train_tiny_gpt.py", "--out", str(out), "--tokens", "2000", *SMALL, *options]
    return subprocess.run(command, cwd=root, capture_output=True, text=True)


def rows(log: Path) -> list[dict[str, str]]:
    with log.open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


@needs_torch
def test_a_killed_and_resumed_run_repeats_its_rows_and_comes_out_as_one_run(root: Path, tmp_path: Path) -> None:
    log, checkpoint = tmp_path / "run_0.25Kbs.csv", tmp_path / "run.pt"
    options = ["--batch-tokens", "250", "--checkpoint-every", "4", "--checkpoint", str(checkpoint)]
    killed = train(root, log, *options, "--stop-after-step", "5")
    assert killed.returncode == -signal.SIGKILL
    resumed = train(root, log, *options, "--resume", str(checkpoint))
    assert resumed.returncode == 0, resumed.stderr
    assert [row["step"] for row in rows(log)] == ["0", "1", "2", "3", "4", "5", "4", "5", "6", "7"]
    axis = build_axis(readers.read(str(log), Declaration()), Declaration(), log.name, "auto")
    assert axis.meta["rows"]["kept"] == 8
    assert axis.meta["rows"]["superseded"] == 2
    assert axis.columns["tokens"].tolist() == [250.0 * step for step in range(8)]


@needs_torch
def test_a_growing_batch_is_logged_in_its_column_and_the_seed_decides_the_losses(root: Path, tmp_path: Path) -> None:
    logs = [tmp_path / "a.csv", tmp_path / "b.csv"]
    for log in logs:
        assert train(root, log, "--batch-schedule", "0:250", "1000:500").returncode == 0
    first, second = (rows(log) for log in logs)
    assert [row["global_batch"] for row in first] == ["250"] * 4 + ["500"] * 2
    assert [row["train_loss"] for row in first] == [row["train_loss"] for row in second]
    assert float(first[0]["train_loss"]) == pytest.approx(5.545, abs=0.3)  # ln 256: an untrained model knows nothing


def test_without_torch_one_line_says_what_to_install(root: Path, tmp_path: Path) -> None:
    code = (
        "import sys, runpy; sys.modules['torch'] = None; "
        f"sys.argv = ['train', '--out', {str(tmp_path / 'x.csv')!r}, '--batch-tokens', '250', '--tokens', '500']; "
        "runpy.run_path('scripts/train_tiny_gpt.py', run_name='__main__')"
    )
    ran = subprocess.run([sys.executable, "-c", code], cwd=root, capture_output=True, text=True)
    assert ran.returncode == 2
    assert len(ran.stderr.strip().splitlines()) == 1 and "torch" in ran.stderr
