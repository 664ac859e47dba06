"""JSON lines: one object a line, keys under any known alias, also inside nested objects (`train.loss`).

Reads LLaMA-Factory's trainer_log.jsonl, OLMo-, levanter-, torchtune- and litgpt-style logs and home-made ones.
"""

from __future__ import annotations

import io
import json
import re

from tokenaxis.declarations import Declaration
from tokenaxis.errors import Notice, TokenAxisError
from tokenaxis.readers import naming
from tokenaxis.readers.base import RawLog, Reader, Sample
from tokenaxis.readers.content import read_content
from tokenaxis.readers.records import Records

NAME = "jsonl"
_KEY = re.compile(rb'"((?:[^"\\]|\\.){1,80})"\s*:')
_STARTS = (b"{",)
#: lines at the top that are looked at
_LOOK = 40


def _keys(head: bytes) -> set[str]:
    """Every key of the first lines that begin an object, nested ones by their last part."""
    keys: set[str] = set()
    for line in head.split(b"\n")[:_LOOK]:
        if line.lstrip().startswith(_STARTS):
            keys.update(key.decode("utf-8", "replace") for key in _KEY.findall(line))
    return keys


def _objects(head: bytes) -> int:
    """Lines of the head that are whole objects."""
    return sum(1 for line in head.split(b"\n")[:_LOOK] if line[:1] == b"{" and line.rstrip().endswith(b"}"))


def sniff(sample: Sample) -> int:
    """Confident when lines are objects whose keys name a step and a loss."""
    head = sample.head.lstrip()
    if head[:1] != b"{" or not _objects(head):
        return 0
    roles = {naming.role(key, sample.columns) for key in _keys(head)}
    losses = roles & {"train_loss", "val_loss"}
    if not losses and sample.tail:
        # an evaluation or a header record may fill the head
        losses = {naming.role(key, sample.columns) for key in _keys(sample.tail)} & {"train_loss", "val_loss"}
    return 75 if "step" in roles and losses else 0


def lacks(sample: Sample) -> TokenAxisError | None:
    """What is missing in lines of objects that name only a step or only a loss."""
    head = sample.head.lstrip()
    if head[:1] != b"{" or not _objects(head):
        return None
    keys = _keys(head)
    roles = {naming.role(key, sample.columns) for key in keys}
    if "step" in roles and not roles & {"train_loss", "val_loss"} and re.search(r"\.(jsonl|ndjson)(\.gz)?$", sample.name):
        return naming.missing_column("train_loss", sorted(keys))
    if "step" not in roles and roles & {"train_loss", "val_loss"}:
        return naming.missing_column("step", sorted(keys))
    return None


def read(path: str, declaration: Declaration) -> RawLog:
    """Read a log of JSON lines.

    Raises:
        TokenAxisError: no record has a step and a loss.
    """
    content = read_content(path)
    records = Records(declaration.columns)
    decode = json.JSONDecoder().decode
    ends_whole = content.data.endswith(b"\n")
    line, bad_last = 0, False
    for line, raw in enumerate(io.BytesIO(content.data), 1):
        text = raw.strip(b" \t\r\n\0,")
        if not text:
            continue
        bad_last = False
        try:
            record = decode(text.decode("utf-8", "replace"))
        except (ValueError, RecursionError):
            # comments, brackets of a list written line by line
            if text[:1] not in (b"#", b"/") and text not in (b"[", b"]"):
                records.bad_lines.append(line)
                bad_last = True
            continue
        if isinstance(record, dict):
            records.add(line, record)
        else:
            records.bad_lines.append(line)
    notices = list(content.notices)
    if bad_last and not ends_whole:
        notices.append(Notice("torn_last_line", f"line {line}, the last, is torn (cut inside); left out"))
    middle = len(records.bad_lines) - (1 if bad_last and not ends_whole else 0)
    if middle:
        shown = ", ".join(str(bad) for bad in records.bad_lines[:5])
        notices.append(Notice("not_json", f"{middle} lines are no JSON object and were left out (lines {shown})"))
    return records.log(NAME, notices)


READER = Reader(NAME, "JSON lines whose keys name a step and a loss (LLaMA-Factory, OLMo, litgpt, ...)", sniff, read, lacks)
