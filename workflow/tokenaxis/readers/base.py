"""The interface between raw logs and the rest: what a reader is given, and what it hands over."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from tokenaxis.declarations import Declaration
from tokenaxis.errors import Notice, TokenAxisError

if TYPE_CHECKING:
    import numpy as np

#: bytes of a file's beginning and end that `sniff` may look at
SAMPLE_BYTES = 8192


@dataclass(frozen=True)
class Sample:
    """The first look at a file: cheap, and all that `sniff` gets.

    Attributes:
        name: file name without folders.
        head: up to SAMPLE_BYTES from the beginning, decompressed if the file is gzip, as UTF-8 without byte-order mark.
        tail: up to SAMPLE_BYTES from the end (empty when the head is the whole file or the file is compressed); of a
            SQLite file the statements that made its tables.
        size: bytes on disk.
        whole: the head is the whole (decompressed) file.
        columns: declared columns, canonical name -> the file's own name.
    """

    name: str
    head: bytes
    tail: bytes = b""
    size: int = 0
    whole: bool = False
    columns: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class IntervalMean:
    """A column whose values are means over the steps since its value before.

    Attributes:
        steps: steps of an interval where the log says so, else None: as many as lie between two values.
        counted_after: the row's step counts the updates done, the interval's last one included (HF Trainer, Megatron);
            else it is the step of the interval's last batch.
    """

    steps: float | None = None
    counted_after: bool = False


@dataclass
class RawLog:
    """Rows of one file in file order, before attempts are joined and before there is a token axis.

    Attributes:
        format: name of the reader.
        columns: canonical name -> float64 array of shape (rows,); NaN where the cell is blank or unusable. `step` is
            always there and finite. `tokens` as logged (no shift applied). Only columns that the log has.
        lines: int64 array (rows,), 1-based line of each row in the (decompressed) file.
        names: canonical name -> the log's own name for it.
        rows_read: data rows in the file, headers, comments and blank lines not counted.
        bad_lines: 1-based lines of rows that are unusable as rows (no step, torn); rows_read = rows + len(bad_lines).
        unusable: (column, kind) -> int64 array of 1-based lines of cells that hold no usable number though they are
            not blank; kind is "nan", "inf", "text", or "huge" for a loss beyond 1e6. Their cell in `columns` is NaN.
        facts: (key, value, source, note) found in the log: source is "emitted" for what the training loop wrote about
            itself, "detected" for what the reader concluded.
        warnings: oddities in words.
        tokens_convention: "before" or "after" if the format defines what its tokens column counts, else None.
        means: columns that hold means over an interval that ends with the row's step.
        started: seconds since the epoch at elapsed_s = 0, where the format says so; tells whether two files of one run
            were written at the same time.
    """

    format: str
    columns: dict[str, np.ndarray]
    lines: np.ndarray
    names: dict[str, str]
    rows_read: int
    bad_lines: list[int] = field(default_factory=list)
    unusable: dict[tuple[str, str], np.ndarray] = field(default_factory=dict)
    facts: list[tuple[str, Any, str, str | None]] = field(default_factory=list)
    warnings: list[Notice] = field(default_factory=list)
    tokens_convention: str | None = None
    means: dict[str, IntervalMean] = field(default_factory=dict)
    started: float | None = None


@dataclass(frozen=True)
class Reader:
    """A format: one module in readers/formats with a module-level `READER`.

    Attributes:
        name: short name, shown to users and accepted by `format:` in a declaration.
        about: one line for documentation.
        sniff: sample -> confidence 0 (not mine) to 100 (certain); must be cheap and must not import numpy or pyarrow.
        read: (path, declaration) -> RawLog; raises TokenAxisError with the reason and the remedy.
        lacks: sample -> what is missing in a file that looks like this format and cannot be read, or None when it does
            not look like it; asked only when no reader is confident.
        last_resort: `sniff` is dear or generous, and is asked only when no other reader is confident.
        parts: path -> names of the runs in the file, for formats in which one file may hold several; cheap as `sniff`.
        read_part: (path, declaration, part) -> RawLog of one of them.
    """

    name: str
    about: str
    sniff: Callable[[Sample], int]
    read: Callable[[str, Declaration], RawLog]
    lacks: Callable[[Sample], TokenAxisError | None] | None = None
    last_resort: bool = False
    parts: Callable[[str], list[str]] | None = None
    read_part: Callable[[str, Declaration, str], RawLog] | None = None
