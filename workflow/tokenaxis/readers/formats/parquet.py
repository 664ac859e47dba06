"""Parquet histories, such as those that Weights & Biases keeps of a run: a row a log call, names by any alias."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tokenaxis.declarations import Declaration
from tokenaxis.errors import Notice, TokenAxisError
from tokenaxis.readers import naming, remedies
from tokenaxis.readers.base import RawLog, Reader, Sample
from tokenaxis.readers.table.finish import finish
from tokenaxis.readers.table.parsed import Parsed

if TYPE_CHECKING:
    import numpy as np
    import pyarrow as pa

NAME = "parquet"
_MAGIC = b"PAR1"


def sniff(sample: Sample) -> int:
    """Confident when the footer, which holds the column names, mentions a loss and a step."""
    if not sample.head.startswith(_MAGIC):
        return 0
    footer = sample.tail or sample.head
    if sample.columns:
        return 70
    return 70 if b"loss" in footer and (b"step" in footer or b"iter" in footer) else 0


def read(path: str, declaration: Declaration) -> RawLog:
    """Read a history.

    Raises:
        TokenAxisError: it is damaged, or has no step or loss.
    """
    import numpy as np

    table, found = _table(path, declaration)
    rows = table.num_rows
    if not rows:
        raise TokenAxisError("has no row: no data")
    parsed = Parsed({}, np.arange(1, rows + 1, dtype=np.int64))
    for source in found.sources:
        values, nan, inf = _numbers(table.column(source.name))
        parsed.values[source.index] = values
        kinds = {kind: where for kind, where in (("nan", nan), ("inf", inf)) if len(where)}
        if kinds:
            parsed.unusable[source.index] = kinds
    _drop_rows_without_values(parsed, found)
    return finish(parsed, found, NAME, declaration.tokens_per_step)


def _table(path: str, declaration: Declaration) -> tuple[pa.Table, naming.Naming]:
    import pyarrow as pa
    from pyarrow._parquet import ParquetReader

    try:
        reader = ParquetReader()
        reader.open(path, use_memory_map=True)
        names = [reader.schema_arrow.field(index).name for index in range(len(reader.schema_arrow.names))]
        found = naming.resolve(names, declaration.columns)
        found.kind = None
        if not found.has_step(declaration.tokens_per_step):
            raise remedies.missing_column("step", names, declaration.columns)
        if not found.has_loss():
            raise remedies.missing_column("train_loss", names, declaration.columns)
        wanted = {source.name for source in found.sources}
        paths = [reader.metadata.row_group(0).column(i).path_in_schema for i in range(reader.metadata.num_columns)]
        indices = [index for index, name in enumerate(paths) if name in wanted]
        return reader.read_all(column_indices=indices, use_threads=False), found
    except (pa.ArrowException, OSError, IndexError, ValueError) as error:
        raise TokenAxisError(
            f"is a damaged Parquet file ({type(error).__name__})", remedy="copy the file again"
        ) from None


def _numbers(column: pa.ChunkedArray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """float64 values with NaN for nulls and for what is no finite number, and the rows of NaN and infinity."""
    import numpy as np
    import pyarrow as pa

    try:
        column = column.cast(pa.float64())
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
        return np.full(len(column), np.nan), np.empty(0, np.int64), np.empty(0, np.int64)
    parts, blanks = [], []
    for chunk in column.chunks:
        validity, buffer = chunk.buffers()
        parts.append(np.frombuffer(buffer, np.float64)[chunk.offset : chunk.offset + len(chunk)])
        blank = np.zeros(len(chunk), bool)
        if chunk.null_count:
            bits = np.unpackbits(np.frombuffer(validity, np.uint8), bitorder="little")
            blank = bits[chunk.offset : chunk.offset + len(chunk)] == 0
        blanks.append(blank)
    values, blank = np.concatenate(parts), np.concatenate(blanks)
    nan, inf = np.isnan(values) & ~blank, np.isinf(values) & ~blank
    return np.where(blank | inf, np.nan, values), np.flatnonzero(nan), np.flatnonzero(inf)


def _drop_rows_without_values(parsed: Parsed, found: naming.Naming) -> None:
    """Rows of other metrics (system statistics) are no rows of the log."""
    import numpy as np

    losses = [s.index for name in ("train_loss", "val_loss") for g in found.candidates.get(name, []) for s in g]
    keep = np.zeros(len(parsed.lines), bool)
    for index in losses:
        keep |= ~np.isnan(parsed.values[index])
        for rows in parsed.unusable.get(index, {}).values():
            keep[rows] = True
    if keep.all():
        return
    new_row = np.cumsum(keep) - 1
    parsed.values = {index: values[keep] for index, values in parsed.values.items()}
    parsed.unusable = {
        index: {kind: new_row[rows[keep[rows]]] for kind, rows in kinds.items() if keep[rows].any()}
        for index, kinds in parsed.unusable.items()
    }
    message = f"{int((~keep).sum()):,} rows without a loss were passed over"
    parsed.notices.append(Notice("records_passed", message))
    parsed.lines = parsed.lines[keep]


READER = Reader(NAME, "Parquet histories (Weights & Biases and others)", sniff, read)
