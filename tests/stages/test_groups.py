"""Which files make one run, end to end: a sweep directory as a trainer left it -> runs, and each run's token axis."""

from __future__ import annotations

import json
import shutil
import struct
from collections.abc import Iterable
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml

from tokenaxis.axis.model import TokenAxis
from tokenaxis.errors import TokenAxisError
from tokenaxis.stages.token_axis import axis_of
from tokenaxis.sweep import declared
from tokenaxis.sweep.declared import SweepDeclaration
from tokenaxis.sweep.discover import Discovery, Run, discover

BATCH = 1000


class Sweep:
    """A sweep directory that a test fills, and what is found in it."""

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch):
        self.folder, self.logs = folder, folder / "logs"
        self.logs.mkdir()
        monkeypatch.chdir(folder)
        self.declare(defaults={"tokens_per_step": BATCH})

    def declare(self, **content: Any) -> None:
        path = self.folder / "configs" / "sweeps" / "mine.yaml"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(yaml.safe_dump({"defaults": {"tokens_per_step": BATCH}} | content), encoding="utf-8")

    def csv(
        self, path: str, steps: Iterable[int], seed: int = 0, header: str = "step,train_loss", end: str = ""
    ) -> Path:
        noise = np.random.default_rng(seed).standard_normal(100_000)
        lines = [header, *(f"{step},{4 - step / 1000 + noise[step] / 100:.6f}" for step in steps)]
        return self.write(path, ("\n".join(lines) + "\n" + end).encode())

    def write(self, path: str, data: bytes) -> Path:
        file = self.logs / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(data)
        return file

    def found(self) -> Discovery:
        return discover(self.logs, declared.load("mine"), [".*"], self.folder / "cache.json")

    def runs(self) -> dict[str, Run]:
        return {run.name: run for run in self.found().runs}

    def axis(self, run: Run) -> TokenAxis:
        return axis_of(self.logs, json.loads(json.dumps(asdict(run))), "auto")


