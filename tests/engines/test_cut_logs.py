"""A log that is looked at in the middle of a write: at whatever byte it ends, what is read is true."""

from __future__ import annotations

import json
import struct
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from tokenaxis import readers
from tokenaxis.declarations import Declaration

#: past 127, so that steps take two bytes as protocol buffers write them
ROWS = 300


def losses() -> np.ndarray:
    """A power law with noise of 0.01, of six decimals: what is cut is shorter than all others."""
    noise = 0.01 * np.random.default_rng(0).standard_normal(ROWS)
    return np.round(2 + 3 * np.arange(1, ROWS + 1) ** -0.3 + noise, 6)


def varint(value: int) -> bytes:
    return bytes([value]) if value < 128 else bytes([value & 127 | 128]) + varint(value >> 7)


def field(number: int, content: bytes) -> bytes:
    """A field of bytes of a protocol buffer."""
    return varint(number << 3 | 2) + varint(len(content)) + content


def csv(step: int, loss: float) -> bytes:
    return f"{step},0.001,{loss:.6f}\n".encode()


def jsonl(step: int, loss: float) -> bytes:
    return json.dumps({"step": step, "lr": 0.001, "train_loss": loss}).encode() + b"\n"


def llmc(step: int, loss: float) -> bytes:
    return f"s:{step} trl:{loss:.6f}\n".encode()


def modded(step: int, loss: float) -> bytes:
    return f"step:{step}/{ROWS} train_loss:{loss:.6f} train_time:{step * 100}ms step_avg:100.00ms\n".encode()


def key_value(step: int, loss: float) -> bytes:
    return f"INFO step={step} lr=0.001 loss={loss:.6f}\n".encode()


def event(step: int, loss: float) -> bytes:
    value = field(1, b"train/loss") + b"\x15" + struct.pack("<f", loss)
    payload = b"\x09" + struct.pack("<d", 1e9 + step) + b"\x10" + varint(step) + field(5, field(1, value))
    return struct.pack("<Q", len(payload)) + bytes(4) + payload + bytes(4)


def wandb(step: int, loss: float) -> bytes:
    items = (("step", step), ("train/loss", loss))
    record = field(2, b"".join(field(1, field(1, k.encode()) + field(16, json.dumps(v).encode())) for k, v in items))
    return bytes(4) + struct.pack("<HB", len(record), 1) + record


VERSION = b"\x09" + struct.pack("<d", 1e9) + field(3, b"brain.Event:2")
FORMATS: dict[str, tuple[bytes, Callable[[int, float], bytes]]] = {
    "log.csv": (b"step,lr,train_loss\n", csv),
    "log.jsonl": (b"", jsonl),
    "main.log": (b"", llmc),
    "run.txt": (b"", modded),
    "train.out": (b"", key_value),
    "events.out.tfevents.1.host": (struct.pack("<Q", len(VERSION)) + bytes(4) + VERSION + bytes(4), event),
    "run-abc.wandb": (b":W&B" + struct.pack("<HB", 0xBEE1, 0), wandb),
}


@pytest.mark.parametrize("name", FORMATS)
def test_a_log_that_ends_at_any_byte_gives_whole_rows_only(name: str, tmp_path: Path) -> None:
    head, row = FORMATS[name]
    truth = losses()
    data = head + b"".join(row(step, loss) for step, loss in enumerate(truth.tolist(), 1))
    counts = []
    for end in range(len(data) - 3 * len(row(ROWS, 2.5)), len(data) + 1):
        (tmp_path / name).write_bytes(data[:end])
        found = readers.read(str(tmp_path / name), Declaration()).columns["train_loss"]
        # float32 in event files; one decimal less would be off by 1e-6 and more
        np.testing.assert_allclose(found, truth[: len(found)], rtol=0, atol=3e-7, err_msg=f"cut at {end}")
        counts.append(len(found))
    assert counts == sorted(counts) and counts[-1] == ROWS, "no row is lost once it is whole"
    assert ROWS - 4 <= counts[0] < ROWS


SHORT = {
    "a.csv": "{step},{loss:.4g}\n",
    "a.out": "step={step} loss={loss:.4g}\n",
    "main.log": "s:{step} trl:{loss:.4g}\n",
}


@pytest.mark.parametrize(("name", "row"), SHORT.items())
def test_numbers_of_several_lengths_are_not_taken_from_a_cut_line(name: str, row: str, tmp_path: Path) -> None:
    truth = [float(f"{loss:.4g}") for loss in losses()]
    text = "step,train_loss\n" * name.endswith(".csv")
    text += "".join(row.format(step=step, loss=loss) for step, loss in enumerate(truth, 1))
    for end in range(len(text) - 400, len(text) + 1):
        (tmp_path / name).write_text(text[:end])
        found = readers.read(str(tmp_path / name), Declaration()).columns["train_loss"].tolist()
        assert found == truth[: len(found)], f"cut at {end}"
