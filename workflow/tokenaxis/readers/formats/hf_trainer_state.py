"""trainer_state.json of Hugging Face transformers' Trainer: the list `log_history`.

A record is written after the update of its step; `loss` is the mean over the steps since the record before
(logging_steps). The last record of a finished run holds means over the whole run and is passed over.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

from tokenaxis.declarations import Declaration
from tokenaxis.errors import Notice, TokenAxisError
from tokenaxis.readers.base import IntervalMean, RawLog, Reader, Sample
from tokenaxis.readers.content import read_content
from tokenaxis.readers.headers import Fact
from tokenaxis.readers.records import Records

NAME = "hf-trainer-state"
_MARKS = (b'"log_history"', b'"global_step"', b'"is_world_process_zero"', b'"best_model_checkpoint"', b'"best_metric"')
_HISTORY = re.compile(r'"log_history"\s*:\s*\[')


def sniff(sample: Sample) -> int:
    """Certain when the head is an object with a log_history, or with other keys that only this file has."""
    if sample.head.lstrip()[:1] != b"{":
        return 0
    present = sum(mark in sample.head for mark in _MARKS)
    return 95 if _MARKS[0] in sample.head or present >= 3 else 0


def read(path: str, declaration: Declaration) -> RawLog:
    """Read a trainer state.

    Raises:
        TokenAxisError: it is no JSON, or its history is empty or holds no loss.
    """
    content = read_content(path)
    text = content.data.decode("utf-8", "replace")
    content.data = b""  # a copy of the text that nobody needs any more
    start = _HISTORY.search(text)
    if start is None:
        raise TokenAxisError("has no log_history", remedy="give the trainer_state.json of the last checkpoint")
    records = Records(declaration.columns)
    count, end = 0, start.end()
    for line, record, end in _elements(text, start.end()):  # noqa: B007 (its last value is where the history ends)
        records.add(line, record)
        count += 1
    notices = list(content.notices)
    rest = text[end:].lstrip()
    if not rest.startswith("]"):
        if not count:
            raise TokenAxisError("breaks off inside its log_history before the first record")
        broken = text.count("\n", 0, end) + 1
        notices.append(
            Notice("torn_last_line", f"the history is torn after line {broken} (cut inside); read up to there")
        )
    if not count:
        raise TokenAxisError(
            "has an empty log_history: no rows", remedy="give the trainer_state.json of the last checkpoint"
        )
    log = records.log(NAME, notices)
    log.facts += _facts(text, start.start(), end)
    interval = next((value for key, value, _, _ in log.facts if key == "train_loss_interval_steps"), None)
    log.means["train_loss"] = IntervalMean(interval, counted_after=True)
    return log


def _elements(text: str, position: int) -> Iterator[tuple[int, dict[str, Any], int]]:
    """(1-based line, record, end) of each object of the list that begins at `position`, up to what is no object."""
    decoder = json.JSONDecoder()
    line, counted = text.count("\n", 0, position) + 1, position
    while True:
        while position < len(text) and text[position] in " \t\r\n,":
            position += 1
        if position >= len(text) or text[position] != "{":
            return
        try:
            record, end = decoder.raw_decode(text, position)
        except (ValueError, RecursionError):
            return
        line += text.count("\n", counted, position)
        counted = position
        yield line, record, end
        position = end


def _facts(text: str, start: int, end: int) -> list[Fact]:
    """Facts beside the history: the keys around it are plain numbers."""
    around = text[:start] + text[end:]
    facts: list[Fact] = []
    for name, key in (("max_steps", "planned_steps"), ("logging_steps", "train_loss_interval_steps")):
        match = re.search(rf'"{name}"\s*:\s*(\d{{1,15}})(?![\d.])', around)
        if match is not None and int(match.group(1)) > 0:
            facts.append((key, int(match.group(1)), "emitted", f"{name} beside log_history"))
    return facts


READER = Reader(NAME, "trainer_state.json of the Hugging Face Trainer", sniff, read)