@pytest.fixture
def sweep(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Sweep:
    return Sweep(tmp_path, monkeypatch)


def files(run: Run) -> list[str]:
    return [file.path for file in run.files]


def codes(axis: TokenAxis) -> set[str]:
    return {warning["code"] for warning in axis.meta["warnings"]}


# attempts by name


@pytest.mark.parametrize(
    "names",
    [
        ["log_attempt0.csv", "log_attempt1.csv", "log_attempt2.csv"],
        ["run.csv", "run_resumed.csv", "run_resumed2.csv"],
        ["a/attempt_1/log.csv", "a/attempt_2/log.csv", "a/attempt_10/log.csv"],
        ["log.csv", "log.1.csv", "log.2.csv"],
        ["x/version_0/metrics.csv", "x/version_1/metrics.csv", "x/version_2/metrics.csv"],
        ["metrics_part1.csv", "metrics_part2.csv", "metrics_part3.csv"],
        ["m_0-500.csv", "m_400-900.csv", "m_800-1200.csv"],
    ],
)
def test_files_named_as_attempts_whose_steps_go_on_are_one_run(names: list[str], sweep: Sweep) -> None:
    for number, name in enumerate(names):
        sweep.csv(name, range(400 * number, 400 * number + 500), seed=number)
    runs = sweep.runs()
    assert list(runs) == [names[0]]
    run = runs[names[0]]
    assert files(run) == names
    assert run.join == (
        "attempts" if "attempt" in names[0] or "version" in names[0] or "resumed" in names[1] else "exports"
    )
    assert "0-499" in str(run.grouped_because)
    axis = sweep.axis(run)
    assert axis.columns["step"].tolist() == list(range(1300))
    assert [a["superseded_rows"] for a in axis.meta["attempts"]] == [100, 100, 0]
    assert axis.meta["superseded_tokens"] == 200 * BATCH
    assert "several_files" in codes(axis)


def test_a_rotated_log_whose_oldest_part_has_the_highest_number_is_put_in_order(sweep: Sweep) -> None:
    sweep.csv("train.csv", range(800, 1200))
    sweep.csv("train.1.csv", range(400, 800))
    sweep.csv("train.2.csv", range(400))
    (run,) = sweep.runs().values()
    assert files(run) == ["train.2.csv", "train.1.csv", "train.csv"]
    assert sweep.axis(run).columns["step"].tolist() == list(range(1200))


@pytest.mark.parametrize(
    "names",
    [
        ["version_0/metrics.csv", "version_1/metrics.csv"],
        ["log_attempt0.csv", "log_attempt1.csv"],
        ["log.csv", "log.1.csv"],
        ["lr_0.1.csv", "lr_0.2.csv"],
    ],
)
def test_two_runs_that_both_begin_at_the_beginning_are_never_one(names: list[str], sweep: Sweep) -> None:
    for number, name in enumerate(names):
        sweep.csv(name, range(500 + number), seed=number)
    runs = sweep.runs()
    assert sorted(runs) == sorted(names)
    assert all(run.join is None for run in runs.values())


def test_runs_whose_first_steps_were_cut_off_alike_are_not_attempts(sweep: Sweep) -> None:
    sweep.csv("a_part1.csv", range(2160, 24000, 128))
    sweep.csv("a_part2.csv", range(2176, 24000, 128), seed=1)
    assert len(sweep.runs()) == 2


def test_a_third_version_that_could_go_on_from_either_of_two_runs_stands_alone_and_says_so(sweep: Sweep) -> None:
    sweep.csv("version_0/metrics.csv", range(500))
    sweep.csv("version_1/metrics.csv", range(501), seed=1)
    sweep.csv("version_2/metrics.csv", range(400, 900), seed=2)
    runs = sweep.runs()
    assert len(runs) == 3
    assert "more than one" in str(runs["version_2/metrics.csv"].grouped_because)


def test_an_attempt_that_starts_far_behind_the_end_of_another_is_a_run_of_its_own(sweep: Sweep) -> None:
    sweep.csv("log_attempt0.csv", range(100))
    sweep.csv("log_attempt1.csv", range(5000, 5400))
    assert len(sweep.runs()) == 2


def test_the_same_rows_in_two_exports_count_once_and_are_no_lost_work(sweep: Sweep) -> None:
    whole = [f"{step},{4 - step / 1000:.6f}" for step in range(900)]
    for name, part in (("e_0-500.csv", whole[:500]), ("e_400-900.csv", whole[400:])):
        sweep.write(name, ("step,train_loss\n" + "\n".join(part) + "\n").encode())
    axis = sweep.axis(sweep.runs()["e_0-500.csv"])
    assert axis.columns["step"].tolist() == list(range(900))
    assert (axis.meta["superseded_tokens"], len(axis.meta["attempts"])) == (0, 1)
    assert "overlapping_files" in codes(axis)


def test_a_torn_attempt_does_not_stop_the_others(sweep: Sweep) -> None:
    sweep.csv("log_attempt0.csv", range(300))
    sweep.csv("log_attempt1.csv", range(200, 600), seed=1)
    run = sweep.runs()["log_attempt0.csv"]
    (sweep.logs / "log_attempt1.csv").write_bytes(b"\0\1\2" * 100)
    axis = sweep.axis(run)
    assert len(axis.columns["step"]) == 300
    assert "file_left_out" in codes(axis)


def test_line_numbers_count_on_through_the_files_of_a_run(sweep: Sweep) -> None:
    sweep.csv("log_attempt0.csv", range(100))
    sweep.csv("log_attempt1.csv", range(100, 200), end="200,nan\nhello,1\n")
    axis = sweep.axis(sweep.runs()["log_attempt0.csv"])
    assert axis.meta["unusable"][0]["lines"] == [101 + 102]
    assert axis.meta["bad_lines"] == [101 + 103]


# declared


def test_a_pattern_declares_which_files_are_one_run(sweep: Sweep) -> None:
    for run in ("a", "b"):
        for part in (1, 2):
            sweep.csv(f"{run}/job{part}.csv", range(300 * part - 300, 300 * part), seed=part + ord(run))
    assert len(sweep.runs()) == 4
    sweep.declare(groups=[{"match": "*/job?.csv", "run": "run-{1}"}])
    runs = sweep.runs()
    assert {name: files(run) for name, run in runs.items()} == {
        "run-a": ["a/job1.csv", "a/job2.csv"],
        "run-b": ["b/job1.csv", "b/job2.csv"],
    }
    assert [run.id for run in runs.values()] == ["run-a", "run-b"]
    assert "declared" in str(runs["run-a"].grouped_because)
    assert sweep.axis(runs["run-a"]).columns["step"].tolist() == list(range(600))


def test_what_is_declared_to_be_separate_is_not_grouped(sweep: Sweep) -> None:
    for number in (0, 1):
        sweep.csv(f"version_{number}/metrics.csv", range(400 * number, 400 * number + 500), seed=number)
    assert len(sweep.runs()) == 1
    sweep.declare(separate=["version_*"])
    assert len(sweep.runs()) == 2


def test_declared_attempts_that_both_begin_at_the_beginning_are_refused(sweep: Sweep) -> None:
    for name in ("a.csv", "b.csv"):
        sweep.csv(name, range(300), seed=ord(name[0]))
    sweep.declare(groups=[{"match": "*.csv", "run": "both"}])
    with pytest.raises(TokenAxisError, match="two runs") as caught:
        sweep.axis(sweep.runs()["both"])
    assert "separate:" in str(caught.value.remedy)


def test_a_place_in_the_name_of_a_group_without_a_wildcard_is_an_error_that_names_it(sweep: Sweep) -> None:
    sweep.declare(groups=[{"match": "*.csv", "run": "{2}"}])
    with pytest.raises(TokenAxisError, match=r"wildcard \{2\}"):
        sweep.found()


def test_declarations_reach_a_run_by_any_of_its_files_and_by_its_name(sweep: Sweep) -> None:
    sweep.csv("a.csv", range(100))
    sweep.csv("b.csv", range(100, 200))
    groups = [{"match": "?.csv", "run": "joined"}]
    for pattern in ("b.csv", "joined"):
        sweep.declare(groups=groups, runs=[{"match": pattern, "tokens_per_step": 7}])
        assert sweep.axis(sweep.runs()["joined"]).columns["tokens"][-1] == 199 * 7


# trainmeter


def test_a_killed_trainmeter_run_and_its_resume_are_one_run_where_declared(shared: Path, sweep: Sweep) -> None:
    """csv/kill_1.024Kbs.csv holds both: 371 rows, 71 repeated. Nothing in the run directories links them."""
    for name in ("kill", "resume"):
        shutil.copytree(shared / "logs" / "trainmeter" / name, sweep.logs / name)
    sweep.declare(defaults={})
    assert len(sweep.runs()) == 2
    sweep.declare(
        defaults={},
        groups=[
            {"match": "kill/events.jsonl", "run": "killed"},
            {"match": "resume/events.jsonl", "run": "killed", "first_step": 100},
        ],
    )
    axis = sweep.axis(sweep.runs()["killed"])
    rows = axis.meta["rows"]
    assert (rows["read"], rows["superseded"], rows["kept"]) == (371, 71, 300)
    assert axis.columns["step"].tolist() == list(range(300))
    assert axis.columns["tokens"][-1] == 299 * 1024
    assert [attempt["first_step"] for attempt in axis.meta["attempts"]] == [0, 100]
    assert axis.columns["train_loss"][-1] == pytest.approx(2.441964, abs=5e-7)  # the CSV is printed with six digits


# HF checkpoints


def trainer_state(steps: Iterable[int], loss: float = 4.0) -> bytes:
    history = [{"loss": loss - step / 1000, "learning_rate": 1e-4, "step": step} for step in steps]
    state = {"global_step": history[-1]["step"], "log_history": history, "logging_steps": 10, "max_steps": 500}
    return json.dumps(state, indent=2).encode()


def test_snapshots_at_checkpoints_are_one_run_of_which_the_newest_counts(sweep: Sweep) -> None:
    for step in (100, 200, 1000):
        sweep.write(f"out/checkpoint-{step}/trainer_state.json", trainer_state(range(10, step + 1, 10)))
    (run,) = sweep.runs().values()
    assert (run.name, run.join, len(run.files)) == ("out/trainer_state.json", "snapshots", 3)
    axis = sweep.axis(run)
    assert (axis.meta["rows"]["read"], axis.meta["superseded_tokens"]) == (100, 0)
    assert "older_snapshots" in codes(axis)
    assert "snapshot_differs" not in codes(axis)


def test_the_final_state_that_equals_the_last_checkpoint_is_noted_as_a_copy(sweep: Sweep) -> None:
    for path in ("out/checkpoint-100/trainer_state.json", "out/trainer_state.json"):
        sweep.write(path, trainer_state(range(10, 101, 10)))
    found = sweep.found()
    assert [run.name for run in found.runs] == ["out/trainer_state.json"]
    assert found.passed_over == [
        {"name": "out/checkpoint-100/trainer_state.json", "reason": "same bytes as out/trainer_state.json"}
    ]


def test_a_snapshot_of_another_attempt_is_reported(sweep: Sweep) -> None:
    sweep.write("checkpoint-100/trainer_state.json", trainer_state(range(10, 101, 10), loss=5.0))
    sweep.write("checkpoint-200/trainer_state.json", trainer_state(range(10, 201, 10)))
    (run,) = sweep.runs().values()
    assert "snapshot_differs" in codes(sweep.axis(run))


# event files


def events(start: float, scalars: Iterable[tuple[int, str, float]], every: float = 1.0) -> bytes:
    def record(payload: bytes) -> bytes:
        return struct.pack("<Q", len(payload)) + b"\0\0\0\0" + payload + b"\0\0\0\0"

    def varint(value: int) -> bytes:
        out = b""
        while value > 127:
            out, value = out + bytes([value & 127 | 128]), value >> 7
        return out + bytes([value])

    data = record(b"\x09" + struct.pack("<d", start) + b"\x1a\x0dbrain.Event:2")
    for number, (step, tag, value) in enumerate(scalars, 1):
        scalar = b"\x0a" + bytes([len(tag)]) + tag.encode() + b"\x15" + struct.pack("<f", value)
        summary = b"\x0a" + bytes([len(scalar)]) + scalar
        body = b"\x09" + struct.pack("<d", start + number * every) + b"\x10" + varint(step)
        data += record(body + b"\x2a" + bytes([len(summary)]) + summary)
    return data


def loss_of(steps: Iterable[int], lift: float = 0.0, tag: str = "train/loss") -> list[tuple[int, str, float]]:
    return [(step, tag, 4 - step / 1000 + lift) for step in steps]


def test_event_files_of_a_folder_are_attempts_of_one_run(sweep: Sweep) -> None:
    sweep.write("tb/events.out.tfevents.1000.host.1.0", events(1000, loss_of(range(100))))
    sweep.write("tb/events.out.tfevents.900.host.1.0", events(900, []))
    sweep.write("tb/events.out.tfevents.2000.host.2.0", events(2000, loss_of(range(60, 200), 0.5)))
    found = sweep.found()
    (run,) = found.runs
    assert (run.name, run.id, run.join) == ("tb", "tb", "writers")
    assert found.refused == []
    assert "without a scalar" in found.passed_over[0]["reason"]
    axis = sweep.axis(run)
    assert axis.columns["step"].tolist() == list(range(200))
    assert (axis.meta["rows"]["superseded"], len(axis.meta["attempts"])) == (40, 2)


def test_versions_of_event_files_that_go_on_from_one_another_are_attempts_of_one_run(sweep: Sweep) -> None:
    """Lightning's TensorBoardLogger begins a folder for each start; the second start here is another run."""
    name = "events.out.tfevents.1000.host.1.0"
    # both ends of the longer files are seen, not what lies between
    sweep.write(f"logs/version_0/{name}", events(1000, loss_of(range(2000))))
    sweep.write(f"logs/version_1/{name}", events(9000, loss_of(range(2000), 0.5)))
    sweep.write(f"logs/version_2/{name}", events(20000, loss_of(range(1900, 3000))))
    runs = sweep.runs()
    assert {run.name: run.join for run in runs.values()} == {
        "logs/version_0": None,
        "logs/version_1": None,
        "logs/version_2": None,
    }  # version_2 could go on from either
    shutil.rmtree(sweep.logs / "logs" / "version_1")
    (run,) = sweep.found().runs
    assert (run.name, run.join, len(run.files)) == ("logs/version_0", "attempts", 2)
    assert "their steps go on: 0-1999, 1900-2999" in str(run.grouped_because)
    axis = sweep.axis(run)
    assert axis.columns["step"].tolist() == list(range(3000))
    assert [attempt["first_step"] for attempt in axis.meta["attempts"]] == [0, 1900]


def test_versions_of_several_event_files_each_are_one_run_in_the_order_of_their_beginning(sweep: Sweep) -> None:
    for version, begun, steps in ((0, 1000, range(50)), (0, 2000, range(40, 100)), (1, 3000, range(90, 200))):
        data = events(begun, loss_of(steps, begun / 10000))
        sweep.write(f"logs/version_{version}/events.out.tfevents.{begun}.host.1.0", data)
    (run,) = sweep.found().runs
    assert (run.name, run.join) == ("logs/version_0", "writers")
    axis = sweep.axis(run)
    assert axis.columns["step"].tolist() == list(range(200))
    assert [attempt["first_step"] for attempt in axis.meta["attempts"]] == [0, 40, 90]


def test_a_folder_of_empty_event_files_is_refused(sweep: Sweep) -> None:
    sweep.write("tb/events.out.tfevents.900.host.1.0", events(900, []))
    found = sweep.found()
    assert (found.runs, len(found.refused)) == ([], 1)


def test_of_two_writers_at_the_same_time_the_longer_counts_and_both_are_named(sweep: Sweep) -> None:
    first, second = "tb/events.out.tfevents.1000.a.1.0", "tb/events.out.tfevents.1040.b.1.0"
    sweep.write(first, events(1000, loss_of(range(100))))
    sweep.write(second, events(1040, loss_of(range(120), 0.3)))
    (run,) = sweep.runs().values()
    axis = sweep.axis(run)
    assert axis.columns["step"].tolist() == list(range(120))
    assert len(axis.meta["attempts"]) == 1
    warning = next(w for w in axis.meta["warnings"] if w["code"] == "two_writers")
    assert first in warning["message"]
    assert second in warning["message"]


def test_the_public_run_with_two_writers_is_read_from_the_longer_one(shared: Path) -> None:
    root = shared / "logs" / "tensorboard-algoperf"
    found = discover(root, SweepDeclaration(entries=(("*", {"tokens_per_step": 1000}),)), [])
    runs = {run.name.split("-")[1]: run for run in found.runs}
    assert {name: len(run.files) for name, run in runs.items()} == {"baseline": 1, "cyclic_lr": 1, "nadamp": 2}
    assert (found.refused, len(found.passed_over)) == ([], 2)
    axis = axis_of(root, asdict(runs["nadamp"]), "auto")
    assert (axis.meta["rows"]["kept"], int(axis.columns["step"][-1])) == (1125, 107718)
    assert "two_writers" in codes(axis)
    for name in ("baseline", "cyclic_lr"):
        assert "two_writers" not in codes(axis_of(root, asdict(runs[name]), "auto"))


def test_training_and_validation_writers_of_keras_are_one_run(sweep: Sweep) -> None:
    sweep.write("run/train/events.out.tfevents.1000.h.1.0", events(1000, loss_of(range(100), tag="loss")))
    sweep.write("run/validation/events.out.tfevents.1000.h.1.1", events(1000, loss_of(range(9, 100, 10), 1, "loss")))
    (run,) = sweep.runs().values()
    assert (run.name, run.join) == ("run", "columns")
    axis = sweep.axis(run)
    assert (axis.meta["rows"]["with_train_loss"], axis.meta["rows"]["with_val_loss"]) == (100, 10)
    assert axis.columns["val_loss"][9] == pytest.approx(4 - 0.009 + 1, abs=1e-6)  # float32 in the file
    assert len(axis.columns["step"]) == 100


# MLflow


def test_the_metric_files_of_an_mlflow_run_are_one_run_and_its_parameters_are_facts(sweep: Sweep) -> None:
    home = "mlruns/1/abc"
    for name, every, lift in (("train_loss", 1, 0.0), ("val_loss", 10, 0.5), ("lr", 1, 0.0)):
        lines = [f"{1700000000000 + step * 100} {4 - step / 100 + lift:.5f} {step}\n" for step in range(0, 100, every)]
        sweep.write(f"{home}/metrics/{name}", "".join(lines).encode())
    sweep.write(f"{home}/metrics/epoch", b"1700000000000 1 0\n")
    sweep.write(f"{home}/params/n_layer", b"12")
    (run,) = sweep.runs().values()
    assert (run.name, run.id, run.join) == (home, "mlruns--1--abc", "columns")
    axis = sweep.axis(run)
    assert (len(axis.columns["step"]), axis.meta["rows"]["with_val_loss"]) == (100, 10)
    assert "lr" in axis.columns
    facts = {fact["key"]: (fact["value"], fact["source"]) for fact in axis.meta["facts"]}
    assert facts["n_layers"] == (12, "detected")


# several runs in one file


def test_each_run_of_a_chart_with_eight_is_a_run_once_its_batch_is_declared(shared: Path) -> None:
    root = shared / "logs" / "wandb"
    found = discover(root, SweepDeclaration(entries=(("*", {"tokens_per_step": 1000}),)), [])
    runs = [run for run in found.runs if run.files[0].path == "export-runs-side-by-side.csv"]
    assert (len(runs), len({run.id for run in runs})) == (8, 8)
    rows = {run.part: axis_of(root, asdict(run), "auto").meta["rows"]["kept"] for run in runs}
    # counted in the file with another tool: filled cells of each run's train/loss
    assert rows["gpt2"] == 386
    assert rows["gpt2_last_char_to_char1729642919.4054031"] == 51
    assert sum(rows.values()) == 386 + 57 + 128 + 128 + 150 + 51 + 166 + 118


def test_a_chart_whose_step_counts_tokens_is_read_where_that_is_declared(shared: Path) -> None:
    root = shared / "logs" / "wandb"
    keys = {"tokens_per_step": 2048, "columns": {"tokens": "Step"}}
    found = discover(root, SweepDeclaration(entries=(("export-step-is-tokens.csv*", keys),)), [])
    runs = [run for run in found.runs if run.files[0].path == "export-step-is-tokens.csv"]
    assert len(runs) == 10
    axis = axis_of(root, asdict(runs[0]), "auto")
    assert (axis.columns["tokens"][0], axis.columns["tokens"][-1]) == (204_800, 2_048_000)
    assert axis.columns["step"].tolist() == [100 * n for n in range(1, 11)]


def export(metric: str, runs: dict[str, range], lift: float = 0.0) -> bytes:
    header = ["Step"]
    for run in runs:
        header += [f"{run} - {metric}{twin}" for twin in ("", "__MIN", "__MAX")]
    lines = [",".join(f'"{name}"' for name in header)]
    for step in range(max(steps.stop for steps in runs.values())):
        cells = [f"{4 - step / 100 + lift}" if step in steps else "" for steps in runs.values() for _ in range(3)]
        lines.append(",".join(f'"{cell}"' for cell in [str(step), *cells]))
    return ("\n".join(lines) + "\n").encode()


def test_charts_that_show_the_same_runs_are_joined_run_by_run(sweep: Sweep) -> None:
    sweep.write("train.csv", export("train/loss", {"a": range(100), "b": range(50)}))
    sweep.write("val.csv", export("val/loss", {"a": range(0, 100, 10), "b": range(0, 50, 10)}, 0.5))
    runs = {run.part: run for run in sweep.found().runs}
    assert sorted(runs) == ["a", "b"]
    axis = sweep.axis(runs["a"])
    assert (axis.meta["rows"]["with_train_loss"], axis.meta["rows"]["with_val_loss"]) == (100, 10)
    assert files(runs["b"]) == ["train.csv", "val.csv"]


def test_the_runs_of_a_trackio_project_are_runs(sweep: Sweep) -> None:
    import sqlite3

    sweep.declare(defaults={})
    project = sqlite3.connect(sweep.logs / "project.db")
    project.execute(
        "CREATE TABLE metrics (id INTEGER PRIMARY KEY, timestamp TEXT, run_name TEXT, step INTEGER, metrics TEXT)"
    )
    project.execute("CREATE TABLE configs (id INTEGER PRIMARY KEY, run_name TEXT, config TEXT)")
    for run, count in (("a", 30), ("b", 20)):
        for step in range(count):
            metrics = json.dumps({"train/loss": 4 - step / 100, "train": {"lr": 1e-3}})
            values = (f"2026-01-01T00:00:{step:02d}", run, step, metrics)
            project.execute("INSERT INTO metrics (timestamp, run_name, step, metrics) VALUES (?, ?, ?, ?)", values)
        config = json.dumps({"global_batch_size": 8, "seq_len": 128})
        project.execute("INSERT INTO configs (run_name, config) VALUES (?, ?)", (run, config))
    project.commit()
    project.close()
    runs = {run.part: run for run in sweep.found().runs}
    assert {name: run.id for name, run in runs.items()} == {"a": "project.db--a", "b": "project.db--b"}
    axis = sweep.axis(runs["a"])
    assert (len(axis.columns["step"]), axis.columns["tokens"][-1]) == (30, 29 * 1024)
    assert axis.columns["elapsed_s"][-1] == 29
    assert "step_is_log_index" in codes(axis)
    data = bytearray((sweep.logs / "project.db").read_bytes())
    for seed in range(60):  # a damaged project is refused, or read as far as it goes
        rng = np.random.default_rng(seed)
        damaged = bytearray(data)
        for spot in rng.integers(100, len(damaged), 20):
            damaged[spot] = rng.integers(256)
        sweep.write("project.db", bytes(damaged[: len(damaged) - int(rng.integers(0, 3000))]))
        for run in sweep.found().runs:
            try:
                sweep.axis(run)
            except TokenAxisError as error:
                assert error.reason


# copies, ignored files, declared columns


def test_files_of_the_same_bytes_are_one_run_and_noted(sweep: Sweep) -> None:
    for name in ("a.csv", "deep/copy of a.csv"):
        sweep.csv(name, range(100))
    sweep.csv("other.csv", range(100), seed=1)  # of the same size
    found = sweep.found()
    assert [run.name for run in found.runs] == ["a.csv", "other.csv"]
    assert {"name": "deep/copy of a.csv", "reason": "same bytes as a.csv"} in found.passed_over
    sweep.declare(separate=["deep/*"])
    assert len(sweep.runs()) == 3


def test_a_copy_does_not_take_a_file_away_from_the_attempts_it_belongs_to(sweep: Sweep) -> None:
    sweep.csv("v/version_0/metrics.csv", range(500))
    sweep.csv("v/version_1/metrics.csv", range(400, 900), seed=1)
    sweep.csv("a copy.csv", range(500))
    found = sweep.found()
    assert [files(run) for run in found.runs] == [["v/version_0/metrics.csv", "v/version_1/metrics.csv"]]
    assert found.passed_over == [{"name": "a copy.csv", "reason": "same bytes as v/version_0/metrics.csv"}]


def test_what_is_ignored_by_name_is_listed_and_folders_are_not_searched(sweep: Sweep) -> None:
    sweep.csv("run.csv", range(100))
    sweep.csv(".ipynb_checkpoints/run.csv", range(50))
    sweep.csv(".hidden.csv", range(60))
    found = sweep.found()
    assert [run.name for run in found.runs] == ["run.csv"]
    assert [entry["name"] for entry in found.passed_over] == [".hidden.csv", ".ipynb_checkpoints"]
    assert all("name begins with a dot" in entry["reason"] for entry in found.passed_over)


def test_a_file_is_recognised_again_with_the_columns_that_are_declared_for_it(sweep: Sweep) -> None:
    sweep.csv("odd.csv", range(100), header="counter,badness")
    sweep.csv("half.csv", range(100), header="step,badness")
    assert sweep.runs() == {}
    columns = {"step": "counter", "train_loss": "badness"}
    sweep.declare(
        runs=[{"match": "odd.csv", "columns": columns}, {"match": "half.csv", "columns": {"train_loss": "badness"}}]
    )
    runs = sweep.runs()
    assert sorted(runs) == ["half.csv", "odd.csv"]
    assert all(len(sweep.axis(run).columns["step"]) == 100 for run in runs.values())
    assert sorted(sweep.runs()) == ["half.csv", "odd.csv"]  # from the cache
    sweep.declare()
    assert sweep.runs() == {}  # the cache remembers what was declared when it looked


def test_a_format_declared_for_a_path_makes_it_a_log_and_one_declared_for_all_does_not(sweep: Sweep) -> None:
    sweep.write("README.md", b"# nothing\n")
    sweep.write("odd.dat", b"step  loss\n1  2.0\n2 1.9\n")
    sweep.declare(defaults={"tokens_per_step": BATCH, "format": "table"})
    assert "README.md" not in sweep.runs()
    sweep.declare(runs=[{"match": "odd.dat", "format": "table"}])
    assert list(sweep.runs()) == ["odd.dat"]


# facts beside the log


def test_settings_beside_the_only_log_of_a_folder_are_facts_with_their_source(sweep: Sweep) -> None:
    sweep.declare(defaults={})
    for run in ("a", "b"):
        sweep.csv(f"{run}/metrics.csv", range(100), seed=ord(run))
        config = {"model": {"n_layer": 12, "n_embd": 768}, "train": {"global_batch_size": 8, "seq_length": 128}}
        sweep.write(f"{run}/config.yaml", yaml.safe_dump(config).encode())
    run = sweep.runs()["a/metrics.csv"]
    assert [file.path for file in run.facts_from] == ["a/config.yaml"]
    axis = sweep.axis(run)
    facts = {fact["key"]: fact for fact in axis.meta["facts"]}
    assert (facts["n_layers"]["value"], facts["n_layers"]["source"]) == (12, "detected")
    assert "a/config.yaml beside the log" in facts["n_layers"]["note"]
    assert axis.columns["tokens"][-1] == 99 * 8 * 128


def test_settings_in_a_folder_of_their_own_speak_of_the_run_above_it(sweep: Sweep) -> None:
    for run in ("x", "y"):
        sweep.csv(f"{run}/log.csv", range(100), seed=ord(run))
        sweep.write(f"{run}/files/config.yaml", b"n_layer: {value: 12}\nwandb_version: 1\n")
    runs = sweep.runs()
    assert [file.path for file in runs["y/log.csv"].facts_from] == ["y/files/config.yaml"]
    facts = {fact["key"]: fact["value"] for fact in sweep.axis(runs["x/log.csv"]).meta["facts"]}
    assert facts["n_layers"] == 12


def test_settings_beside_several_runs_are_nobodys_facts(sweep: Sweep) -> None:
    for name in ("a.csv", "b.csv"):
        sweep.csv(name, range(100), seed=ord(name[0]))
    sweep.write("config.json", b'{"n_layer": 12}')
    sweep.write("b.yaml", b"n_layer: 6\n")
    runs = sweep.runs()
    assert runs["a.csv"].facts_from == ()
    assert [file.path for file in runs["b.csv"].facts_from] == ["b.yaml"]


def test_a_settings_file_that_is_none_does_no_harm(sweep: Sweep) -> None:
    sweep.csv("run/log.csv", range(100))
    for name, data in (("config.json", b"{nope"), ("hparams.yaml", b"a: [1\n\xff"), ("args.json", b"[1, 2]")):
        sweep.write(f"run/{name}", data)
    run = sweep.runs()["run/log.csv"]
    assert len(run.facts_from) == 3
    assert sweep.axis(run).meta["rows"]["kept"] == 100


# the cost of looking again


def test_looking_again_opens_no_file(sweep: Sweep, monkeypatch: pytest.MonkeyPatch) -> None:
    for number in range(4):
        sweep.csv(f"log_attempt{number}.csv", range(400 * number, 400 * number + 500), seed=number)
    sweep.csv("same.csv", range(100))
    sweep.csv("same2.csv", range(100))
    first = sweep.found()
    monkeypatch.setattr("tokenaxis.readers.sample", lambda path: pytest.fail(f"opened {path}"))
    monkeypatch.setattr("tokenaxis.sweep.known.open", lambda *a, **k: pytest.fail("hashed again"), raising=False)
    assert sweep.found() == first
