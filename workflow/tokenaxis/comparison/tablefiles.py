"""Tables as csv and parquet, byte by byte the same for the same rows."""

from __future__ import annotations

import csv
import io
import math
from typing import Any

from tokenaxis.comparison.tables import Table
from tokenaxis.errors import printable

#: a spreadsheet takes a cell that begins with one of these for a formula (OWASP, "CSV Injection")
FORMULA_STARTS = ("=", "+", "-", "@", "\t", "\r", "\n")


def csv_bytes(table: Table) -> bytes:
    """UTF-8, comma-separated, a header line, LF line ends; blank for null; numbers so that they read back the same."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow([csv_text(field.name) for field in table.fields])
    writer.writerows([[_cell(row[field.name]) for field in table.fields] for row in table.rows])
    return text.getvalue().encode("utf-8")


def csv_text(value: str) -> str:
    """Text on one line; an apostrophe before what a spreadsheet would run as a formula."""
    return ("'" if value.startswith(FORMULA_STARTS) else "") + printable(value)


def _cell(value: Any) -> str:
    if value is None or (isinstance(value, float) and math.isnan(value)):
        return ""
    if isinstance(value, str):
        return csv_text(value)
    if isinstance(value, bool):
        return "true" if value else "false"
    return repr(value)


def parquet_bytes(table: Table) -> bytes:
    """Parquet with the field's meaning in its metadata (key `about`); numbers are float64, integers int64."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    kinds = {"text": (pa.string(), _text), "number": (pa.float64(), _number), "integer": (pa.int64(), _integer)}
    kinds["flag"] = (pa.bool_(), lambda value: value)
    arrays, fields = [], []
    for field in table.fields:
        kind, convert = kinds[field.kind]
        arrays.append(pa.array([convert(row[field.name]) for row in table.rows], kind))
        fields.append(pa.field(printable(field.name), kind, metadata={"about": field.about}))
    sink = io.BytesIO()
    pq.write_table(pa.Table.from_arrays(arrays, schema=pa.schema(fields)), sink, compression="zstd")
    return sink.getvalue()


def _text(value: Any) -> str | None:
    return None if value is None else printable(str(value))


def _number(value: Any) -> float | None:
    return None if value is None or not math.isfinite(value) else float(value)


def _integer(value: Any) -> int | None:
    return None if value is None else int(value)
