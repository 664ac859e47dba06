"""Well-formed JSON lines at the speed of pyarrow.json. Whatever is not well-formed is left to the slow way."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tokenaxis.readers import naming
from tokenaxis.readers.records import LOSS_ROLES, SUMMARY_KEYS, VALUE_ROLES, passed_notice
from tokenaxis.readers.table.parsed import Parsed

if TYPE_CHECKING:
    import numpy as np
    import pyarrow as pa

#: bytes from which the fast way pays: a small file is read before pyarrow.json is imported
WORTH = 1 << 18
_THREADS_FROM = 4 << 20
#: how deep objects inside a record are followed; as records.flatten
_DEPTH = 4


#: literals of Python's json that are none of JSON's, as values; numbers that no log holds stand for them. (Inside text
#: the replacement changes only the text, which is not looked at.)
_NAN_LITERAL = re.compile(rb"NaN(?=[ \t]*[,}\]\r])")
_INFINITY_LITERAL = re.compile(rb"Infinity(?=[ \t]*[,}\]\r])")
_NAN, _INFINITY = 1.6e308, 1.7e308


@dataclass
class _Column:
    """A number column: values (NaN: absent or unusable), where it holds something, and kind -> unusable rows."""

    name: str
    values: np.ndarray
    present: np.ndarray
    unusable: dict[str, np.ndarray]
    start: int = 0


def parse(blocks: Iterable[bytes], declared: Mapping[str, str]) -> tuple[Parsed, naming.Naming, int] | None:
    """Parse lines that are each one object with numbers under the keys that matter.

    Args:
        blocks: whole lines, one or many to a block, each with its line end.
        declared: canonical name -> the log's own key.

    Returns:
        columns, what they stand for, and the number of lines; None when these are not well-formed: nothing is guessed.
    """
    import numpy as np

    pieces: dict[str, list[_Column]] = {}
    summaries: list[np.ndarray] = []
    rows = 0
    for block in blocks:
        found = _block(block, rows, declared)
        if found is None:
            return None
        columns, summary = found
        for column in columns:
            pieces.setdefault(column.name, []).append(column)
        summaries.append(summary)
        rows += len(summary)
    if not rows:
        return None
    joined = [_joined(name, pieces.pop(name), rows) for name in list(pieces)]
    finished = _finish(joined, np.concatenate(summaries), declared)
    return None if finished is None else (*finished, rows)


def _block(data: bytes, start: int, declared: Mapping[str, str]) -> tuple[list[_Column], np.ndarray] | None:
    """The columns of some lines, and which of them are summaries; `start` rows come before them."""
    import numpy as np

    lines = data.count(b"\n")
    if b"NaN" in data:
        data = _NAN_LITERAL.sub(b"1.6e308", data)
    if b"Infinity" in data:
        data = _INFINITY_LITERAL.sub(b"1.7e308", data)
    table = _read(data)
    if table is None or table.num_rows != lines:
        return None
    columns: list[_Column] = []
    summary = np.zeros(lines, bool)
    try:
        for name, chunks in _leaves(table):
            if name in SUMMARY_KEYS:
                summary |= np.concatenate([~_blank(piece) for piece in chunks])
            role = naming.role(name, declared)
            if role is None or all(piece.null_count == len(piece) for piece in chunks):
                continue
            column = None if role == "kind" else _numbers(name, chunks)
            if column is None:
                return None
            column.start = start
            columns.append(column)
    except UnicodeDecodeError:
        # a key that is no UTF-8
        return None
    return columns, summary


def _joined(name: str, pieces: list[_Column], rows: int) -> _Column:
    """A column of all blocks; the pieces are given up as they are copied."""
    import numpy as np

    if len(pieces) == 1 and len(pieces[0].values) == rows:
        return pieces[0]
    whole = _Column(name, np.full(rows, np.nan), np.zeros(rows, bool), {})
    kinds: dict[str, list[np.ndarray]] = {}
    while pieces:
        piece = pieces.pop(0)
        end = piece.start + len(piece.values)
        whole.values[piece.start : end] = piece.values
        whole.present[piece.start : end] = piece.present
        for kind, at in piece.unusable.items():
            kinds.setdefault(kind, []).append(at + piece.start)
    whole.unusable = {kind: np.concatenate(parts) for kind, parts in kinds.items()}
    return whole


def _finish(
    columns: list[_Column], summary: np.ndarray, declared: Mapping[str, str]
) -> tuple[Parsed, naming.Naming] | None:
    import numpy as np

    names = [column.name for column in columns]
    if any(own not in names for own in declared.values()):
        return None
    found = naming.resolve(names, declared)
    if not (found.has_step() and found.has_loss()):
        return None
    has = {
        "step": np.zeros(len(summary), bool),
        "loss": np.zeros(len(summary), bool),
        "value": np.zeros(len(summary), bool),
    }
    for column in columns:
        role = naming.role(column.name, declared)
        if role == "step":
            has["step"] |= column.present
        if role in LOSS_ROLES:
            has["loss"] |= column.present
        if role in VALUE_ROLES:
            has["value"] |= column.present
    passed = ~summary & ((~has["step"] & ~has["loss"]) | (has["step"] & ~has["value"]))
    keep = np.flatnonzero(~summary & ~passed)
    parsed = Parsed({}, keep + 1)
    for source in found.sources:
        column = columns[source.index]
        parsed.values[source.index] = column.values if len(keep) == len(summary) else column.values[keep]
        kinds = {kind: np.flatnonzero(np.isin(keep, rows)) for kind, rows in column.unusable.items()}
        if kinds:
            parsed.unusable[source.index] = {kind: rows for kind, rows in kinds.items() if len(rows)}
    notice = passed_notice(int(passed.sum()), int(summary.sum()), "record")
    parsed.notices += [] if notice is None else [notice]
    return parsed, found


def _read(data: bytes) -> pa.Table | None:
    import pyarrow as pa
    from pyarrow import json

    options = json.ReadOptions(use_threads=len(data) >= _THREADS_FROM)
    try:
        # the system's memory pool: pyarrow's own keeps tens of MB that a small log never needs
        return json.read_json(pa.BufferReader(data), read_options=options, memory_pool=pa.system_memory_pool())
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
        return None


def _leaves(table: pa.Table) -> Iterator[tuple[str, list[pa.Array]]]:
    """(key, chunks) of each leaf; keys of objects inside a record are joined by dots."""
    import pyarrow as pa

    waiting = [(name, table.column(name).chunks, 0) for name in table.column_names]
    while waiting:
        name, pieces, depth = waiting.pop(0)
        kind = pieces[0].type if pieces else None
        if kind is not None and pa.types.is_struct(kind):
            if depth < _DEPTH:
                inner = [(f"{name}.{kind.field(i).name}", [piece.field(i) for piece in pieces], depth + 1)
                         for i in range(kind.num_fields)]  # fmt: skip
                waiting = inner + waiting
        elif kind is not None and not pa.types.is_list(kind):
            yield name, pieces


def _blank(piece: pa.Array) -> np.ndarray:
    """Where an array is null."""
    import numpy as np

    validity = piece.buffers()[0]
    if piece.null_count == 0 or validity is None:
        return np.full(len(piece), piece.null_count > 0)
    bits = np.unpackbits(np.frombuffer(validity, np.uint8), bitorder="little")
    return bits[piece.offset : piece.offset + len(piece)] == 0


def _numbers(name: str, pieces: list[pa.Array]) -> _Column | None:
    """A column of integers or floats; None for any other type, and for what is not finite."""
    import numpy as np
    import pyarrow as pa

    parts, blanks = [], []
    for piece in pieces:
        if pa.types.is_int64(piece.type):
            raw = np.frombuffer(piece.buffers()[1], np.int64)
        elif pa.types.is_float64(piece.type):
            raw = np.frombuffer(piece.buffers()[1], np.float64)
        else:
            return None
        parts.append(raw[piece.offset : piece.offset + len(piece)].astype(np.float64))
        blanks.append(_blank(piece))
    values, blank = np.concatenate(parts), np.concatenate(blanks)
    values[blank] = np.nan
    if not np.isfinite(values[~blank]).all():
        return None
    kinds = {kind: np.flatnonzero(np.abs(values) == mark) for kind, mark in (("nan", _NAN), ("inf", _INFINITY))}
    kinds = {kind: rows for kind, rows in kinds.items() if len(rows)}
    for rows in kinds.values():
        values[rows] = np.nan
    return _Column(name, values, ~blank, kinds)
