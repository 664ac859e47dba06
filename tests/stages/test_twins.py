"""One training that its trainer recorded in several formats is one run; another training in the same folder is not."""

from __future__ import annotations

import json
import struct
from pathlib import Path
from typing import Any

import pytest
import yaml

from tokenaxis import readers
from tokenaxis.stages.token_axis import axis_of
from tokenaxis.sweep import declared
from tokenaxis.sweep.discover import Discovery, discover


def loss(step: int, lift: float = 0.0) -> float:
    return round(4 - step / 2000 + lift, 4)


def state(path: Path, last: int, lift: float = 0.0) -> None:
    history: list[dict[str, Any]] = [
        {"epoch": step / 100, "learning_rate": 1e-4, "loss": loss(step, lift), "step": step}
        for step in range(10, last + 1, 10)
    ]
    history.append({"epoch": 1.0, "step": last + 5, "train_loss": 3.0, "train_runtime": 1.0})
    document = {"best_metric": None, "global_step": last, "log_history": history, "logging_steps": 10, "max_steps": 900}
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(document, indent=2), encoding="utf-8")


def trainer_log(path: Path, last: int, lift: float = 0.0) -> None:
    records = [
        {"current_steps": step, "total_steps": 900, "loss": loss(step, lift), "elapsed_time": f"0:{step // 60:02d}:00"}
        for step in range(10, last + 1, 10)
    ]
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(json.dumps(record) + "\n" for record in records), encoding="utf-8")


def field(number: int, data: bytes) -> bytes:
    return bytes([number << 3 | 2]) + varint(len(data)) + data


def varint(value: int) -> bytes:
    out = b""
    while value > 127:
        out, value = out + bytes([value & 127 | 128]), value >> 7
    return out + bytes([value])


def record(time: float, step: int, summary: bytes) -> bytes:
    payload = b"\x09" + struct.pack("<d", time) + b"\x10" + varint(step) + field(5, summary)
    return struct.pack("<Q", len(payload)) + b"\0\0\0\0" + payload + b"\0\0\0\0"


def events(path: Path, last: int, lift: float = 0.0, arguments: dict[str, Any] | None = None) -> None:
    version = b"\x09" + struct.pack("<d", 1000.0) + b"\x1a\x0dbrain.Event:2"
    data = struct.pack("<Q", len(version)) + b"\0\0\0\0" + version + b"\0\0\0\0"
    if arguments is not None:
        tensor = field(8, json.dumps(arguments).encode())
        data += record(1000.0, 0, field(1, field(1, b"args/text_summary") + field(8, tensor)))
    for step in range(10, last + 1, 10):
        value = field(1, b"train/loss") + b"\x15" + struct.pack("<f", loss(step, lift))
        data += record(1000.0 + step, step, field(1, value))
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)


EVENTS = "events.out.tfevents.1000.host.1.0"


def found(folder: Path, monkeypatch: pytest.MonkeyPatch, **content: Any) -> Discovery:
    sweeps = folder.parent / "configs" / "sweeps"
    sweeps.mkdir(parents=True, exist_ok=True)
    (sweeps / "mine.yaml").write_text(yaml.safe_dump({"defaults": {"tokens_per_step": 1000}} | content))
    monkeypatch.chdir(folder.parent)
    return discover(folder, declared.load("mine"), [".*"])


def test_what_a_trainer_leaves_of_one_training_is_one_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "logs"
    state(folder / "out" / "checkpoint-400" / "trainer_state.json", 400)
    state(folder / "out" / "trainer_state.json", 800)
    arguments = {"logging_steps": 10, "longer_than_a_first_look": "x" * 20_000}
    events(folder / "out" / "runs" / "Nov30_host" / EVENTS, 800, arguments=arguments)
    discovery = found(folder, monkeypatch)
    (run,) = discovery.runs
    assert (run.name, run.join) == ("out/trainer_state.json", "snapshots")
    trainer_log(folder / "out" / "trainer_log.jsonl", 800)  # holds the elapsed time too
    discovery = found(folder, monkeypatch)
    (run,) = discovery.runs
    assert run.name == "out/trainer_log.jsonl"
    assert {entry["name"] for entry in discovery.passed_over} == {
        "out/trainer_state.json",
        "out/checkpoint-400/trainer_state.json",
        f"out/runs/Nov30_host/{EVENTS}",
    }
    assert {entry["reason"] for entry in discovery.passed_over} == {
        "of the same training as run out/trainer_log.jsonl, which holds all its steps"
    }
    assert axis_of(folder, run.as_record(), "auto").meta["logged_steps"] == [10, 800]


def test_of_a_killed_training_the_record_that_reaches_furthest_is_the_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "logs"
    state(folder / "out" / "checkpoint-400" / "trainer_state.json", 400)
    events(folder / "out" / "runs" / "Nov30_host" / EVENTS, 730)
    (run,) = found(folder, monkeypatch).runs
    assert run.name == "out/runs/Nov30_host"


def test_another_training_in_the_same_folder_stays_a_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "logs"
    state(folder / "out" / "trainer_state.json", 800)
    events(folder / "out" / "runs" / "Nov29_host" / EVENTS, 500, lift=0.1)
    events(folder / "out" / "runs" / "Nov30_host" / EVENTS, 800)
    names = [run.name for run in found(folder, monkeypatch).runs]
    assert names == ["out/runs/Nov29_host", "out/trainer_state.json"]
    names = [run.name for run in found(folder, monkeypatch, separate=["out/runs/Nov30*"]).runs]
    assert names == ["out/runs/Nov29_host", f"out/runs/Nov30_host/{EVENTS}", "out/trainer_state.json"]


def test_equal_records_of_other_folders_are_not_compared(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "logs"
    state(folder / "a" / "trainer_state.json", 800)
    events(folder / "b" / "runs" / "Nov30_host" / EVENTS, 800)
    events(folder / "a" / "tensorboard" / EVENTS, 800)
    assert len(found(folder, monkeypatch).runs) == 3


def test_the_arguments_in_a_trainers_event_file_are_facts_and_make_its_losses_means(tmp_path: Path) -> None:
    arguments = {
        "per_device_train_batch_size": 4,
        "gradient_accumulation_steps": 2,
        "world_size": 1,
        "max_seq_length": 128,
        "logging_steps": 10,
        "padding": "x" * 20_000,  # the arguments are longer than a first look
    }
    path = tmp_path / EVENTS
    events(path, 400, arguments=arguments)
    log = readers.read(str(path))
    facts = {key: (value, note) for key, value, _, note in log.facts}
    assert facts["tokens_per_step"][0] == 4 * 2 * 128
    assert str(facts["seq_len"][1]).startswith("args in the event file")
    assert log.means["train_loss"].counted_after
    events(path, 400)
    assert readers.read(str(path)).means == {}
