"""Logs of KellerJordan/modded-nanogpt: the training source, then `step:N/TOTAL train_loss:X train_time:Yms ...`.

Train lines count from 1: `step:N` is the loss of the batch of update N, before which N-1 updates were done; a
`val_loss` line comes after N updates. train_time leaves out validation and the first steps.
"""

from __future__ import annotations

import re

from tokenaxis.declarations import Declaration
from tokenaxis.errors import Notice
from tokenaxis.readers.base import RawLog, Reader, Sample
from tokenaxis.readers.content import read_content
from tokenaxis.readers.textlog import Fact, Rows, broken_rows, build, find_rows, line_of, torn_offset

NAME = "modded-nanogpt"
_FIRST = rb"(?m)^step:\d+/\d+ (?:train_loss|val_loss|loss):"
_TRAIN = rb"(?m)^step:(\d+)/\d+ (?:train_loss|loss):([^\s:]+)(?: train_time:([^\s:]+?)ms)?(?=\s|\Z)"
_VAL = rb"(?m)^step:(\d+)/\d+ val_loss:([^\s:]+)(?: train_time:([^\s:]+?)ms)?(?=\s|\Z)"
_START = rb"(?m)^step:\d*(?:/\d*)?(?: (?:train_loss|val_loss|loss):|\Z)"
_TOTAL = rb"(?m)^step:\d+/(\d+) "
_NAMES = {"step": "step", "train_loss": "train_loss", "val_loss": "val_loss", "elapsed_s": "train_time"}
#: hyperparameters in the source above the lines: `batch_size : int = 8*64 # in sequences`
_SETTING = rb"(?m)^ +(\w+) *: *int *= *(\d+(?: *\* *\d+)*)"
_SETTINGS = {
    b"sequence_length": "seq_len",
    b"n_layer": "n_layers",
    b"n_head": "n_heads",
    b"n_embd": "d_model",
    b"vocab_size": "vocab_size",
}


def sniff(sample: Sample) -> int:
    """Certain when a step line is there; in the tail where the source fills the head."""
    for part in (sample.head, sample.tail):
        if b"step:" in part and re.search(_FIRST, part):
            return 95
    return 0


def read(path: str, declaration: Declaration) -> RawLog:
    """Read a run's log.

    Raises:
        TokenAxisError: no step line.
    """
    content = read_content(path)
    data = content.data
    patterns = [re.compile(_TRAIN), re.compile(_VAL)]
    train = find_rows(data, patterns[0], ("step", "train_loss", "elapsed_s"))
    val = find_rows(data, patterns[1], ("step", "val_loss", "elapsed_s"))
    broken = broken_rows(data, re.compile(_START), [train, val])
    warnings = []
    if len(train.offsets) and train.columns["step"].min() >= 1:
        train.columns["step"] = train.columns["step"] - 1
        message = "train lines count from 1: line `step:N` became step N-1, the updates done before its loss"
        warnings.append(Notice("steps_one_based", message))
    for rows in (train, val):
        rows.columns["elapsed_s"] = rows.columns["elapsed_s"] / 1000
    return build(
        NAME,
        content,
        [train, val],
        _NAMES,
        broken=broken,
        torn=torn_offset(data, patterns),
        facts=_facts(data, [train, val]),
        warnings=warnings,
        what="`step:N/TOTAL` line",
    )


def _facts(data: bytes, found: list[Rows]) -> list[Fact]:
    facts: list[Fact] = []
    total = re.search(_TOTAL, data)
    if total is not None and len(total.group(1)) < 16 and int(total.group(1)):
        note = f"step line, line {line_of(data, total.start())}"
        facts.append(("planned_steps", int(total.group(1)), "emitted", note))
    first = min((int(rows.offsets[0]) for rows in found if len(rows.offsets)), default=0)
    settings: dict[bytes, tuple[int, int]] = {}
    for match in re.finditer(_SETTING, data[:first]):
        settings.setdefault(match.group(1), (_product(match.group(2)), match.start(1)))
    for name, (value, offset) in settings.items():
        if name in _SETTINGS and value > 0:
            note = f"source above the log, line {line_of(data, offset)}: {name.decode()}"
            facts.append((_SETTINGS[name], value, "emitted", note))
    if b"batch_size" in settings and b"sequence_length" in settings:
        batch, offset = settings[b"batch_size"]
        note = f"source above the log, line {line_of(data, offset)}: batch_size * sequence_length"
        tokens = batch * settings[b"sequence_length"][0]
        if tokens > 0:
            facts.append(("tokens_per_step", tokens, "emitted", note))
    return facts


def _product(text: bytes) -> int:
    value = 1
    for factor in text.split(b"*")[:8]:
        value *= int(factor[:20])
    return min(value, 10**18)


READER = Reader(NAME, "modded-nanogpt logs (training source, then step lines)", sniff, read)
