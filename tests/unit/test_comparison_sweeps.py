"""Before and after: what moved beyond its interval, what was lost, and the exit status of scripts/compare.py."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.unit.test_comparison_fake_sweep import PARAMS, make_sweep
from tokenaxis.comparison import make
from tokenaxis.comparison.summary import SCHEMA
from tokenaxis.comparison.sweeps import Comparison, as_json, as_text, compare


def cell(tokens: float | None, half: float = 0.1, status: str = "predicted", loss: str = "val_loss") -> dict[str, Any]:
    low, high = (None, None) if tokens is None else (tokens * (1 - half), tokens * (1 + half))
    return {"status": status, "loss": loss, "step": None, "tokens": tokens, "low": low, "high": high,
            "interval_level": 0.9, "verdict": None, "ratio_to_baseline": None}  # fmt: skip


def summary(cells: dict[str, dict[str, Any]], refused: tuple[str, ...] = ()) -> dict[str, Any]:
    names = {name: None for found in cells.values() for name in found}
    best = {
        name: min((found[name]["tokens"], run) for run, found in cells.items() if found.get(name, cell(None))["tokens"])
        for name in names
        if any(found.get(name, cell(None))["tokens"] for found in cells.values())
    }
    targets = {name: {"best_run": best[name][1] if name in best else None} for name in names}
    return {"schema": SCHEMA, "cells": cells, "targets": targets, "refused": [{"name": name} for name in refused]}


def one(before: dict[str, Any] | None, after: dict[str, Any] | None) -> Comparison:
    """A sweep of one run and one target."""
    return compare(*(summary({"a": {} if found is None else {"1.60": found}}) for found in (before, after)))


UNANSWERED = cell(None, status="unreachable")


@pytest.mark.parametrize(
    ("before", "after", "kind", "agree"),
    [
        (cell(1e9), cell(1e9), "same", True),
        (cell(1e9), cell(1.05e9), "shifted", True),
        (cell(1e9), cell(1.2e9), "moved", False),
        (cell(1e9), cell(0.8e9), "moved", False),
        (cell(1e9) | {"high": None}, cell(5e9), "shifted", True),  # unbounded above holds anything above
        (cell(1e9) | {"low": None, "high": None}, cell(1.0001e9), "moved", False),
        (cell(1e9), cell(1.05e9, 0.01, "reached"), "confirmed", True),
        (cell(1e9), cell(1.5e9, 0.01, "reached"), "moved", False),
        (cell(1e9), UNANSWERED, "lost", False),
        (UNANSWERED, cell(1e9), "found", True),
        (UNANSWERED, cell(None, status="not_available"), "status", True),
        (UNANSWERED, UNANSWERED, "same", True),
        (cell(1e9), cell(1e9, loss="train_loss"), "incomparable", False),
        (cell(1e9), None, "gone", False),
        (None, cell(1e9), "new", True),
    ],
)
def test_a_change_has_a_kind(
    before: dict[str, Any] | None, after: dict[str, Any] | None, kind: str, agree: bool
) -> None:
    found = one(before, after)
    assert [change.kind for change in found.changes] == [kind]
    assert found.agree is agree


def test_a_changed_winner_and_refused_files_are_named() -> None:
    before = summary({"a": {"1.60": cell(1e9)}, "b": {"1.60": cell(1.02e9)}}, ("x.csv",))
    after = summary({"a": {"1.60": cell(1.03e9)}, "b": {"1.60": cell(1.02e9)}}, ("y.csv",))
    found = compare(before, after)
    assert found.best == {"1.60": ("a", "b")}
    assert (found.refused, found.accepted) == (("y.csv",), ("x.csv",))
    assert not found.agree  # a file that could be used cannot be any more
    text = as_text(found)
    assert "first at 1.60: a before, b after" in text and "refused now: y.csv" in text


def test_text_lists_what_matters_and_counts_the_rest() -> None:
    text = as_text(one(cell(1e9), cell(1.2e9)))
    assert "~1.00B [900M, 1.10B] -> ~1.20B [1.08B, 1.32B]  1.20×" in text
    assert text.endswith("1 answer: 1 moved\n")
    assert as_text(one(cell(1e9), cell(1.05e9))) == "1 answer: 1 shifted\n"
    assert "shifted: " in as_text(one(cell(1e9), cell(1.05e9)), everything=True)


def test_hostile_run_names_stay_on_their_line() -> None:
    found = compare(summary({"a\n\x1b[31m": {"1.60": cell(1e9)}}), summary({"a\n\x1b[31m": {"1.60": cell(2e9)}}))
    assert "\x1b" not in as_text(found) and len(as_text(found).splitlines()) == 3
    json.dumps(as_json(found), allow_nan=False)


def run(root: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, str(root / "scripts" / "compare.py"), *arguments]
    return subprocess.run(command, capture_output=True, text=True)


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """The fake sweep, and the same where one answer lies elsewhere."""
    folders = tmp_path_factory.mktemp("a"), tmp_path_factory.mktemp("b")
    for folder in folders:
        make(make_sweep(), PARAMS | {"figures": []}, folder / "comparison")
    path = folders[1] / "comparison" / "summary.json"
    content = json.loads(path.read_text("utf-8"))
    content["cells"]["gpt_4Kbs"]["1.60"]["tokens"] *= 1.5
    path.write_text(json.dumps(content), encoding="utf-8")
    return folders


def test_the_script_says_by_its_status_whether_anything_moved(root: Path, results: tuple[Path, Path]) -> None:
    same, moved = run(root, str(results[0]), str(results[0])), run(root, str(results[0]), str(results[1]))
    assert (same.returncode, moved.returncode) == (0, 1)
    assert "gpt_4Kbs" in moved.stdout and "1.50×" in moved.stdout
    assert "1 moved" in moved.stdout


def test_json_holds_what_changed(root: Path, results: tuple[Path, Path]) -> None:
    found = json.loads(run(root, str(results[0]), str(results[1]), "--json").stdout)
    assert found["agree"] is False and found["counts"]["moved"] == 1
    assert [(entry["run"], entry["target"], entry["kind"]) for entry in found["changes"]] == [
        ("gpt_4Kbs", "1.60", "moved")
    ]


def test_a_folder_without_a_comparison_is_one_line_and_status_2(
    root: Path, results: tuple[Path, Path], tmp_path: Path
) -> None:
    found = run(root, str(results[0]), str(tmp_path))
    assert found.returncode == 2
    assert found.stderr.count("\n") == 1 and "Traceback" not in found.stderr
