"""Standard output of pytorch/torchtitan: `... step: 10  loss: 3.5  grad_norm: 1.2  memory: ...`, coloured or not.

Steps count from 1: the line of step N gives the loss of the batch of update N, before which N-1 updates were done.
"""

from __future__ import annotations

import re

from tokenaxis import units
from tokenaxis.declarations import Declaration
from tokenaxis.errors import Notice
from tokenaxis.readers.base import RawLog, Reader, Sample
from tokenaxis.readers.content import read_content
from tokenaxis.readers.textlog import Fact, broken_rows, build, find_rows, line_of, torn_offset

NAME = "torchtitan"
_COLOUR = re.compile(rb"\x1b\[[0-9;]*m")
_LINE = rb"\bstep: +\d+ +loss: +[-+.\dnaif]+ +(?:grad_norm|memory):"
_TRAIN = rb"(?m)^(?![^\n]{0,200}validate step:)[^\n]{0,200}?\bstep: +(\d+) +loss: +(\S+)(?: +grad_norm: +(\S+))?(?= |$)"
_VAL = rb"(?m)^[^\n]{0,200}?validate step: +(\d+) +loss: +(\S+)"
_START = rb"(?m)^[^\n]{0,200}?\bstep: +\d+(?: +loss:|\s*\Z)"
_SETTINGS = (
    (rb"local batch size:? *(\d+)", "micro_batch_sequences"),
    (rb"global batch size:? *(\d+)", "global_batch_sequences"),
    (rb"sequence length:? *(\d+)", "seq_len"),
    (rb"total steps:? *(\d+)", "planned_steps"),
    (rb"\(warmup:? *(\d+)\)", "warmup_steps"),
    (rb"size: ([\d,]+) total parameters", "n_params"),
)


def sniff(sample: Sample) -> int:
    """Certain when a step line is there."""
    for part in (sample.head, sample.tail):
        if b"step:" in part and re.search(_LINE, _COLOUR.sub(b"", part)):
            return 88
    return 85 if b"torchtitan" in sample.head and b"Training starts at step" in sample.head else 0


def read(path: str, declaration: Declaration) -> RawLog:
    """Read the standard output of a run.

    Raises:
        TokenAxisError: no step line.
    """
    content = read_content(path)
    content.data = data = _COLOUR.sub(b"", content.data)
    patterns = [re.compile(_TRAIN), re.compile(_VAL)]
    train = find_rows(data, patterns[0], ("step", "train_loss", "grad_norm"))
    val = find_rows(data, patterns[1], ("step", "val_loss"))
    broken = broken_rows(data, re.compile(_START), [train, val])
    warnings = []
    if len(train.offsets) and train.columns["step"].min() >= 1:
        train.columns["step"] = train.columns["step"] - 1
        message = "step lines count from 1: line `step: N` became step N-1, the updates done before its loss"
        warnings.append(Notice("steps_one_based", message))
    names = {"step": "step", "train_loss": "loss", "val_loss": "validate loss", "grad_norm": "grad_norm"}
    return build(
        NAME,
        content,
        [train, val],
        names,
        broken=broken,
        torn=torn_offset(data, patterns),
        facts=_facts(data[: int(train.offsets[0]) if len(train.offsets) else 1 << 16]),
        warnings=warnings,
        what="`step: N  loss: X` line",
    )


def _facts(head: bytes) -> list[Fact]:
    facts: list[Fact] = []
    for pattern, key in _SETTINGS:
        match = re.search(pattern, head)
        value = None if match is None else units.count(match.group(1).decode())
        if match is not None and value and value < 1e15:
            facts.append((key, int(value), "emitted", f"line {line_of(head, match.start())}"))
    found = {key: value for key, value, _, _ in facts}
    if "global_batch_sequences" in found and "seq_len" in found:
        tokens = found["global_batch_sequences"] * found["seq_len"]
        facts.append(("tokens_per_step", tokens, "emitted", "global batch size * sequence length"))
    return facts


READER = Reader(NAME, "standard output of torchtitan", sniff, read)
