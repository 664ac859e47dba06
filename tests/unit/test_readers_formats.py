"""Formats of other trainers and trackers, each on a small log written here."""

from __future__ import annotations

import json
import struct
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tokenaxis import readers
from tokenaxis.declarations import Declaration
from tokenaxis.errors import TokenAxisError
from tokenaxis.readers import json_fast

NAN = float("nan")


def read(folder: Path, content: str | bytes, name: str, **declared: Any) -> readers.RawLog:
    path = folder / name
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return readers.read(str(path), Declaration(**declared))


def facts(log: readers.RawLog) -> dict[str, Any]:
    return {key: value for key, value, _, _ in log.facts}


def codes(log: readers.RawLog) -> set[str]:
    return {notice.code for notice in log.warnings}


def test_lightning_metrics_are_a_table_of_sparse_rows(tmp_path: Path) -> None:
    text = "epoch,lr-AdamW,step,train_loss_epoch,train_loss_step,val_loss\n"
    text += "0,,49,,3.5,\n0,0.1,49,,,\n0,,99,,,3.25\n0,,99,3.4,,\n"
    log = read(tmp_path, text, "metrics.csv")
    assert log.format == "table"
    assert log.names["train_loss"] == "train_loss_step"
    assert log.names["lr"] == "lr-AdamW"
    np.testing.assert_array_equal(log.columns["val_loss"], [NAN, NAN, 3.25, NAN])
    assert log.rows_read == 4


def test_torchtitan_is_read_through_its_colours_and_counts_from_1(tmp_path: Path) -> None:
    text = "[rank0]:2024 - root - INFO - Training starts at step 1, with local batch size 8, global batch size 64, "
    text += "sequence length 8192, total steps 1000 (warmup 200)\n"
    text += (
        "\x1b[32m[rank0]: - \x1b[31mstep:  1  \x1b[32mloss: 12.25  \x1b[33mgrad_norm:  4.5  \x1b[34mmemory: 1\x1b[39m\n"
    )
    text += "[rank0]: - validate step:  1  loss: 11.5  memory: 1\n[rank0]: - step: 10  loss:  9.5  memory: 3\n"
    log = read(tmp_path, text, "titan.log")
    assert log.format == "torchtitan"
    assert log.columns["step"].tolist() == [0, 1, 9]
    np.testing.assert_array_equal(log.columns["train_loss"], [12.25, NAN, 9.5])
    np.testing.assert_array_equal(log.columns["val_loss"], [NAN, 11.5, NAN])
    assert (facts(log)["tokens_per_step"], facts(log)["planned_steps"]) == (64 * 8192, 1000)
    assert codes(log) == {"steps_one_based"}


def test_nanochat_counts_from_0_and_bits_per_byte_are_no_loss(tmp_path: Path) -> None:
    text = "Vocab size: 65,536\nnum_layers: 20\nTotal batch size 524,288 => gradient accumulation steps: 1\n"
    text += "Step 00000 | Validation bpb: 3.2\nstep 00000/21400 (0.00%) | loss: 11.25 | lrm: 1.00 | dt: 1ms |\n"
    text += "step 00001/21400 (0.01%) | loss: 11.0 | grad norm: 0.5 | lrm: 1.00 |\n"
    log = read(tmp_path, text, "chat.log")
    assert log.format == "nanochat"
    assert log.columns["train_loss"].tolist() == [11.25, 11.0]
    assert "val_loss" not in log.columns
    assert (facts(log)["tokens_per_step"], facts(log)["vocab_size"]) == (524288, 65536)
    assert codes(log) == {"train_loss_is_smoothed", "validation_in_bits_per_byte"}


ITERATION = (
    " [2024-05-01 10:00:00] iteration {n:8d}/  500000 | consumed samples: {s:12d} | "
    "elapsed time per iteration (ms): 9.5 | learning rate: 1.000000E-05 | global batch size:   512 | "
    "lm loss: {loss:.6E} | loss scale: 1.0 | grad norm: 1.200 |\n"
)


