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
from tokenaxis.readers import json_stream, naming, remedies
from tokenaxis.readers.base import RawLog, Reader, Sample
from tokenaxis.readers.content import Content, read_content
from tokenaxis.readers.records import Records
from tokenaxis.readers.table.finish import finish
from tokenaxis.readers.table.parsed import Parsed

NAME = "json-history"
_KEY = re.compile(rb'"((?:[^"\\]|\\.){1,80})"\s*:')
#: a key whose value is a list of numbers, or what pandas writes of a column; the beginning of a record inside a list
_COLUMN = re.compile(rb'"((?:[^"\\]|\\.){1,80})"\s*:\s*(?:\[|\{\s*"\d{1,9}"\s*:)\s*(?:null|NaN|[-\d])')
#: pandas' orient="split"
_SPLIT = re.compile(rb'"columns"\s*:\s*\[((?:\s*"(?:[^"\\]|\\.){1,80}"\s*,?)+)\]')
_QUOTED = re.compile(rb'"((?:[^"\\]|\\.){1,80})"')
#: names of files that are meant to be histories
_HISTORY_NAME = re.compile(r"loss|hist|metric|log|curve", re.IGNORECASE)
_NUMBERS = re.compile(rb"\[\s*(?:\[\s*)?-?\d+(?:\.\d+)?(?:[eE][-+]?\d+)?\s*,")
_RECORD = re.compile(rb"(?:\[|\},)\s*(\{[^\[\]{}]{1,1000})")
_AS_RECORDS = 'write records that name them, [{"step": 0, "train_loss": 10.9}, ...], or lists beside one of steps'
#: characters from which a document is not turned into objects as a whole
_LARGE = 1 << 20
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
    split = _SPLIT.search(head)
    if split is not None and b'"data"' in head + sample.tail and _names_both(_QUOTED.findall(split[1]), sample):
        return 60
    return 60 if any(_names_both(_KEY.findall(record), sample) for record in _RECORD.findall(head)) else 0


def _is_json_lines(head: bytes) -> bool:
    lines = head.split(b"\n", 2)
    return len(lines) > 1 and lines[0].rstrip().endswith(b"}") and lines[1][:1] == b"{"


def _names_both(keys: list[bytes], sample: Sample) -> bool:
    roles = {naming.role(key.decode("utf-8", "replace"), sample.columns) for key in keys}
    return "step" in roles and not roles.isdisjoint(("train_loss", "val_loss"))


def lacks(sample: Sample) -> TokenAxisError | None:
    """What is missing in a document that is called a history and holds lists of numbers."""
    head = sample.head.lstrip()
    if not sample.name.lower().endswith(".json") or _HISTORY_NAME.search(sample.name) is None or b"." not in head:
        return None
    if head[:1] == b"[" and _NUMBERS.match(head):
        return TokenAxisError("holds lists of numbers without names", remedy=_AS_RECORDS)
    if head[:1] != b"{":
        return None
    names = list(dict.fromkeys(key.decode("utf-8", "replace") for key in _COLUMN.findall(head)))
    roles = {naming.role(name, sample.columns) for name in names}
    losses = any(remedies.may_be_loss(name) for name in names)
    if "step" in roles and losses:
        return remedies.missing_column("train_loss", names, sample.columns)
    if losses:
        shown = ", ".join(repr(name) for name in names[:6])
        return TokenAxisError(f"holds losses without the steps they are of (its lists: {shown})", remedy=_AS_RECORDS)
    return None


def read(path: str, declaration: Declaration) -> RawLog:
    """Read a JSON document.

    Raises:
        TokenAxisError: it is no JSON, or holds no history with a step and a loss.
    """
    content = read_content(path)
    text = content.data.decode("utf-8", "replace")
    content.data = b""
    if len(text) >= _LARGE and (log := _read_curves(text, content, declaration)) is not None:
        return log
    records = Records(declaration.columns)
    pieces: Iterator[tuple[int, dict[str, Any]]]
    try:
        if text.lstrip()[:1] == "[":
            numbered = enumerate(json_stream.elements(text), 1)
            pieces = ((number, record) for number, record in numbered if isinstance(record, dict))
        else:
            pieces = _records(json.loads(text))
        for line, record in pieces:
            records.add(line, record)
    except (ValueError, RecursionError) as error:
        raise TokenAxisError(f"is no valid JSON ({error})", remedy="copy the file again") from None
    if not records.lines and not records.bad_lines and not records.passed:
        raise TokenAxisError("holds no history: no list of records and no columns of equal length")
    return records.log(NAME, list(content.notices))


def _read_curves(text: str, content: Content, declaration: Declaration) -> RawLog | None:
    """The log of a large document of lists of numbers; None where it is another."""
    import numpy as np

    curves = json_stream.curves(text)
    if not curves or not naming.names_a_step(list(curves)):
        return None
    rows = max(len(curve.values) for curve in curves.values())
    names = [name for name, curve in curves.items() if len(curve.values) == rows]
    found = naming.resolve(names, {key: own for key, own in declaration.columns.items() if own in names})
    if not (found.has_step() and found.has_loss()):
        return None
    parsed = Parsed({}, np.arange(1, rows + 1, dtype=np.int64))
    for source in found.sources:
        curve = curves[source.name]
        parsed.values[source.index] = np.frombuffer(curve.values, np.float64)
        kinds = {"nan": curve.nan, "inf": curve.inf}
        parsed.unusable[source.index] = {kind: np.array(places, np.int64) for kind, places in kinds.items() if places}
    parsed.notices = list(content.notices)
    return finish(parsed, found, NAME)


def _records(document: Any) -> Iterator[tuple[int, dict[str, Any]]]:
    """(ordinal, record) of the history in a document; the ordinal stands for the line."""
    if isinstance(document, dict):
        golden = [(key, value) for key, value in document.items() if isinstance(value, dict) and "start_step" in value]
        if golden:
            yield from enumerate(_golden(golden), 1)
            return
        if isinstance(document.get("columns"), list) and isinstance(document.get("data"), list):
            yield from _split(document["columns"], document["data"])
            return
        columns = {key: column for key, value in document.items() if (column := _cells(value)) is not None}
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


def _cells(value: Any) -> list[Any] | None:
    """A column's cells: a list, or what pandas writes of one, {"0": 4.0, "1": 3.9}."""
    if isinstance(value, list):
        return value
    if isinstance(value, dict) and value and all(key.isdigit() for key in value):
        return list(value.values())
    return None


def _split(names: list[Any], rows: list[Any]) -> Iterator[tuple[int, dict[str, Any]]]:
    """Rows of pandas' orient="split"."""
    for number, row in enumerate(rows, 1):
        if isinstance(row, list) and len(row) == len(names):
            yield number, dict(zip(map(str, names), row, strict=True))


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


READER = Reader(NAME, "JSON documents with a history of losses, Megatron golden values among them", sniff, read, lacks)
