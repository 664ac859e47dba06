"""The table of goals: figures beside goals, missed ones counted, one clear line without the public logs."""

from __future__ import annotations

import importlib.util
import math
from dataclasses import replace
from pathlib import Path

import pytest

from tokenaxis.backtest import Trial
from tokenaxis.pipeline import goals


def trial(family: str, law: str = "auto", horizon: float = 1.25, error: float = 0.01, hidden: float = 0.2) -> Trial:
    held = {} if law == "seed" else {"0.5": error < 0.02, "0.8": error < 0.05, "0.9": error < 0.1}
    made = Trial(
        "r", family, "train_loss", law, law, hidden, horizon, 2.0, 1.0, math.exp(error), held, 0.1, "", 0.01, ""
    )
    return replace(made, verdict="CONVERGED", status="predicted")


def trials(error: float) -> dict[str, list[Trial]]:
    """Every family with 20 trials that err by `error`, two of which miss their interval, and the reference by 1."""
    found = {}
    for family in goals.FAMILIES:
        horizons = list(goals.ERRORS) if family.constant else [1.4]
        hidden = 0.2 if family.constant else 0.5
        some = [trial(family.name, horizon=h, error=error, hidden=hidden) for h in horizons for _ in range(18)]
        some += [trial(family.name, horizon=h, error=0.12, hidden=hidden) for h in horizons for _ in range(2)]
        found[family.name] = some + [trial(family.name, "seed", h, 1.0, hidden) for h in horizons]
    return found


def test_each_figure_stands_beside_its_goal_and_the_reference() -> None:
    lines = list(goals.lines(trials(0.01)))
    with_goal = [line for line in lines if line.met is not None]
    assert all(line.met for line in with_goal), [line.label for line in with_goal if not line.met]
    first = lines[0].text()
    assert "0.010" in first and "1.000" in first and "<= 0.02" in first and first.endswith("OK")
    assert {line.goal for line in with_goal} >= {
        "<= 0.02",
        "<= 0.06",
        "<= 0.12",
        "<= 0.2",
        "<= 0.03",
        ">= 80%",
        "<= 5%",
    }


def test_what_is_missed_says_so() -> None:
    lines = list(goals.lines(trials(0.3)))
    missed = [line.label for line in lines if line.met is False]
    assert len([label for label in missed if label.startswith("constant rate")]) == len(goals.ERRORS)
    assert any("CONVERGED" in label for label in missed) and any("pooled" in label for label in missed)
    assert all(line.text().endswith("MISSED") for line in lines if line.met is False)


def test_intervals_that_hold_too_often_miss_the_pooled_goal_too() -> None:
    found = {name: [replace(t, intervals=dict.fromkeys(t.intervals, True)) for t in some]
             for name, some in trials(0.01).items()}  # fmt: skip
    pooled = next(line for line in goals.lines(found) if "pooled" in line.label)
    assert pooled.ours == "100 / 100 / 100" and pooled.met is False


@pytest.fixture
def script(root: Path):
    spec = importlib.util.spec_from_file_location("backtest_goals_script", root / "scripts" / "backtest_goals.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_without_the_public_logs_it_says_so_in_one_line(script, root: Path, tmp_path: Path, capsys) -> None:
    absent = tmp_path / "logs"
    assert script.main(["--logs", str(absent), "--params", str(root / "params.yaml")]) == 2
    said = capsys.readouterr()
    assert said.out == "" and said.err.count("\n") == 1 and "public logs" in said.err


def test_the_goals_are_met_on_the_public_logs(script, root: Path, shared: Path, capsys) -> None:
    status = script.main(["--logs", str(shared / "logs"), "--no-reference", "--params", str(root / "params.yaml")])
    assert status == 0, capsys.readouterr().out
