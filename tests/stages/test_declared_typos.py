"""Mistakes in configs/sweeps/<sweep>.yaml are said, never passed over in silence; sweeps in which nothing is a run."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from tokenaxis.errors import TokenAxisError
from tokenaxis.sweep.declared import SweepDeclaration, parse_schedule
from tokenaxis.sweep.discover import discover

LOG = "step,train_loss\n" + "".join(f"{step},{4 - step / 100}\n" for step in range(50))


class Folder:
    """A folder with params.yaml and a sweep `mine`, in which the stage `runs` is run."""

    def __init__(self, path: Path, root: Path):
        self.path, self.root = path, root
        (path / "logs").mkdir()
        text = (root / "params.yaml").read_text(encoding="utf-8")
        text = re.sub(r"^sweep: \S+", "sweep: mine", text, flags=re.MULTILINE)
        (path / "params.yaml").write_text(re.sub(r"^logs: \S+", "logs: logs", text, flags=re.MULTILINE))

    def declare(self, **content: Any) -> None:
        file = self.path / "configs" / "sweeps" / "mine.yaml"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(yaml.safe_dump(content), encoding="utf-8")

    def run(self, script: str = "runs") -> subprocess.CompletedProcess[str]:
        command = [sys.executable, str(self.root / "scripts" / f"{script}.py")]
        return subprocess.run(command, cwd=self.path, capture_output=True, text=True)

    def listing(self) -> dict[str, Any]:
        return json.loads((self.path / "results" / "mine" / "runs.json").read_text(encoding="utf-8"))


@pytest.fixture
def folder(tmp_path: Path, root: Path) -> Folder:
    return Folder(tmp_path, root)


def test_a_pattern_that_fits_nothing_is_said_on_the_console_and_in_runs_json(folder: Folder) -> None:
    (folder.path / "logs" / "run_1Kbs.csv").write_text(LOG)
    folder.declare(
        runs=[{"match": "rnu_*", "tokens_per_step": 7}, {"match": "run_*", "seq_len": 8}],
        groups=[{"match": "*/job?.csv", "run": "x"}],
        separate=["nothing"],
        ignore=["scrach/*"],
    )
    done = folder.run()
    assert done.returncode == 0
    said = [notice["message"] for notice in folder.listing()["notices"]]
    assert {notice["code"] for notice in folder.listing()["notices"]} == {"pattern_fits_nothing"}
    for pattern in ("rnu_*", "*/job?.csv", "nothing", "scrach/*"):
        assert sum(repr(pattern) in message for message in said) == 1
        assert repr(pattern) in done.stderr
    assert len(said) == 4


def test_runs_with_the_same_bytes_are_named_on_the_console(folder: Folder) -> None:
    for name in ("run_1Kbs.csv", "run_2Kbs.csv"):
        (folder.path / "logs" / name).write_text(LOG)
    done = folder.run()
    assert "1 run has the same bytes as another: run_2Kbs = run_1Kbs" in done.stderr
    assert [run["same_bytes_as"] for run in folder.listing()["runs"]] == [None, "run_1Kbs"]


def test_a_batch_and_a_schedule_in_one_entry_are_refused_with_both_keys(tmp_path: Path) -> None:
    (tmp_path / "run.csv").write_text(LOG)
    both = {"tokens_per_step": 100, "batch_schedule": [[0, 100]]}
    for entries in ((("*", both),), (("run.csv", both),)):
        (refused,) = discover(tmp_path, SweepDeclaration(entries=entries), []).refused
        assert "tokens_per_step and batch_schedule" in refused["reason"]


def test_a_schedule_for_a_run_replaces_the_batch_for_all_and_the_other_way_round() -> None:
    fixed, schedule = {"tokens_per_step": 100}, {"batch_schedule": [[0, 200]]}
    for first, second in ((fixed, schedule), (schedule, fixed)):
        declared = SweepDeclaration(entries=(("*", first), ("run.csv", second))).of("run.csv").as_dict()
        assert [key for key in ("tokens_per_step", "batch_schedule") if key in declared] == list(second)


@pytest.mark.parametrize("stages", [["100:5", "0:3"], [[0, 3], [100, 5], [100, 6]]])
def test_a_schedule_that_does_not_ascend_is_refused_and_not_sorted(stages: list[Any]) -> None:
    with pytest.raises(TokenAxisError, match="do not ascend"):
        parse_schedule(stages)


def test_a_planned_end_that_the_log_has_passed_is_a_warning_in_its_artifact(folder: Folder) -> None:
    from tokenaxis import store

    (folder.path / "logs" / "run_1Kbs.csv").write_text(LOG)
    for planned, warned in (({"planned_tokens": 48_000}, True), ({"planned_steps": 40}, True), ({}, False)):
        folder.declare(defaults=planned | {"seq_len": 8})
        assert folder.run().returncode == 0
        assert folder.run("token_axis").returncode == 0
        _, meta = store.read_parquet(folder.path / "results" / "mine" / "token_axis" / "run_1Kbs.parquet")
        messages = [notice["message"] for notice in meta["warnings"] if notice["code"] == "planned_end_passed"]
        assert bool(messages) is warned
        if warned:
            assert next(iter(planned)) in messages[0]


def test_a_remedy_names_the_file_of_this_sweep(folder: Folder) -> None:
    (folder.path / "logs" / "run_1Kbs.csv").write_text(LOG.replace("train_loss", "my_loss"))
    (folder.path / "logs" / "run.csv").write_text(LOG)
    assert "configs/sweeps/mine.yaml" in folder.run().stderr
    assert "configs/sweeps/mine.yaml" in folder.listing()["refused"][0]["remedy"]
    folder.run("token_axis")
    refusal = folder.path / "results" / "mine" / "token_axis" / "run.refused.json"
    assert "configs/sweeps/mine.yaml, e.g. `defaults: {tokens_per_step" in json.loads(refusal.read_text())["remedy"]


def test_an_empty_directory_is_one_line_and_exit_status_2(folder: Folder) -> None:
    done = folder.run()
    assert done.returncode == 2
    (line,) = done.stderr.splitlines()
    assert line.startswith("error: no runs in logs: it holds no file")


def test_a_sweep_in_which_nothing_is_a_run_fails_after_runs_json_was_written(folder: Folder) -> None:
    (folder.path / "logs" / "README.md").write_text("# nothing\n")
    (folder.path / "logs" / "bad.csv").write_text("step,train_loss\n")
    done = folder.run()
    assert done.returncode == 2
    assert done.stderr.splitlines()[-1].startswith("error: no runs in logs: 1 file passed over, 1 refused")
    assert [entry["name"] for entry in folder.listing()["refused"]] == ["bad.csv"]
