"""Damaged logs end in rows or in the one expected error: never in another exception, a hang, or a broken contract.

TOKENAXIS_FUZZ=20000 raises the number of mutated files; every mutation is seeded, so a failure names its seed.
"""

from __future__ import annotations

import gzip
import json
import os
import random
import struct
import time
from pathlib import Path

import numpy as np
import pytest

from tokenaxis import readers
from tokenaxis.columns import LOSSES, NAMES
from tokenaxis.declarations import Declaration
from tokenaxis.errors import TokenAxisError
from tokenaxis.readers import json_fast

#: mutated files per seed document in the normal test run
PER_DOCUMENT = max(1, int(os.environ.get("TOKENAXIS_FUZZ", "2400")) // 34)
NUMBERS = [
    b"1e999",
    b"-1e999",
    b"9" * 400,
    b"nan",
    b"-0",
    b"1e-400",
    b"0x10",
    b"1_000",
    b"12:34:56",
    b"",
    b"\xff\xfe",
    b"1.5K",
]


def _csv(delimiter: str = ",", rows: int = 60, end: str = "\n") -> bytes:
    lines = [delimiter.join(("step", "train_loss", "val_loss", "lr", "tokens"))]
    for step in range(rows):
        val = f"{3.1 - step / 90:.4f}" if step % 10 == 0 else ""
        lines.append(delimiter.join((str(step), f"{4 - step / 100:.6f}", val, f"{1e-3:.8g}", str(step * 512))))
    return (end.join(lines) + end).encode()


def _jsonl() -> bytes:
    rows = [{"step": step, "loss": 4 - step / 100, "lr": 1e-3, "train": {"grad_norm": 1.0}} for step in range(40)]
    return "".join(json.dumps(row) + "\n" for row in rows).encode()


def _type_column() -> bytes:
    rows = [f"{step},{kind},{4 - step / 50:.4f}" for step in range(40) for kind in ("train", "val")]
    return ("step,type,loss\n" + "\n".join(rows) + "\n").encode()


def _llmc_stdout() -> bytes:
    header = "| train data pattern    | x |\n| total batch size      | 524288 |\n| num_layers L          | 12 |\n"
    rows = [
        f"step {step:4d}/100 | loss {4 - step / 50:.6f} (+nanz)| norm 0.5000 (-0.10z)| lr 6.00e-04 | 42.1 ms |\n"
        + ("val loss 3.5\n" if step % 10 == 0 else "")
        for step in range(1, 50)
    ]
    return (header + "val loss 11.0\n" + "".join(rows)).encode()


def _trainer_state() -> bytes:
    history = [{"loss": 4 - step / 50, "learning_rate": 1e-4, "step": step} for step in range(5, 100, 5)]
    return json.dumps({"global_step": 95, "log_history": history, "max_steps": 95}, indent=2).encode()


def _megatron() -> bytes:
    head = "------------------------ arguments ------------------------\n  seq_length ...................... 2048\n"
    rows = [
        f" iteration {n:8d}/ 148693 | consumed samples: {n * 128:12d} | consumed tokens: {n * 128 * 2048:12d} | "
        f"elapsed time per iteration (s): 3.45 | learning rate: 2.796E-05 | global batch size:   128 | "
        f"lm loss: {9 - n / 900:.6E} | grad norm: 4.036 |\n"
        for n in range(200, 5000, 200)
    ]
    return (head + "".join(rows)).encode()


def _event_file() -> bytes:
    def record(payload: bytes) -> bytes:
        return struct.pack("<Q", len(payload)) + b"\0\0\0\0" + payload + b"\0\0\0\0"

    def event(step: int, tag: bytes, value: float) -> bytes:
        scalar = b"\x0a" + bytes([len(tag)]) + tag + b"\x15" + struct.pack("<f", value)
        summary = b"\x0a" + bytes([len(scalar)]) + scalar
        body = b"\x09" + struct.pack("<d", 1.7e9 + step) + b"\x10" + bytes([step])
        return record(body + b"\x2a" + bytes([len(summary)]) + summary)

    start = record(b"\x09" + struct.pack("<d", 1.7e9) + b"\x1a\x0dbrain.Event:2")
    return start + b"".join(event(step, b"train/loss", 4 - step / 50) for step in range(60))


def _trainmeter() -> bytes:
    def line(t: float, kind: str, data: dict, src: str = "agent") -> str:
        return json.dumps({"v": 1, "t": t, "src": src, "kind": kind, "d": data})

    lines = [line(0.0, "run.start", {"argv": ["python", "train.py"], "declared": {}}, "supervisor")]
    lines.append(line(0.0, "fact", {"key": "tokens_per_step", "value": 512, "source": "declared"}, "supervisor"))
    for step in range(1, 40):
        lines.append(line(step, "step", {"n": step, "k": 1, "micro": 1, "tokens": 512}))
        lines.append(line(step + 0.5, "metric", {"key": "train/loss", "value": 4 - step / 50, "via": "emit"}))
    return ("\n".join(lines) + "\n").encode()


def _field(number: int, payload: bytes) -> bytes:
    key = number << 3 | 2
    head = bytes([key]) if key < 128 else bytes([key & 0x7F | 0x80, key >> 7])
    return head + bytes([len(payload) & 0x7F | 0x80, len(payload) >> 7]) + payload


def _wandb_offline() -> bytes:
    def items(values: dict) -> bytes:
        pairs = ((key.encode(), json.dumps(value).encode()) for key, value in values.items())
        return b"".join(_field(1, _field(1, key) + _field(16, value)) for key, value in pairs)

    records = [_field(5, items({"n_layer": 12, "batch_size": 8, "block_size": 64, "gradient_accumulation_steps": 2}))]
    records += [_field(2, items({"_step": n, "iter": n * 10, "train/loss": 4 - n / 50})) for n in range(40)]
    head = b":W&B" + struct.pack("<HB", 0xBEE1, 0)
    return head + b"".join(bytes(4) + struct.pack("<HB", len(record), 1) + record for record in records)


def _wandb_export() -> bytes:
    lines = ['"Step","gpt2 - train/loss","gpt2 - train/loss__MIN","gpt2 - train/loss__MAX"']
    lines += [f'"{n}","{4 - n / 50}","{4 - n / 50}","{4 - n / 50}"' for n in range(40)]
    return ("\n".join(lines) + "\n").encode()


DOCUMENTS: dict[str, bytes] = {
    "run.csv": _csv(),
    "run.tsv": _csv("\t"),
    "semicolon.csv": _csv(";").replace(b".", b","),
    "crlf.csv": _csv(end="\r\n"),
    "blanks.txt": _csv().replace(b",,", b",0,").replace(b",", b"  "),
    "utf16.csv": b"\xff\xfe" + _csv().decode().encode("utf-16-le"),
    "quoted.csv": b'"' + _csv().replace(b",", b'","').replace(b"\n", b'"\n"')[:-1],
    "types.csv": _type_column(),
    "run.csv.gz": gzip.compress(_csv(), mtime=0),
    "run.jsonl": _jsonl(),
    "main.log": b"".join(b"s:%d trl:%.4f lr:0.000001 norm:1.5\n" % (n, 4 - n / 50) for n in range(60))
    + b"s:60 tel:2.9\n",
    "stdout.log": _llmc_stdout(),
    "log.txt": b"".join(b"%d train %.6f\n%d val %.4f\n" % (n, 4 - n / 50, n, 4 - n / 50) for n in range(40)),
    "modded.txt": b"import torch\n    batch_size : int = 8*64\n    sequence_length : int = 1024\n"
    + b"".join(
        b"step:%d/50 train_loss:%.4f train_time:%dms step_avg:nanms\n" % (n, 4 - n / 50, n * 9) for n in range(1, 50)
    ),
    "nanogpt.out": b"tokens per iteration will be: 491,520\n"
    + b"".join(b"iter %d: loss %.4f, time 9.1ms, mfu 3.00%%\n" % (n, 4 - n / 50) for n in range(50))
    + b"step 50: train loss 2.9, val loss 3.0\n",
    "trainer_state.json": _trainer_state(),
    "megatron.out": _megatron(),
    "events.out.tfevents.1.host.1.0": _event_file(),
    "events.jsonl": _trainmeter(),
    "fast.jsonl": _jsonl(),
    "run-abc.wandb": _wandb_offline(),
    "export.csv": _wandb_export(),
    "history.json": json.dumps([{"step": step, "loss": 4 - step / 50} for step in range(40)], indent=1).encode(),
    "columns.json": json.dumps({"step": list(range(40)), "loss": [4 - step / 50 for step in range(40)]}).encode(),
    "titan.log": b"".join(
        b"[rank0]: - \x1b[31mstep: %2d  \x1b[32mloss: %.4f  \x1b[33mgrad_norm: 1.5  memory: 3\n" % (n, 4 - n / 50)
        for n in range(1, 40)
    ),
    "chat.log": b"".join(
        b"step %05d/900 (%.2f%%) | loss: %.4f | lrm: 1.0 |\n" % (n, n / 9, 4 - n / 50) for n in range(40)
    ),
    "names.log": b"".join(b"INFO step=%d loss=%.4f lr=1e-4 tokens=%dK\n" % (n, 4 - n / 50, n) for n in range(40)),
    "result_0.txt": b':::MLLOG {"key": "global_batch_size", "value": 32, "metadata": {}}\n'
    + b"".join(
        b':::MLLOG {"key": "train_loss", "value": %.3f, "metadata": {"samples_count": %d}}\n' % (4 - n / 50, 32 * n)
        for n in range(40)
    ),
    "hf.log": "".join(
        f" 1%|# | {n}/60 [01:01<05:58,  1.89s/it]{{'loss': {4 - n / 50:.4f}, 'learning_rate': 1e-05, 'epoch': 0.1}}\n"
        for n in range(1, 40)
    ).encode(),
    "nemo.log": b"".join(
        b"Training epoch 0, iteration %d/99 | lr: 1e-07 | global_step: %d | reduced_train_loss: %.4f | val_loss: 3.0\n"
        % (n, n, 4 - n / 50)
        for n in range(40)
    ),
    "maxtext.log": b"".join(
        b"completed step: %d, seconds: 0.4, total_weights: 8, loss: %.3f\n" % (n, 4 - n / 50) for n in range(40)
    )
    + b"eval metrics after step: 39, loss=3.0, total_weights=8\n",
    "composer.log": b"".join(
        b"[batch=%d/90]:\n\t Train time/token: %d\n\t Train loss/train/total: %.4f\n" % (n + 1, n * 64, 4 - n / 50)
        for n in range(40)
    ),
    "fairseq.log": b"".join(
        b'2021 | INFO | train_inner | {"loss": "%.3f", "ppl": "%.3f", "wpb": "64", "num_updates": "%d"}\n'
        % (4 - n / 50, 2 ** (4 - n / 50), n)
        for n in range(1, 40)
    ),
    "nanotron.log": b"".join(
        b"iteration: %d / 90 | consumed_tokens: 5M | global_batch_size: 262K | lm_loss: %.4f | lr: 1e-3 |\n"
        % (n, 4 - n / 50)
        for n in range(1, 40)
    ),
    "minimind.log": b"".join(
        b"Epoch:[1/1](%d/900) loss:%.4f lr:0.0005 epoch_Time:45.0min:\n" % (n, 4 - n / 50) for n in range(0, 40)
    ),
    "olmo.log": b"".join(
        b"[2024-04-17 09:42:26] INFO [olmo.train:816, rank=0] [step=%d/900,epoch=0]\n    train/CrossEntropyLoss=%.4f\n"
        b"    throughput/total_tokens=%d\n" % (n, 4 - n / 50, n * 1024)
        for n in range(1, 40)
    ),
    "nan.jsonl": b"".join(
        b'{"step": %d, "loss": %s}\n' % (n, b"NaN" if n == 7 else b"%.4f" % (4 - n / 50)) for n in range(40)
    ),
    "train_loss": b"".join(b"17000000%05d %.4f %d\n" % (n, 4 - n / 50, n) for n in range(40)),
}


def _mutate(data: bytes, rng: random.Random) -> bytes:
    for _ in range(rng.choice((1, 1, 2, 4))):
        kind = rng.randrange(9)
        spot = rng.randrange(len(data) + 1)
        if kind == 0:
            data = data[:spot]
        elif kind == 1:
            flipped = bytearray(data)
            for _ in range(rng.choice((1, 3, 30))):
                if flipped:
                    flipped[rng.randrange(len(flipped))] ^= 1 << rng.randrange(8)
            data = bytes(flipped)
        elif kind == 2:
            length = rng.choice((1, 20, 200, 2000))
            data = data[:spot] + data[spot : spot + length] * rng.choice((2, 5)) + data[spot + length :]
        elif kind == 3:
            lines = data.split(b"\n")
            first, second = rng.randrange(len(lines)), rng.randrange(len(lines))
            lines[first], lines[second] = lines[second], lines[first]
            data = b"\n".join(lines)
        elif kind == 4:
            data = data[:spot] + rng.choice(NUMBERS) + data[spot + rng.randrange(8) :]
        elif kind == 5:
            data = data[:spot] + data[spot + rng.choice((1, 10, 300)) :]
        elif kind == 6:
            data = data[:spot] + rng.randbytes(rng.choice((1, 8, 100))) + data[spot:]
        elif kind == 7:
            lines = data.split(b"\n")
            rng.shuffle(lines)
            data = b"\n".join(lines)
        else:
            data = data.replace(
                rng.choice((b",", b".", b":", b"\n", b" ", b'"', b"1")), rng.choice((b"", b",", b"\0", b"\r")), 5
            )
    return data


def check_contract(log: readers.RawLog) -> None:
    """What RawLog promises, whatever the file."""
    rows = len(log.lines)
    assert rows > 0
    assert log.rows_read == rows + len(log.bad_lines)
    assert set(log.columns) <= set(NAMES)
    assert set(log.columns) == set(log.names)
    assert any(loss in log.columns for loss in LOSSES)
    assert log.lines.dtype == np.int64
    assert all(isinstance(line, int) for line in log.bad_lines)
    for values in log.columns.values():
        assert values.dtype == np.float64
        assert values.shape == (rows,)
        assert not np.isinf(values).any()
    steps = log.columns["step"]
    assert (steps >= 0).all()
    assert (steps == np.floor(steps)).all()
    assert (steps <= 2.0**53).all()
    for (column, kind), lines in log.unusable.items():
        assert column in log.columns
        assert kind in ("nan", "inf", "huge", "text")
        assert np.isin(lines, log.lines).all()
    for _, value, source, _ in log.facts:
        assert source in ("emitted", "detected", "declared", "tapped", "measured", "assumed")
        json.dumps(value, allow_nan=False)


@pytest.mark.parametrize("name", sorted(DOCUMENTS))
def test_the_undamaged_document_is_read(name: str, tmp_path: Path) -> None:
    (tmp_path / name).write_bytes(DOCUMENTS[name])
    check_contract(readers.read(str(tmp_path / name)))


@pytest.mark.parametrize("name", sorted(DOCUMENTS))
def test_a_damaged_log_ends_in_rows_or_in_the_expected_error(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if name.startswith(("fast", "nan")):
        monkeypatch.setattr(json_fast, "WORTH", 0)
    path = tmp_path / name
    read = 0
    for seed in range(PER_DOCUMENT):
        path.write_bytes(_mutate(DOCUMENTS[name], random.Random(f"{name} {seed}")))
        found = readers.recognise(readers.sample(str(path)))
        assert sum(part is not None for part in (found.reader, found.refused, found.passed_over)) == 1
        # what nobody recognises any more is given to the reader of the undamaged file
        reader = found.reader or _reader_of(name, tmp_path)
        try:
            check_contract(readers.read(str(path), Declaration(), reader))
            read += 1
        except TokenAxisError as error:
            assert error.reason
        except Exception as error:
            raise AssertionError(f"{name}, mutation {seed}: {type(error).__name__}: {error}") from error
    assert read > 0


_READERS: dict[str, readers.Reader] = {}


def _reader_of(name: str, folder: Path) -> readers.Reader:
    if name not in _READERS:
        whole = folder / "whole" / name
        whole.parent.mkdir(exist_ok=True)
        whole.write_bytes(DOCUMENTS[name])
        found = readers.recognise(readers.sample(str(whole))).reader
        assert found is not None
        _READERS[name] = found
    return _READERS[name]


#: what makes careless patterns and parsers slow: long runs, deep nesting, one line without end
LONG = 300_000
TRAPS = {
    "spaces": b" " * LONG,
    "digits": b"9" * LONG,
    "letters": b"a" * LONG,
    "dashes": b"-" * LONG + b"x",
    "quotes": b'"' * LONG + b"x",
    "brackets": b"[" * LONG,
    "braces": b'{"a":' * (LONG // 5),
    "bars": b"| " * (LONG // 2),
    "commas": b"," * LONG,
    "pairs": b"a/b-c=1 " * (LONG // 8),
    "words": b"loss step " * (LONG // 10),
    "newlines": b"\n" * LONG,
}


@pytest.mark.parametrize("trap", sorted(TRAPS))
@pytest.mark.parametrize("name", sorted(DOCUMENTS))
def test_no_reader_hangs(name: str, trap: str, tmp_path: Path) -> None:
    document = DOCUMENTS[name]
    middle = document.find(b"\n", len(document) // 2) + 1
    path = tmp_path / name
    path.write_bytes(document[:middle] + TRAPS[trap] + document[middle:])
    started = time.process_time()
    try:
        found = readers.recognise(readers.sample(str(path)))
        check_contract(readers.read(str(path), Declaration(), found.reader or _reader_of(name, tmp_path)))
    except TokenAxisError as error:
        assert error.reason
    # a reader whose time grows in proportion needs some 0.1 s; one whose time grows with the square needs minutes
    assert time.process_time() - started < 5
