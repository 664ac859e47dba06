"""Tables as csv and parquet, byte by byte the same for the same rows."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from tokenaxis.comparison.tables import Table
from tokenaxis.errors import printable

if TYPE_CHECKING:
    import pyarrow as pa

#: a spreadsheet takes a cell that begins with one of these for a formula (OWASP, "CSV Injection")
FORMULA_STARTS = ("=", "+", "-", "@", "\t", "\r", "\n")


def csv_bytes(table: Table, columns: Sequence[list[Any]] | None = None) -> bytes:
    """UTF-8, comma-separated, a header line, LF line ends; blank for null; numbers so that they read back the same.

    `columns`: `table.columns()`, if they are at hand.
    """
    texts = [_cells(column) for column in (table.columns() if columns is None else columns)]
    if len(texts) == 1:  # an empty line would be no row
        texts = [[text or '""' for text in texts[0]]]
    lines = [",".join(csv_field(field.name) for field in table.fields)]
    lines += map(",".join, zip(*texts, strict=True))
    return ("\n".join(lines) + "\n").encode("utf-8")


def csv_text(value: str) -> str:
    """Text on one line; an apostrophe before what a spreadsheet would run as a formula."""
    return ("'" if value.startswith(FORMULA_STARTS) else "") + printable(value)


def csv_field(value: str) -> str:
    """`csv_text`, in quotation marks where a comma or a quotation mark is in it (RFC 4180)."""
    text = csv_text(value)
    return '"' + text.replace('"', '""') + '"' if "," in text or '"' in text else text


def _cells(column: list[Any]) -> list[str]:
    known: dict[str, str] = {}
    texts = []
    for value in column:
        if type(value) is float:
            texts.append(repr(value) if value == value else "")  # not equal to itself: NaN
        elif type(value) is str:
            if value not in known:
                known[value] = csv_field(value)
            texts.append(known[value])
        else:
            texts.append(_cell(value))
    return texts


def _cell(value: Any) -> str:
    if value is None or (isinstance(value, float) and math.isnan(value)):
        return ""
    if isinstance(value, bool):
        return "true" if value else "false"
    return repr(value)


def parquet_bytes(table: Table, columns: Sequence[list[Any]] | None = None) -> bytes:
    """Parquet with the field's meaning in its metadata (key `about`); numbers are float64, integers int64.

    `columns`: `table.columns()`, if they are at hand.
    """
    import pyarrow as pa
    from pyarrow._parquet import ParquetWriter  # pyarrow.parquet, as pyarrow.array, would import pandas

    arrays, fields = [], []
    for field, column in zip(table.fields, table.columns() if columns is None else columns, strict=True):
        array = _ARRAYS[field.kind](column)
        arrays.append(array)
        fields.append(pa.field(printable(field.name), array.type, metadata={"about": field.about}))
    whole = pa.Table.from_arrays(arrays, schema=pa.schema(fields))
    sink = pa.BufferOutputStream()
    writer = ParquetWriter(
        sink, whole.schema, compression="zstd", version="2.6", writer_engine_version="V2", store_schema=True
    )
    writer.write_table(whole, row_group_size=max(whole.num_rows, 1))
    writer.close()
    return sink.getvalue().to_pybytes()


def _buffers(known: Sequence[bool]) -> tuple[int, pa.Buffer | None]:
    """(rows, validity bits); no bits where nothing is missing."""
    import numpy as np
    import pyarrow as pa

    if all(known):
        return len(known), None
    return len(known), pa.py_buffer(np.packbits(np.array(known, dtype=bool), bitorder="little"))


def _texts(column: list[Any]) -> pa.Array:
    import numpy as np
    import pyarrow as pa

    rows, validity = _buffers([value is not None for value in column])
    contents = [b"" if value is None else printable(str(value)).encode("utf-8") for value in column]
    ends = np.zeros(rows + 1, dtype=np.int32)
    np.cumsum([len(content) for content in contents], out=ends[1:])
    buffers = [validity, pa.py_buffer(ends), pa.py_buffer(b"".join(contents))]
    return pa.Array.from_buffers(pa.string(), rows, buffers)


def _numbers(column: list[Any]) -> pa.Array:
    import numpy as np
    import pyarrow as pa

    values = np.array([np.nan if value is None else value for value in column], dtype=np.float64)
    finite = np.isfinite(values)
    rows, validity = _buffers(finite.tolist())
    return pa.Array.from_buffers(pa.float64(), rows, [validity, pa.py_buffer(np.where(finite, values, 0.0))])


def _integers(column: list[Any]) -> pa.Array:
    import numpy as np
    import pyarrow as pa

    rows, validity = _buffers([value is not None for value in column])
    values = np.array([0 if value is None else int(value) for value in column], dtype=np.int64)
    return pa.Array.from_buffers(pa.int64(), rows, [validity, pa.py_buffer(values)])


def _flags(column: list[Any]) -> pa.Array:
    import numpy as np
    import pyarrow as pa

    rows, validity = _buffers([value is not None for value in column])
    bits = np.packbits(np.array([bool(value) for value in column], dtype=bool), bitorder="little")
    return pa.Array.from_buffers(pa.bool_(), rows, [validity, pa.py_buffer(bits)])


_ARRAYS = {"text": _texts, "number": _numbers, "integer": _integers, "flag": _flags}
