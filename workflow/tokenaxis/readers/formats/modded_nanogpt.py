"""Logs of KellerJordan/modded-nanogpt and openai/parameter-golf: `step:N/TOTAL train_loss:X train_time:Yms ...`.

A log begins with the training source, or its console has none. Train lines count from 1: `step:N` is the loss of the
batch of update N, before which N-1 updates were done; a `val_loss` line comes after N updates. Since 2025 train lines
have no loss. train_time leaves out validation and the first steps. val_bpb is in bits per byte and is not read.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from tokenaxis.declarations import Declaration
from tokenaxis.errors import Notice
from tokenaxis.readers.base import RawLog, Reader, Sample
from tokenaxis.readers.content import read_content
from tokenaxis.readers.formats._modded_source import BatchPlan, batch_plan, settings_of
from tokenaxis.readers.headers import Fact, batch_by_header, line_of
from tokenaxis.readers.lines import LEAD, lead, readable, visible
from tokenaxis.readers.textlog import Rows, broken_rows, build, find_rows, one_based, torn_offset

if TYPE_CHECKING:
    import numpy as np

NAME = "modded-nanogpt"
_LINE = rb"step:\d+/\d+\s+(?:train_loss|val_loss|loss):"
#: train_time stands behind other fields, such as val_bpb
_TIME = rb"(?:[ \t]+(?!train_time)\w+:[^\s:]+){0,4}(?:[ \t]+train_time:([^\s:]+?)ms)?(?=\s|\Z)"
_TRAIN = rb"step:(\d+)/\d+[ \t]+(?:train_loss|loss):([^\s:]+)" + _TIME
_VAL = rb"step:(\d+)/\d+[ \t]+val_loss:([^\s:]+)" + _TIME
_START = rb"step:\d*(?:/\d*)?(?:[ \t]+(?:train_loss|val_loss|loss):|\Z)"
_TOTAL = rb"step:\d+/(\d+)\s"
_NAMES = {"step": "step", "train_loss": "train_loss", "val_loss": "val_loss", "elapsed_s": "train_time"}
#: what parameter-golf prints before its first step -> fact
_PRINTED = {
    b"train_batch_tokens": "tokens_per_step",
    b"train_seq_len": "seq_len",
    b"seq_len": "seq_len",
    b"world_size": "world_size",
    b"model_params": "n_params",
    b"vocab_size": "vocab_size",
    b"layers": "n_layers",
    b"dim": "d_model",
    b"num_heads": "n_heads",
    b"heads": "n_heads",
    b"num_kv_heads": "n_kv_heads",
    b"kv_heads": "n_kv_heads",
}
_PRINTED_PAIR = rb"(?:^|(?<=[ \t]))(%s):(\d{1,15})(?=[ \t\r\n]|\Z)" % b"|".join(sorted(_PRINTED, reverse=True))
_PRINTED_LINE = rb"(?m)^[^\n]{0,160}?\b(?:train_batch_tokens|model_params|world_size|num_heads):\d[^\n]{0,400}"


def sniff(sample: Sample) -> int:
    """Certain when a step line is there; in the tail where the source fills the head."""
    for part in (sample.head, sample.tail):
        if b"step:" in part and re.search(rb"(?m)^" + LEAD + _LINE, visible(part)):
            return 95
    return 0


def read(path: str, declaration: Declaration) -> RawLog:
    """Read a run's log.

    Raises:
        TokenAxisError: no step line.
    """
    content = read_content(path)
    data = readable(content)
    begin = rb"(?m)^" + lead(data, _LINE)
    patterns = [re.compile(begin + _TRAIN), re.compile(begin + _VAL)]
    train = find_rows(data, patterns[0], ("step", "train_loss", "elapsed_s"))
    val = find_rows(data, patterns[1], ("step", "val_loss", "elapsed_s"))
    broken = broken_rows(data, re.compile(begin + _START), [train, val])
    warnings = one_based(train, "step:N")
    source = data[: _first(train, val)]
    plan = batch_plan(source)
    if plan is None and b"train_bs_schedule" in source:
        message = "the source changes the batch (train_bs_schedule) by a rule that is not known; declare batch_schedule"
        warnings.append(Notice("batch_schedule_unknown", message))
    for rows in (train, val):
        rows.columns["elapsed_s"] = rows.columns["elapsed_s"] / 1000
        if plan is not None and plan.varies:
            rows.columns |= _scheduled(rows.columns["step"], plan)
    facts = _facts(data, begin, _first(train, val), plan)
    log = build(
        NAME,
        content,
        [train, val],
        _NAMES | {"tokens": "the batches of the source", "tokens_per_step": "train_bs_schedule"},
        broken=broken,
        torn=torn_offset(data, patterns),
        facts=batch_by_header(data, b"train_batch_tokens:", rb"train_batch_tokens:(\d+)", [train, val], facts),
        warnings=warnings,
        what="`step:N/TOTAL` line with a loss",
    )
    log.tokens_convention = "before" if "tokens" in log.columns else None
    return log


def _first(*found: Rows) -> int:
    return min((int(rows.offsets[0]) for rows in found if len(rows.offsets)), default=0)


def _scheduled(steps: np.ndarray, plan: BatchPlan) -> dict[str, np.ndarray]:
    """Tokens before each step and its batch."""
    import numpy as np

    starts = np.array([start for start, _ in plan.stages], float)
    sizes = np.array([size for _, size in plan.stages], float)
    before = np.concatenate([[0.0], np.cumsum(np.diff(starts) * sizes[:-1])])
    stage = np.maximum(np.searchsorted(starts, steps, side="right") - 1, 0)
    return {"tokens": before[stage] + (steps - starts[stage]) * sizes[stage], "tokens_per_step": sizes[stage]}


def _facts(data: bytes, begin: bytes, first: int, plan: BatchPlan | None) -> list[Fact]:
    facts: list[Fact] = []
    total = re.search(begin + _TOTAL, data)
    if total is not None and len(total.group(1)) < 16 and int(total.group(1)):
        note = f"step line, line {line_of(data, total.start())}"
        facts.append(("planned_steps", int(total.group(1)), "emitted", note))
    for key, value, offset, note in settings_of(data[:first]):
        facts.append((key, value, "emitted", f"source above the log, line {line_of(data, offset)}: {note}"))
    for line in re.finditer(_PRINTED_LINE, data[:first]):
        for match in re.finditer(_PRINTED_PAIR, line.group()):
            if int(match.group(2)):
                note = f"line {line_of(data, line.start())}: {match.group(1).decode()}"
                facts.append((_PRINTED[match.group(1)], int(match.group(2)), "emitted", note))
    if plan is not None and not plan.varies:
        note = f"source above the log, line {line_of(data, plan.offset)}: {plan.note}"
        facts.append(("tokens_per_step", plan.stages[0][1], "emitted", note))
    return facts


READER = Reader(NAME, "modded-nanogpt and parameter-golf logs (training source, then step lines)", sniff, read)