def test_megatron_turns_samples_into_tokens_by_the_sequence_length(tmp_path: Path) -> None:
    head = "------------------------ arguments ------------------------\n  seq_length ...................... 4096\n"
    head += (
        "  num_layers ...................... 32\n  lr .............................. 0.0003\n  swiglu .......... True\n"
    )
    rows = "".join(ITERATION.format(n=n, s=512 * n, loss=9.5 - n / 8) for n in (1, 2))
    rows += " validation loss at iteration 2 | lm loss value: 9.000000E+00 | lm loss PPL: 8.1E+03 |\n"
    log = read(tmp_path, head + rows, "megatron.log")
    assert log.columns["tokens"].tolist()[:2] == [512 * 4096.0, 2 * 512 * 4096.0]
    assert log.columns["tokens_per_step"][0] == 512 * 4096
    assert log.tokens_convention == "after"
    np.testing.assert_array_equal(log.columns["val_loss"], [NAN, NAN, 9.0])
    assert facts(log)["n_layers"] == 32
    bare = read(tmp_path, rows, "bare.log")
    assert "tokens" not in bare.columns
    assert "seq_len_unknown" in codes(bare)
    assert read(tmp_path, rows, "bare.log", seq_len=4096).columns["tokens"][0] == 512 * 4096


def test_gpt_neox_lines_are_read_by_the_same_reader(tmp_path: Path) -> None:
    line = (
        " samples/sec: 12.3 | iteration  {n}/ 320000 | elapsed time per iteration (ms): 9.5 | learning rate: 6.0E-04 | "
    )
    line += "lm_loss: {loss:E} | number of skipped iterations:   0 | number of nan iterations:   0 |\n"
    text = "".join(line.format(n=n, loss=9.5 - n / 100) for n in (100, 200))
    text += " validation results at iteration 200 | lm_loss value: 7.25E+00 | lm_loss_ppl value: 1.0E+03 | \n"
    log = read(tmp_path, text, "neox.log")
    assert log.format == "megatron"
    np.testing.assert_array_equal(log.columns["train_loss"], [8.5, 7.5, NAN])
    np.testing.assert_array_equal(log.columns["val_loss"], [NAN, NAN, 7.25])


RECORDS = [{"step": 0, "loss": 3.5}, {"step": 10, "loss": 3.25}]
GOLDEN = {"start_step": 0, "end_step": 20, "step_interval": 10}


@pytest.mark.parametrize(
    "document",
    [
        RECORDS,
        {"step": [0, 10], "loss": [3.5, 3.25], "note": ["a"]},
        {"config": {"lr": 1}, "history": RECORDS},
        {"lm loss": GOLDEN | {"values": [3.5, 3.25]}},
        {"lm loss": GOLDEN | {"values": {"0": 3.5, "10": 3.25}}},
    ],
)
@pytest.mark.parametrize("indent", [None, 1])
def test_histories_in_json_documents(tmp_path: Path, document: Any, indent: int | None) -> None:
    log = read(tmp_path, json.dumps(document, indent=indent), "history.json")
    assert log.format == "json-history"
    assert log.columns["step"].tolist() == [0, 10]
    assert log.columns["train_loss"].tolist() == [3.5, 3.25]


@pytest.mark.parametrize(
    "document",
    [{"step": 100, "loss": 2.5}, {"lr": 0.1, "steps": 100, "loss": "ce"}, {"loss": {"value": 2.5}, "steps": [1]}],
)
def test_a_json_document_without_a_history_is_no_log(tmp_path: Path, document: Any) -> None:
    (tmp_path / "eval.json").write_text(json.dumps(document), encoding="utf-8")
    found = readers.recognise(readers.sample(str(tmp_path / "eval.json")))
    assert found.passed_over is not None


def test_mlperf_lines_place_losses_by_step_or_samples(tmp_path: Path) -> None:
    entries = [
        {"key": "submission_benchmark", "value": "llama31_8b", "metadata": {}},
        {"key": "global_batch_size", "value": 32, "metadata": {}},
        {"key": "max_sequence_length", "value": 8192, "metadata": {}},
        {"key": "train_loss", "value": 9.5, "metadata": {"samples_count": 320}},
        {"key": "eval_accuracy", "value": 5.5, "metadata": {"samples_count": 12288}},
        {"key": "tracked_stats", "value": {"throughput": 1, "train_loss": 4.5}, "metadata": {"step": 400}},
    ]
    text = "starting\n" + "".join(f"0: :::MLLOG {json.dumps(entry)}\n" for entry in entries) + ":::MLLOG {broken\n"
    log = read(tmp_path, text, "result_0.txt")
    assert log.format == "mllog"
    assert log.columns["step"].tolist() == [10, 384, 400]
    np.testing.assert_array_equal(log.columns["val_loss"], [NAN, 5.5, NAN])
    assert log.bad_lines == [8]
    assert facts(log)["tokens_per_step"] == 32 * 8192


