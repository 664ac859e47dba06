"""Well-formed JSON lines at the speed of pyarrow.json. Whatever is not well-formed is left to the slow way."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
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
_THREADS_FROM = 8 << 20
#: how deep objects inside a record are followed; as records.flatten
_DEPTH = 4


@dataclass
class _Column:
    """A number column: values with NaN where absent, and where it holds something."""

    name: str
    values: np.ndarray
    present: np.ndarray


def parse(data: bytes, declared: Mapping[str, str]) -> tuple[Parsed, naming.Naming] | None:
    """Parse lines that are each one object with numbers under the keys that matter.

    Args:
        data: whole lines, the last one with its line end.
        declared: canonical name -> the log's own key.

    Returns:
        None when they are not well-formed; nothing is guessed.
    """
    if b"NaN" in data or b"Infinity" in data:
        # not JSON to pyarrow, which would find out after reading all that comes before
        return None
    try:
        table = _read(data)
        if table is None or table.num_rows != data.count(b"\n"):
            return None
        return _parse(table, declared)
    except UnicodeDecodeError:
        # a key that is no UTF-8
        return None


def _parse(table: pa.Table, declared: Mapping[str, str]) -> tuple[Parsed, naming.Naming] | None:
    import numpy as np

    columns: list[_Column] = []
    summary = np.zeros(table.num_rows, bool)
    for name, pieces in _leaves(table):
        if name in SUMMARY_KEYS:
            summary |= np.concatenate([~_blank(piece) for piece in pieces])
        role = naming.role(name, declared)
        if role is None or all(piece.null_count == len(piece) for piece in pieces):
            continue
        column = None if role == "kind" else _numbers(name, pieces)
        if column is None:
            return None
        columns.append(column)
    return _finish(columns, summary, declared)


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
        parsed.values[source.index] = columns[source.index].values[keep]
    notice = passed_notice(int(passed.sum()), int(summary.sum()), "record")
    parsed.notices += [] if notice is None else [notice]
    return parsed, found


def _read(data: bytes) -> pa.Table | None:
    import pyarrow as pa
    from pyarrow import json

    options = json.ReadOptions(use_threads=len(data) >= _THREADS_FROM)
    try:
        return json.read_json(pa.BufferReader(data), read_options=options)
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
    return _Column(name, values, ~blank)
