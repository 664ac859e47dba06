"""Standard output of karpathy/nanochat and autoresearch: `step 00010/21400 (0.05%) | loss: 9.1 | lrm: 1.00 | dt: ...`.

The loss of pretraining is an exponential mean of batch losses without start-up bias; the step counts the updates done
before. Its validation is in bits per byte, which is no loss in nats per token, so it is not read. chat_sft writes
`Step 00010/00700 | Training loss: X`, the loss of one micro-batch, and `Step 00000 | Validation loss: X`.
"""

from __future__ import annotations

import math
import re

from tokenaxis import units
from tokenaxis.declarations import Declaration
from tokenaxis.errors import Notice
from tokenaxis.readers.base import RawLog, Reader, Sample
from tokenaxis.readers.content import read_content
from tokenaxis.readers.headers import Fact, batch_by_header, line_of
from tokenaxis.readers.lines import LEAD, lead, readable, visible
from tokenaxis.readers.textlog import broken_rows, build, find_rows, torn_offset

NAME = "nanochat"
_LINE = rb"(?:step \d+(?:/\d+)? \([\d.]+%\) \| loss: |Step \d+/\d+ \| Training loss: )"
_ROW = (
    rb"(?:step (\d+)(?:/\d+)? \([\d.]+%\) \| loss: ([^\s|]+) \|(?: grad norm: ([^\s|]+) \|)?"
    rb"|Step (\d+)/\d+ \| Training loss: ([^\s|]+)\|)"
)
_COLUMNS = ("step", "train_loss", "grad_norm", "step", "train_loss")
#: forks write the loss behind the bits per byte
_VAL = rb"Step (\d+) \| (?:Validation loss|Validation bpb: [^\s|]+ \| val_loss): ([^\s|]+)(?=\s|\Z)"
_START = rb"(?:step \d+(?:/\d+)? \(\d|Step \d+/\d+ \| Training)"
_TOTAL = rb"[Ss]tep \d+/(\d+)[ |]"
#: what a line of the console says -> fact
_BATCH = rb"(?:Total batch size |Effective batch size: )([\d,]+)"
_SETTINGS = (
    (_BATCH, "tokens_per_step"),
    (rb"(?:Number of parameters: |total +: )([\d,]+)", "n_params"),
    (rb"(?:num_layers: | *[\"']?n_layer[\"']?: )(\d+)", "n_layers"),
    (rb"(?:model_dim: | *[\"']?n_embd[\"']?: )(\d+)", "d_model"),
    (rb"(?:num_heads: | *[\"']?n_head[\"']?: )(\d+)", "n_heads"),
    (rb"(?:num_kv_heads: | *[\"']?n_kv_head[\"']?: )(\d+)", "n_kv_heads"),
    (rb"(?: *[\"']?sequence_len[\"']?: |Tokens / micro-batch / rank: \d+ x )(\d+)", "seq_len"),
    (rb"Vocab size: ([\d,]+)", "vocab_size"),
    (rb"Total number of training tokens: ([\d,]+)", "planned_tokens"),
    (rb"[^\n]{0,80}number of iterations[^:\n]*: ([\d,]+)", "planned_steps"),
    (rb"[^\n]{0,80}Distributed world size: (\d+)", "world_size"),
    (rb"GPU: ([^|\n]{1,80}?) \|", "gpu"),
)
#: autoresearch and SFT print their settings on one line: Model config: {'sequence_len': 2048, ...}
_INLINE = rb"[{,] ?[\"'](%s)[\"']: (\d+)"
_SUMMARY = rb"(?m)^total_tokens_M: +([\d.]{1,15})\s+num_steps: +(\d+)"
_INLINE_NAMES = {
    b"n_layer": "n_layers",
    b"n_embd": "d_model",
    b"n_head": "n_heads",
    b"n_kv_head": "n_kv_heads",
    b"sequence_len": "seq_len",
}