def test_one_metric_file_of_mlflow(tmp_path: Path) -> None:
    log = read(tmp_path, "1700000000000 3.5 0\n1700000001500 3.25 10\n", "val_loss")
    assert log.format == "mlflow"
    assert log.columns["val_loss"].tolist() == [3.5, 3.25]
    assert log.columns["elapsed_s"].tolist() == [0, 1.5]
    (tmp_path / "accuracy").write_text("1700000000000 0.5 0\n", encoding="utf-8")
    assert readers.recognise(readers.sample(str(tmp_path / "accuracy"))).reader is None


def test_a_parquet_history_skips_rows_of_other_metrics(tmp_path: Path) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    columns = {"_step": [0, 1, 2, 3], "train/global_step": [0, None, 20, 30], "gpu": [1, 1, 1, 1]}
    columns |= {"train/loss": [3.5, None, 3.25, float("nan")]}
    pq.write_table(pa.table(columns), tmp_path / "history.parquet")
    log = readers.read(str(tmp_path / "history.parquet"))
    assert log.columns["step"].tolist() == [0, 20, 30]
    assert log.lines.tolist() == [1, 3, 4]
    assert log.unusable["train_loss", "nan"].tolist() == [4]
    whole = (tmp_path / "history.parquet").read_bytes()
    (tmp_path / "cut.parquet").write_bytes(whole[:-20])
    with pytest.raises(TokenAxisError, match="damaged"):
        readers.read(str(tmp_path / "cut.parquet"), Declaration(format="parquet"))


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("INFO step=100 loss=3.5 lr=1e-4\nINFO step=200 loss=3.25 lr=1e-4\n", {"step", "loss", "lr"}),
        ("Step 100/900, train loss 3.5\nStep 200/900, train loss 3.25\n", {"Step", "train loss"}),
        ("{'loss': 3.5, 'global_step': 100}\n{'loss': 3.25, 'global_step': 200}\n", {"global_step", "loss"}),
        (
            "Epoch 1 | iter 9 step 100 | loss train: 3.5, val: n/a |\nEpoch 1 | iter 18 step 200 | loss train: 3.25\n",
            {"step", "loss train"},
        ),
        ("[10:00] iteration: 100, lm loss: 3.50\n[10:01] iteration: 200, lm loss: 3.25\n", {"iteration", "lm loss"}),
    ],
)
def test_unknown_text_is_read_by_the_names_before_its_numbers(tmp_path: Path, text: str, names: set[str]) -> None:
    log = read(tmp_path, text, "stdout.log")
    assert log.format == "key-value"
    assert log.columns["step"].tolist() == [100, 200]
    assert log.columns["train_loss"].tolist() == [3.5, 3.25]
    assert set(log.names.values()) == names
    assert "read_by_names" in codes(log)


@pytest.mark.parametrize("name", ["README.md", "train.py", "config.yaml"])
def test_names_and_numbers_in_documentation_and_source_are_no_log(tmp_path: Path, name: str) -> None:
    (tmp_path / name).write_text("# step = 100, loss = 3.5\n# step = 200, loss = 3.25\n", encoding="utf-8")
    assert readers.recognise(readers.sample(str(tmp_path / name))).passed_over is not None


def _record(payload: bytes) -> bytes:
    return struct.pack("<Q", len(payload)) + bytes(4) + payload + bytes(4)


def _event(step: int, wall_time: float, values: list[bytes]) -> bytes:
    summary = b"".join(b"\x0a" + bytes([len(value)]) + value for value in values)
    return _record(
        b"\x09" + struct.pack("<d", wall_time) + b"\x10" + bytes([step]) + b"\x2a" + bytes([len(summary)]) + summary
    )


def _simple(tag: bytes, value: float) -> bytes:
    return b"\x0a" + bytes([len(tag)]) + tag + b"\x15" + struct.pack("<f", value)


def _tensor(tag: bytes, value: float) -> bytes:
    tensor = b"\x08\x01\x22\x04" + struct.pack("<f", value)
    return b"\x0a" + bytes([len(tag)]) + tag + b"\x42" + bytes([len(tensor)]) + tensor


