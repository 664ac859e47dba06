"""Standard output of karpathy/nanochat's base_train: `step 00010/21400 (0.05%) | loss: 9.1 | lrm: 1.00 | dt: ...`.

The loss is an exponential mean of batch losses without start-up bias; the step counts the updates done before.
Validation is in bits per byte, which is no loss in nats per token, so it is not read.
"""

from __future__ import annotations

import re

from tokenaxis import units
from tokenaxis.declarations import Declaration
from tokenaxis.errors import Notice
from tokenaxis.readers.base import RawLog, Reader, Sample
from tokenaxis.readers.content import read_content
from tokenaxis.readers.textlog import Fact, broken_rows, build, find_rows, line_of, torn_offset

NAME = "nanochat"
_LINE = rb"(?m)^step \d+(?:/\d+)? \([\d.]+%\) \| loss: "
_ROW = rb"(?m)^step (\d+)(?:/\d+)? \([\d.]+%\) \| loss: ([^\s|]+) \|(?: grad norm: ([^\s|]+) \|)?"
_START = rb"(?m)^step \d+(?:/\d+)? \("
_SETTINGS = (
    (rb"(?m)^Total batch size ([\d,]+)", "tokens_per_step"),
    (rb"(?m)^Number of parameters: ([\d,]+)", "n_params"),
    (rb"(?m)^num_layers: (\d+)", "n_layers"),
    (rb"(?m)^model_dim: (\d+)", "d_model"),
    (rb"(?m)^num_heads: (\d+)", "n_heads"),
    (rb"(?m)^num_kv_heads: (\d+)", "n_kv_heads"),
    (rb"(?m)^Vocab size: ([\d,]+)", "vocab_size"),
    (rb"(?m)^Total number of training tokens: ([\d,]+)", "planned_tokens"),
    (rb"(?m)number of iterations[^:\n]*: ([\d,]+)", "planned_steps"),
)


def sniff(sample: Sample) -> int:
    """Certain when a step line is there."""
    for part in (sample.head, sample.tail):
        if b"| loss: " in part and re.search(_LINE, part):
            return 92
    return 0


def read(path: str, declaration: Declaration) -> RawLog:
    """Read the standard output of a run.

    Raises:
        TokenAxisError: no step line.
    """
    content = read_content(path)
    data = content.data
    pattern = re.compile(_ROW)
    rows = find_rows(data, pattern, ("step", "train_loss", "grad_norm"))
    warnings = [
        Notice("train_loss_is_smoothed", "loss is an exponential mean of batch losses, smoothed by the trainer")
    ]
    if b"Validation bpb" in data:
        message = "validation is logged in bits per byte, not in nats per token; it was not read"
        warnings.append(Notice("validation_in_bits_per_byte", message))
    return build(
        NAME,
        content,
        [rows],
        {"step": "step", "train_loss": "loss", "grad_norm": "grad norm"},
        broken=broken_rows(data, re.compile(_START), [rows]),
        torn=torn_offset(data, [pattern]),
        facts=_facts(data[: int(rows.offsets[0]) if len(rows.offsets) else 1 << 16]),
        warnings=warnings,
        what="`step N/TOTAL (P%) | loss: X` line",
    )


def _facts(head: bytes) -> list[Fact]:
    facts: list[Fact] = []
    for pattern, key in _SETTINGS:
        match = re.search(pattern, head)
        value = None if match is None else units.count(match.group(1).decode())
        if match is not None and value and value < 1e18:
            facts.append((key, int(value), "emitted", f"line {line_of(head, match.start(1))}"))
    return facts


READER = Reader(NAME, "standard output of nanochat", sniff, read)
