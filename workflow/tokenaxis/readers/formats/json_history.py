"""JSON documents that hold a history: a list of records, columns of equal length, or Megatron's golden values.

`[{"step": 0, "loss": 4.0}, ...]`, `{"step": [0, ...], "loss": [4.0, ...]}`, the same one level down
(`{"history": [...]}`), and `{"lm loss": {"start_step": 1, "step_interval": 5, "values": [...]}}`.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

from tokenaxis.declarations import Declaration
from tokenaxis.errors import TokenAxisError
from tokenaxis.readers import naming
from tokenaxis.readers.base import RawLog, Reader, Sample
from tokenaxis.readers.content import read_content
from tokenaxis.readers.records import Records

NAME = "json-history"
_KEY = re.compile(rb'"((?:[^"\\]|\\.){1,80})"\s*:')
#: a key whose value is a list of numbers; the beginning of a record inside a list
_COLUMN = re.compile(rb'"((?:[^"\\]|\\.){1,80})"\s*:\s*\[\s*[-\d]')
_RECORD = re.compile(rb"(?:\[|\},)\s*(\{[^\[\]{}]{1,1000})")
_GOLDEN = (b'"start_step"', b'"step_interval"', b'"values"')
#: names of Megatron's golden values -> canonical
_GOLDEN_NAMES = {
    "lm loss": "train_loss",
    "lm loss validation": "val_loss",
    "learning-rate": "lr",
    "grad-norm": "grad_norm",
}


def sniff(sample: Sample) -> int:
    """Confident when the head is a JSON document with records, or columns, that name a step and a loss."""
    head = sample.head.lstrip()
    if head[:1] not in (b"{", b"[") or b'"' not in head:
        return 0
    if all(mark in head for mark in _GOLDEN):
        return 80
    if not (b"oss" in head or sample.columns) or (head[:1] == b"{" and _is_json_lines(head)):
        return 0
    if _names_both(_COLUMN.findall(head), sample):
        return 60
    return 60 if any(_names_both(_KEY.findall(record), sample) for record in _RECORD.findall(head)) else 0


def _is_json_lines(head: bytes) -> bool:
    lines = head.split(b"\n", 2)
    return len(lines) > 1 and lines[0].rstrip().endswith(b"}") and lines[1][:1] == b"{"


def _names_both(keys: list[bytes], sample: Sample) -> bool:
    roles = {naming.role(key.decode("utf-8", "replace"), sample.columns) for key in keys}
    return "step" in roles and not roles.isdisjoint(("train_loss", "val_loss"))


def read(path: str, declaration: Declaration) -> RawLog:
    """Read a JSON document.

    Raises:
        TokenAxisError: it is no JSON, or holds no history with a step and a loss.
    """
    content = read_content(path)
    try:
        document = json.loads(content.data.decode("utf-8", "replace"))
    except (ValueError, RecursionError) as error:
        raise TokenAxisError(f"is no valid JSON ({error})", remedy="copy the file again") from None
    records = Records(declaration.columns)
    for line, record in _records(document):
        records.add(line, record)
    if not records.lines and not records.bad_lines and not records.passed:
        raise TokenAxisError("holds no history: no list of records and no columns of equal length")
    return records.log(NAME, list(content.notices))


def _records(document: Any) -> Iterator[tuple[int, dict[str, Any]]]:
    """(ordinal, record) of the history in a document; the ordinal stands for the line."""
    if isinstance(document, dict):
        golden = [(key, value) for key, value in document.items() if isinstance(value, dict) and "start_step" in value]
        if golden:
            yield from enumerate(_golden(golden), 1)
            return
        columns = {key: value for key, value in document.items() if isinstance(value, list)}
        if any(naming.role(key, {}) == "step" for key in columns):
            length = max(len(value) for value in columns.values())
            same = {key: value for key, value in columns.items() if len(value) == length}
            for row, cells in enumerate(zip(*same.values(), strict=True), 1):
                yield row, dict(zip(same, cells, strict=True))
            return
        lists = [value for value in document.values() if isinstance(value, list)]
        for value in [*lists, *(value for value in document.values() if isinstance(value, dict))]:
            inner = list(_records(value))
            if any(naming.role(key, {}) == "step" for _, record in inner for key in record):
                yield from inner
                return
    elif isinstance(document, list):
        yield from ((row, record) for row, record in enumerate(document, 1) if isinstance(record, dict))


def _golden(golden: list[tuple[str, dict[str, Any]]]) -> Iterator[dict[str, Any]]:
    """Records of Megatron's golden values: one value every step_interval from start_step on."""
    by_step: dict[int, dict[str, Any]] = {}
    for name, entry in golden:
        canonical = _GOLDEN_NAMES.get(name.lower())
        values = entry.get("values")
        try:
            start, interval = int(entry["start_step"]), int(entry.get("step_interval", 1))
            if isinstance(values, dict):
                items = [(int(step), value) for step, value in values.items()]
            else:
                items = [(start + interval * row, value) for row, value in enumerate(values or [])]
        except (TypeError, ValueError, OverflowError):
            continue
        if canonical is not None:
            for step, value in items:
                by_step.setdefault(step, {"step": step})[canonical] = value
    for step in sorted(by_step):
        yield by_step[step]


READER = Reader(NAME, "JSON documents with a history of losses, Megatron golden values among them", sniff, read)
