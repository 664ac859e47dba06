"""numpy <-> Arrow by buffers.

`pa.array`, `pa.table` and `.to_numpy()` import pandas on their first call (0.3 s in every job); buffers do not.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

if TYPE_CHECKING:
    from collections.abc import Mapping

_TYPES = {"int64": pa.int64(), "int32": pa.int32(), "float64": pa.float64()}


def array(values: np.ndarray) -> pa.Array:
    """A one-dimensional int32, int64 or float64 array as Arrow, without a copy; NaN becomes null."""
    values = np.ascontiguousarray(values)
    validity = None
    if values.dtype == np.float64:
        missing = np.isnan(values)
        if missing.any():
            validity = pa.py_buffer(np.packbits(~missing, bitorder="little"))
            values = np.where(missing, 0.0, values)  # the bytes under a null must not depend on which NaN it was
    return pa.Array.from_buffers(_TYPES[values.dtype.name], len(values), [validity, pa.py_buffer(values)])


def table(columns: Mapping[str, np.ndarray]) -> pa.Table:
    """{name: array (rows,)} as an Arrow table, in the mapping's order."""
    return pa.Table.from_arrays([array(values) for values in columns.values()], names=list(columns))


def numpy_column(column: pa.ChunkedArray) -> np.ndarray:
    """A numeric column as numpy; nulls of float columns become NaN. Integer columns must hold no null."""
    parts = [_numpy_chunk(chunk) for chunk in column.chunks]
    if not parts:
        return np.empty(0, np.dtype(str(column.type).replace("double", "float64")))
    return parts[0] if len(parts) == 1 else np.concatenate(parts)


def _numpy_chunk(chunk: pa.Array) -> np.ndarray:
    if chunk.null_count == 0:
        return np.from_dlpack(chunk)
    validity, data = chunk.buffers()
    values = np.frombuffer(data, np.float64)[chunk.offset : chunk.offset + len(chunk)]
    bits = np.unpackbits(np.frombuffer(validity, np.uint8), bitorder="little")
    return np.where(bits[chunk.offset : chunk.offset + len(chunk)].astype(bool), values, np.nan)
