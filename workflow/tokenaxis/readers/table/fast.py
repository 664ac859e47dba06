"""Well-formed tables at the speed of pyarrow.csv. Whatever is not well-formed is left to the slow way."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tokenaxis.readers.naming import KINDS, Naming
from tokenaxis.readers.table.body import Body
from tokenaxis.readers.table.dialect import Dialect
from tokenaxis.readers.table.parsed import KIND_CODES, Parsed

if TYPE_CHECKING:
    import numpy as np
    import pyarrow as pa

    #: (index of a source -> (values, kind -> unusable rows), codes of the `type` column, number of rows)
    _Found = tuple[dict[int, tuple[np.ndarray, dict[str, np.ndarray]]], np.ndarray | None, int]

#: bytes from which a second thread is worth its start
_LARGE = 16 << 20
#: bytes from which lines are counted first, so that columns need not be joined from batches: slower, half the memory
_HUGE = 64 << 20
_BLANKS = ["", "None", "none", "null", "NULL", "Null", "NA", "N/A", "n/a", "-"]


def parse(body: Body, dialect: Dialect, naming: Naming) -> Parsed | None:
    """Parse a table's body if it is well-formed: exactly one row a line, only numbers or blanks in the columns read.

    Args:
        body: everything after the header line.
        dialect: how it is written.
        naming: the columns to read.

    Returns:
        None when it is not well-formed; nothing is guessed.
    """
    import numpy as np
    import pyarrow as pa

    if dialect.delimiter == " " or body.size == 0:
        return None
    read = _streamed if body.size >= _HUGE else _at_once
    found, whole = None, _whole_columns(dialect, naming)
    # a later row may hold 12.0 where the first hold 12, so a second attempt takes every column for fractions
    attempts = (whole, frozenset[int]()) if whole else (whole,)
    for whole in attempts:
        try:
            found = read(body, dialect, naming, whole)
            break
        except (pa.ArrowInvalid, pa.ArrowKeyError, pa.ArrowNotImplementedError):
            continue
    if found is None:
        pa.system_memory_pool().release_unused()  # the slow way needs the room
        return None
    columns, codes, rows = found
    # blank lines are errors here, so rows are lines, unless a carriage return parts them or a quoted cell joins them
    if rows == 0 or (body.odd_ends and rows != body.lines):
        return None
    first = dialect.header_line + 1
    return Parsed(
        {index: values for index, (values, _) in columns.items()},
        np.arange(first, first + rows, dtype=np.int64),
        {index: kinds for index, (_, kinds) in columns.items() if kinds},
        codes,
        whole=whole,
    )


def _whole_columns(dialect: Dialect, naming: Naming) -> frozenset[int]:
    """The step, if its first cells are plain integers: it parses faster as such, and needs no check later."""
    groups = naming.candidates.get("step", [])
    rows = [row for row in dialect.rows if len(row) == len(dialect.names)]
    if len(groups) != 1 or len(groups[0]) != 1 or not rows:
        return frozenset()
    index = groups[0][0].index
    return frozenset((index,)) if all(row[index].isdecimal() for row in rows) else frozenset()


def _at_once(body: Body, dialect: Dialect, naming: Naming, whole: frozenset[int]) -> _Found:
    """All rows by pyarrow's parallel reader; each of its columns is given up once it was converted."""
    from pyarrow import csv

    table = csv.read_csv(body.arrow(), **_options(body, dialect, naming, whole))
    rows = table.num_rows
    waiting = {name: table.column(name) for name in table.column_names}
    del table
    codes = None if naming.kind is None else _kind_codes(waiting.pop(str(naming.kind.index)).chunks)
    pieces = {source.index: waiting.pop(str(source.index)).chunks for source in naming.sources}
    if body.size >= _LARGE:
        from concurrent.futures import ThreadPoolExecutor

        with ThreadPoolExecutor(2) as pool:
            return dict(zip(pieces, pool.map(_converted, pieces.values()), strict=True)), codes, rows
    return {index: _converted(chunks) for index, chunks in pieces.items()}, codes, rows


def _converted(chunks: list[pa.Array]) -> tuple[np.ndarray, dict[str, np.ndarray]]:
    """A column as numpy, its chunks given up as they are copied."""
    column = _Column(None)
    for chunk in chunks:
        column.add(chunk)
    chunks.clear()
    return column.taken()