START = _record(b"\x09" + struct.pack("<d", 1.7e9) + b"\x1a\x0dbrain.Event:2")


def test_event_files_hold_scalars_as_floats_or_tensors(tmp_path: Path) -> None:
    data = (
        START + _event(0, 1.7e9 + 1, [_simple(b"train/loss", 3.5)]) + _event(0, 1.7e9 + 1, [_simple(b"train/lr", 0.5)])
    )
    data += _event(10, 1.7e9 + 3, [_tensor(b"train/loss", 3.25)]) + _event(10, 1.7e9 + 3, [_simple(b"accuracy", 0.5)])
    log = read(tmp_path, data, "events.out.tfevents.1.h")
    assert log.format == "tensorboard"
    assert log.columns["step"].tolist() == [0, 10]
    assert log.columns["train_loss"].tolist() == [3.5, 3.25]
    assert log.columns["elapsed_s"].tolist() == [0, 2]
    np.testing.assert_array_equal(log.columns["lr"], [0.5, NAN])
    cut = read(tmp_path, data[:-40], "events.out.tfevents.2.h")
    assert cut.columns["step"].tolist() == [0, 10]
    assert "torn_last_line" in codes(cut)


def _field(number: int, payload: bytes) -> bytes:
    key = number << 3 | 2
    head = bytes([key]) if key < 128 else bytes([key & 0x7F | 0x80, key >> 7])
    return head + bytes([len(payload) & 0x7F | 0x80, len(payload) >> 7]) + payload


def _wandb(records: list[bytes]) -> bytes:
    data = b":W&B" + struct.pack("<HB", 0xBEE1, 0)
    return data + b"".join(bytes(4) + struct.pack("<HB", len(record), 1) + record for record in records)


def _items(values: dict[str, Any]) -> bytes:
    return b"".join(
        _field(1, _field(1, key.encode()) + _field(16, json.dumps(value).encode())) for key, value in values.items()
    )


def test_an_offline_wandb_run_prefers_its_own_step_to_the_number_of_the_call(tmp_path: Path) -> None:
    rows = [{"_step": n, "train/loss": 3.5 - n / 4, "iter": 10 * n} for n in range(3)]
    records = [_field(5, _items({"n_layer": 12, "n_embd": 768}))] + [_field(2, _items(row)) for row in rows]
    log = read(tmp_path, _wandb(records), "run-abc.wandb")
    assert log.format == "wandb-offline"
    assert log.columns["step"].tolist() == [0, 10, 20]
    assert log.columns["train_loss"].tolist() == [3.5, 3.25, 3.0]
    assert (facts(log)["n_layers"], facts(log)["d_model"]) == (12, 768)
    with pytest.raises(TokenAxisError, match="no history"):
        read(tmp_path, _wandb(records[:1]), "run-empty.wandb")


def test_both_ways_of_reading_json_lines_agree(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(5)
    rows: list[dict[str, Any]] = [{"config": {"lr": 0.1}}]
    for step in range(400):
        rows.append({"step": step, "train": {"loss": float(rng.normal(3, 1))}, "lr": 0.1, "epoch": 1})
        if step % 50 == 0:
            rows.append({"step": step, "val_loss": float(rng.normal(3, 1)), "note": "x"})
    rows += [
        {"train": {"loss": 3.0}},
        {"step": 400, "note": "end"},
        {"step": 400, "train_loss": 3.0, "train_runtime": 9.0},
    ]
    text = "".join(json.dumps(row) + "\n" for row in rows) + '{"step": 401, "tra'
    slow = read(tmp_path, text, "run.jsonl")
    monkeypatch.setattr(json_fast, "WORTH", 0)
    parsed = json_fast.parse([text[: text.rindex("\n") + 1].encode()], {})
    assert parsed is not None
    fast = read(tmp_path, text, "run.jsonl")
    assert (fast.rows_read, fast.bad_lines, fast.names) == (slow.rows_read, slow.bad_lines, slow.names)
    assert {notice.code: notice for notice in fast.warnings} == {notice.code: notice for notice in slow.warnings}
    np.testing.assert_array_equal(fast.lines, slow.lines)
    for name, values in slow.columns.items():
        np.testing.assert_array_equal(fast.columns[name], values)
