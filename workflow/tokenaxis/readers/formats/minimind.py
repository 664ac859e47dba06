"""Standard output of MiniMind and its many forks: `Epoch:[1/2](100/44160) loss:5.883 lr:0.00054 epoch_Time:45.0min:`.

Batches of an epoch are counted, from 0, since late 2025 (`), loss: `) from 1; accumulation_steps make an update. That
number stands only in a log that prints its arguments; else steps are batches, and a notice says so.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from tokenaxis.declarations import Declaration
from tokenaxis.errors import Notice
from tokenaxis.readers.base import RawLog, Reader, Sample
from tokenaxis.readers.content import read_content
from tokenaxis.readers.headers import Fact, line_of
from tokenaxis.readers.lines import readable, visible
from tokenaxis.readers.textlog import Rows, build, find_rows, torn_offset

if TYPE_CHECKING:
    import numpy as np

NAME = "minimind"
_LINE = rb"\bEpoch: ?\[\d+/\d+\] ?\(\d+/\d+\),? {0,2}loss: ?"
_ROW = (
    rb"(?m)^[^\n]{0,160}?\bEpoch: ?\[(\d{1,9})/(\d{1,9})\] ?\((\d{1,12})/(\d{1,12})\),? {0,2}loss: ?([^\s,]+)"
    rb"(?:[^\n]{0,200}?[ ,](?:lr|learning_rate): ?([^\s,]+))?"
)
_COLUMNS = ("epoch", "epochs", "batch", "batches", "train_loss", "lr")
#: argument -> fact
_ARGUMENTS = {b"max_seq_len": "seq_len", b"learning_rate": "lr_peak"}
_ACCUMULATION = rb"\baccumulation_steps=(\d{1,6})\b"


def sniff(sample: Sample) -> int:
    """Certain when such a line is there."""
    parts = (part for part in (sample.head, sample.tail) if b"Epoch:" in part)
    return 92 if any(re.search(_LINE, visible(part)) for part in parts) else 0


def read(path: str, declaration: Declaration) -> RawLog:
    """Read the standard output of a run.

    Raises:
        TokenAxisError: no such line.
    """
    content = read_content(path)
    data = readable(content)
    pattern = re.compile(_ROW)
    rows = find_rows(data, pattern, _COLUMNS)
    accumulation = re.search(_ACCUMULATION, data)
    updates = max(1, int(accumulation.group(1))) if accumulation is not None else None
    planned = _count(rows, updates or 1, from_one=re.search(rb"\(\d+/\d+\), ", data) is not None)
    facts = _facts(data)
    if planned:
        facts.append(("planned_steps", planned, "emitted", "epochs * batches of an epoch"))
    warnings = []
    if updates is None:
        message = (
            "MiniMind counts batches, of which accumulation_steps (8 unless set) make an update: steps are batches "
            "here, so tokens_per_step is that of one batch (batch_size x max_seq_len x ranks)"
        )
        warnings.append(Notice("steps_are_batches", message))
    if b"dpo_loss" in data:
        message = "losses are those of preferences (DPO), not nats per token"
        warnings.append(Notice("loss_of_a_policy", message))
    return build(
        NAME,
        content,
        [rows],
        {"step": "batch", "train_loss": "loss", "lr": "lr"},
        torn=torn_offset(data, [pattern]),
        facts=facts,
        warnings=warnings,
        what="`Epoch:[E/EPOCHS](N/BATCHES)` line",
    )


def _count(rows: Rows, updates: int, from_one: bool) -> int:
    """Turn epochs and batches into steps; the planned number of steps, 0 where it is not one."""
    epoch, epochs, batch, batches = (rows.columns.pop(name) for name in _COLUMNS[:4])
    if not len(epoch):
        rows.columns["step"] = epoch
        return 0
    if epoch.min() >= 1:
        epoch = epoch - 1
    if from_one and batch.min() >= 1:
        batch = batch - 1
    steps: np.ndarray = (epoch * batches + batch) // updates
    rows.columns["step"] = steps
    rows.columns = {"step": steps, **rows.columns}
    planned = epochs * batches // updates
    return int(planned[0]) if bool((planned == planned[0]).all()) else 0


def _facts(data: bytes) -> list[Fact]:
    facts: list[Fact] = []
    for name, key in _ARGUMENTS.items():
        match = re.search(rb"\b%s=(\d{1,9}(?:\.\d+)?(?:e-?\d+)?)\b" % name, data)
        value = 0.0 if match is None else float(match.group(1))
        if match is not None and value > 0:
            number = int(value) if value == int(value) else value
            facts.append((key, number, "emitted", f"line {line_of(data, match.start())}: {name.decode()}"))
    return facts


READER = Reader(NAME, "standard output of MiniMind", sniff, read)