def _streamed(body: Body, dialect: Dialect, naming: Naming, whole: frozenset[int]) -> _Found | None:
    """Rows batch by batch into columns whose length was counted first: slower, and no more memory than the columns."""
    import numpy as np
    from pyarrow import csv

    columns = {source.index: _Column(body.lines) for source in naming.sources}
    codes, rows = [], 0
    for batch in csv.open_csv(body.arrow(), **_options(body, dialect, naming, whole)):
        rows += batch.num_rows
        if rows > body.lines:
            return None
        for index, column in columns.items():
            column.add(batch.column(str(index)))
        if naming.kind is not None:
            codes.append(_kind_codes([batch.column(str(naming.kind.index))]))
    return {index: column.taken() for index, column in columns.items()}, np.concatenate(codes) if codes else None, rows


def _options(body: Body, dialect: Dialect, naming: Naming, whole: frozenset[int]) -> dict[str, Any]:
    import pyarrow as pa
    from pyarrow import csv

    wanted = [str(source.index) for source in naming.sources]
    types = {name: pa.int64() if int(name) in whole else pa.float64() for name in wanted}
    if naming.kind is not None:
        wanted.append(str(naming.kind.index))
        types[wanted[-1]] = pa.dictionary(pa.int32(), pa.string())
    names = [str(index) for index in range(len(dialect.names))]
    return {
        # pyarrow's own pool keeps 50 MB that a table of 10 MB never needs; the system's is not slower here
        "memory_pool": pa.system_memory_pool(),
        "read_options": csv.ReadOptions(use_threads=body.size >= _LARGE, column_names=names),
        "parse_options": csv.ParseOptions(delimiter=dialect.delimiter, ignore_empty_lines=False),
        "convert_options": csv.ConvertOptions(
            include_columns=wanted,
            column_types=types,
            null_values=_BLANKS,
            decimal_point="," if dialect.decimal_comma else ".",
        ),
    }


class _Column:
    """A number column that grows batch by batch: NaN for what is no finite number, and the rows of those not blank."""

    def __init__(self, room: int | None) -> None:
        import numpy as np

        self._whole = None if room is None else np.empty(room)
        self._rows = 0
        self._parts: list[np.ndarray] = []
        self._flagged: dict[str, list[np.ndarray]] = {}

    def add(self, piece: pa.Array) -> None:
        """Append one batch."""
        import numpy as np
        import pyarrow as pa

        start = self._rows
        validity, buffer = piece.buffers()
        whole = pa.types.is_int64(piece.type)
        cells = np.frombuffer(buffer, np.int64 if whole else np.float64)[piece.offset : piece.offset + len(piece)]
        blank = None
        if piece.null_count:
            bits = np.unpackbits(np.frombuffer(validity, np.uint8), bitorder="little")
            blank = bits[piece.offset : piece.offset + len(piece)] == 0
            cells = np.where(blank, 0.0, cells)
        finite = None if whole else np.isfinite(cells)
        if finite is not None and not finite.all():
            nan = np.isnan(cells)
            for kind, where in (("nan", nan), ("inf", ~finite & ~nan)):
                if where.any():
                    self._flagged.setdefault(kind, []).append(np.flatnonzero(where) + start)
            cells = np.where(finite, cells, np.nan)
        if blank is not None:
            cells = np.where(blank, np.nan, cells)
        self._rows += len(cells)
        if self._whole is None:
            self._parts.append(cells)
        else:
            self._whole[start : start + len(cells)] = cells

    def taken(self) -> tuple[np.ndarray, dict[str, np.ndarray]]:
        """The whole column, and kind -> rows of what is unusable; the batches are given up."""
        import numpy as np

        kinds = {kind: np.concatenate(rows) for kind, rows in self._flagged.items()}
        if self._whole is not None:
            return self._whole[: self._rows], kinds
        parts, self._parts = self._parts, []
        return np.concatenate(parts or [np.empty(0)], dtype=np.float64), kinds


def _kind_codes(pieces: list[pa.DictionaryArray]) -> np.ndarray:
    import numpy as np

    parts = [np.empty(0, np.int8)]
    for piece in pieces:
        words = piece.dictionary.to_pylist()
        codes = np.array([KIND_CODES.get(KINDS.get(str(word).strip().lower(), ""), 0) for word in words] + [0], np.int8)
        indices = piece.indices
        validity, buffer = indices.buffers()
        where = np.frombuffer(buffer, np.int32)[indices.offset : indices.offset + len(indices)]
        if indices.null_count and validity is not None:
            bits = np.unpackbits(np.frombuffer(validity, np.uint8), bitorder="little")
            # a null stands for no word: the last code, which is 0
            where = np.where(bits[indices.offset : indices.offset + len(indices)] == 1, where, len(words))
        parts.append(codes[where])
    return np.concatenate(parts)
