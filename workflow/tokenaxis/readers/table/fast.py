"""Well-formed tables at the speed of pyarrow.csv. Whatever is not well-formed is left to the slow way."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tokenaxis.readers.naming import KINDS, Naming
from tokenaxis.readers.table.dialect import Dialect
from tokenaxis.readers.table.parsed import KIND_CODES, Parsed

if TYPE_CHECKING:
    import numpy as np
    import pyarrow as pa

#: bytes from which a second thread is worth its start
_THREADS_FROM = 8 << 20
_BLANKS = ["", "None", "none", "null", "NULL", "Null", "NA", "N/A", "n/a", "-"]


def parse(body: memoryview, newlines: int, dialect: Dialect, naming: Naming) -> Parsed | None:
    """Parse a table's body if it is well-formed: exactly one row a line, only numbers or blanks in the columns read.

    Args:
        body: everything after the header line; every line ends in a line end, the last may not.
        newlines: number of lines in it.
        dialect: how it is written.
        naming: the columns to read.

    Returns:
        None when it is not well-formed; nothing is guessed.
    """
    import numpy as np

    if dialect.delimiter == " " or newlines == 0:
        return None
    table = _read(body, dialect, naming)
    if table is None or table.num_rows != newlines:
        return None
    values, unusable = {}, {}
    for source in naming.sources:
        column, kinds = _column(table.column(str(source.index)))
        values[source.index] = column
        if kinds:
            unusable[source.index] = kinds
    first = dialect.header_line + 1
    lines = np.arange(first, first + newlines, dtype=np.int64)
    codes = None if naming.kind is None else _kind_codes(table.column(str(naming.kind.index)))
    return Parsed(values, lines, unusable, codes)


def _read(body: memoryview, dialect: Dialect, naming: Naming) -> pa.Table | None:
    import pyarrow as pa
    from pyarrow import csv

    wanted = [str(source.index) for source in naming.sources]
    types = dict.fromkeys(wanted, pa.float64())
    if naming.kind is not None:
        wanted.append(str(naming.kind.index))
        types[wanted[-1]] = pa.dictionary(pa.int32(), pa.string())
    threads = len(body) >= _THREADS_FROM
    try:
        return csv.read_csv(
            pa.BufferReader(pa.py_buffer(body)),
            read_options=csv.ReadOptions(
                use_threads=threads, column_names=[str(index) for index in range(len(dialect.names))]
            ),
            parse_options=csv.ParseOptions(delimiter=dialect.delimiter),
            convert_options=csv.ConvertOptions(
                include_columns=wanted,
                column_types=types,
                null_values=_BLANKS,
                decimal_point="," if dialect.decimal_comma else ".",
            ),
        )
    except (pa.ArrowInvalid, pa.ArrowKeyError, pa.ArrowNotImplementedError):
        return None


def _column(column: pa.ChunkedArray) -> tuple[np.ndarray, dict[str, np.ndarray]]:
    """Values with NaN for what is no finite number, and the rows of those that are not merely blank."""
    import numpy as np

    parts, blanks = [], []
    for chunk in column.chunks:
        validity, buffer = chunk.buffers()
        here = np.frombuffer(buffer, np.float64)[chunk.offset : chunk.offset + len(chunk)]
        parts.append(here)
        if chunk.null_count:
            bits = np.unpackbits(np.frombuffer(validity, np.uint8), bitorder="little")
            blanks.append(bits[chunk.offset : chunk.offset + len(chunk)] == 0)
        else:
            blanks.append(None)
    values = parts[0] if len(parts) == 1 else np.concatenate(parts)
    blank = None
    if any(mask is not None for mask in blanks):
        sized = [np.zeros(len(part), bool) if mask is None else mask for part, mask in zip(parts, blanks, strict=True)]
        blank = np.concatenate(sized)
        values = np.where(blank, 0.0, values)
    finite = np.isfinite(values)
    kinds = {}
    if not finite.all():
        nan = np.isnan(values)
        kinds = {"nan": np.flatnonzero(nan), "inf": np.flatnonzero(~finite & ~nan)}
        values = np.where(finite, values, np.nan)
    if blank is not None:
        values = np.where(blank, np.nan, values)
    return values, {kind: rows for kind, rows in kinds.items() if len(rows)}


def _kind_codes(column: pa.ChunkedArray) -> np.ndarray:
    import numpy as np

    parts = []
    for chunk in column.chunks:
        words = chunk.dictionary.to_pylist()
        codes = np.array([KIND_CODES.get(KINDS.get(str(word).strip().lower(), ""), 0) for word in words] + [0], np.int8)
        indices = chunk.indices
        where = np.frombuffer(indices.buffers()[1], np.int32)[indices.offset : indices.offset + len(indices)]
        parts.append(codes[where] if chunk.null_count == 0 else np.where(_valid(indices), codes[where], 0))
    return np.concatenate(parts)


def _valid(array: pa.Array) -> np.ndarray:
    import numpy as np

    bits = np.unpackbits(np.frombuffer(array.buffers()[0], np.uint8), bitorder="little")
    return bits[array.offset : array.offset + len(array)] == 1