def sniff(sample: Sample) -> int:
    """Certain when a step line is there."""
    for part in (sample.head, sample.tail):
        if b"oss: " in part and re.search(rb"(?m)^" + LEAD + _LINE, visible(part)):
            return 92
    return 0


def read(path: str, declaration: Declaration) -> RawLog:
    """Read the standard output of a run.

    Raises:
        TokenAxisError: no step line.
    """
    content = read_content(path)
    data = readable(content)
    begin = rb"(?m)^" + lead(data, _LINE)
    pattern = re.compile(begin + _ROW)
    rows = find_rows(data, pattern, _COLUMNS)
    val = find_rows(data, re.compile(begin + _VAL), ("step", "val_loss"))
    facts = _facts(data[: int(rows.offsets[0]) if len(rows.offsets) else 1 << 16], data, begin)
    return build(
        NAME,
        content,
        [rows, val],
        {"step": "step", "train_loss": "loss", "grad_norm": "grad norm", "val_loss": "Validation loss"},
        broken=broken_rows(data, re.compile(begin + _START), [rows]),
        torn=torn_offset(data, [pattern]),
        facts=batch_by_header(data, b"batch size", begin + _BATCH, [rows, val], facts),
        warnings=_notices(data, validated=len(val.offsets) > 0),
        what="`step N/TOTAL (P%) | loss: X` line",
    )


def _notices(data: bytes, validated: bool) -> list[Notice]:
    notices = []
    if b"| loss: " in data:
        message = "loss is an exponential mean of batch losses, smoothed by the trainer"
        notices.append(Notice("train_loss_is_smoothed", message))
    if not validated and (b"Validation bpb" in data or b"val_bpb" in data):
        message = "validation is logged in bits per byte, not in nats per token; it was not read"
        notices.append(Notice("validation_in_bits_per_byte", message))
    return notices


def _facts(head: bytes, data: bytes, begin: bytes) -> list[Fact]:
    facts: list[Fact] = []
    for pattern, key in _SETTINGS:
        match = re.search(begin + pattern, head)
        if match is None:
            continue
        value = match.group(1).decode("utf-8", "replace") if key == "gpu" else units.count(match.group(1).decode())
        if isinstance(value, str) or (value and value < 1e18):
            note = f"line {line_of(head, match.start(1))}"
            facts.append((key, value if isinstance(value, str) else int(value), "emitted", note))
    known = {key for key, *_ in facts}
    names = b"|".join(_INLINE_NAMES)
    for match in re.finditer(_INLINE % names, head):
        key = _INLINE_NAMES[match.group(1)]
        if key not in known and len(match.group(2)) < 16 and int(match.group(2)):
            facts.append((key, int(match.group(2)), "emitted", f"line {line_of(head, match.start(1))}"))
            known.add(key)
    if "tokens_per_step" not in known:
        facts += _from_summary(data)
    total = re.search(begin + _TOTAL, data) if "planned_steps" not in known else None
    if total is not None and len(total.group(1)) < 16 and int(total.group(1)):
        facts.append(("planned_steps", int(total.group(1)), "emitted", "step line: N/TOTAL"))
    return facts


def _from_summary(data: bytes) -> list[Fact]:
    """The batch from what autoresearch prints at its end, where one multiple of 1024 fits its rounded numbers."""
    summary = re.search(_SUMMARY, data[-4096:])
    if summary is None or not int(summary.group(2)[:15]):
        return []
    millions, steps = float(summary.group(1)), int(summary.group(2)[:15])
    low, high = (math.ceil((millions + part) * 1e6 / steps / 1024) for part in (-0.05, 0.05))
    if high - low != 1:
        return []
    return [
        ("tokens_per_step", low * 1024, "detected", "total_tokens_M / num_steps, the one multiple of 1024 that fits")
    ]


READER = Reader(NAME, "standard output of nanochat and autoresearch", sniff, read)
