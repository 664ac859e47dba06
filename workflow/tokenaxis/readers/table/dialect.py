"""How a delimited table is written: delimiter, header, decimal comma, and whether its last line is whole."""

from __future__ import annotations

import csv
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from tokenaxis.readers import naming
from tokenaxis.readers.cells import may_be_cut

_DELIMITERS = (",", "\t", ";", "|")
#: lines at the top of a file that are looked at
_LOOK = 60
_POINT = re.compile(r"\d\.\d")
_COMMA = re.compile(r"\d,\d")
_RULE = frozenset("-|:+= \t")


@dataclass(frozen=True)
class Dialect:
    """How a table is written.

    Attributes:
        delimiter: one character; " " stands for any run of blanks.
        names: the header's cells, trimmed.
        written: the header's cells as they stand, blanks around them included.
        header_line: 1-based line of the header.
        body_start: byte at which the line after the header begins.
        header: the header line, stripped.
        rows: up to _LOOK data lines, split, after the header.
        decimal_comma: 1,5 means one and a half.
    """

    delimiter: str
    names: tuple[str, ...]
    header_line: int
    body_start: int
    header: str
    rows: tuple[tuple[str, ...], ...]
    decimal_comma: bool
    written: tuple[str, ...] = ()

    def as_written(self, name: str) -> str:
        """A trimmed name as the file has it; as it is where that is not one name."""
        found = {own for trimmed, own in zip(self.names, self.written, strict=True) if trimmed == name}
        return found.pop() if len(found) == 1 else name


def detect(data: bytes, declared: Mapping[str, str] | None = None) -> Dialect | None:
    """The dialect of a table that begins with `data`; None when it does not look like one."""
    lines = _first_lines(data)
    if not lines:
        return None
    number, end, header = lines[0]
    delimiter = _delimiter(header, declared or {})
    if delimiter is None:
        return None
    written = tuple(split(header, delimiter))
    names = tuple(name.strip() for name in written)
    rows = tuple(tuple(split(line, delimiter)) for _, _, line in lines[1:] if not is_rule(line))
    decimal_comma = delimiter != "," and _has_decimal_comma(rows)
    return Dialect(delimiter, names, number, end, header, rows, decimal_comma, written)


def split(line: str, delimiter: str) -> list[str]:
    """The cells of one line; quotes and the outer bars of a | a | b | table are taken off."""
    if delimiter == " ":
        return line.split()
    if delimiter == "|":
        framed = line.strip()
        line = framed[1:-1] if len(framed) > 1 and framed[0] == framed[-1] == "|" else line
    if '"' in line:
        try:
            return next(csv.reader(line.split("\n"), delimiter=delimiter, skipinitialspace=True), [])
        except csv.Error:
            pass
    return line.split(delimiter)


def is_open(lines: list[str], delimiter: str) -> bool:
    """Whether a quoted cell goes on beyond these lines."""
    if delimiter == " " or not any('"' in line for line in lines):
        return False
    try:
        for _ in csv.reader(lines, delimiter=delimiter, skipinitialspace=True, strict=True):
            pass
    except csv.Error as error:
        return "end of data" in str(error)
    return False


def is_rule(line: str) -> bool:
    """Whether a line is only the ruling under a header: |---|---|."""
    return "-" in line and _RULE.issuperset(line)


def torn_tail(body: bytes, dialect: Dialect) -> int | None:
    """The byte where a torn last line begins, or None when the last line is whole.

    A last line without a line end may be whole (some writers join lines). It counts as torn when it has fewer cells
    than the header, or when its last cell may have been cut inside (`cells.may_be_cut`).
    """
    if not body or body.endswith((b"\n", b"\r")):
        return None
    start = max(body.rfind(b"\n"), body.rfind(b"\r")) + 1
    text = body[start:].decode("utf-8", "replace")
    if not text.strip() or text.lstrip().startswith("#"):
        return None
    cells = split(text, dialect.delimiter)
    width = len(dialect.names)
    if len(cells) < width:
        return start
    if is_open([text], dialect.delimiter):
        return start
    window = body[max(0, start - 8192) : start].decode("utf-8", "replace").splitlines()[1 if start > 8192 else 0 :]
    earlier = [split(line, dialect.delimiter) for line in window[-100:] if line.strip()]
    column = [row[width - 1].strip() for row in earlier if len(row) == width]
    return start if column and may_be_cut(cells[width - 1].strip(), column) else None


def _first_lines(data: bytes) -> list[tuple[int, int, str]]:
    """(1-based number, byte after the line, stripped text) of the first lines that are neither blank nor comments."""
    found: list[tuple[int, int, str]] = []
    for number, end, line in _lines(data):
        text = (
            line.decode("utf-8", "replace").strip("\r\n\0 ")
            if found
            else line.decode("utf-8", "replace").strip("\r\n\0")
        )
        if text.strip() and not text.lstrip().startswith("#"):
            found.append((number, end, text))
            if len(found) > _LOOK:
                break
    return found


def _lines(data: bytes) -> Iterator[tuple[int, int, bytes]]:
    position, number = 0, 0
    # a sample may end inside a line; that last piece is given too
    while position < len(data) and number < 10_000:
        number += 1
        end = data.find(b"\n", position)
        end = len(data) if end < 0 else end + 1
        yield number, end, data[position:end]
        position = end


def _delimiter(header: str, declared: Mapping[str, str]) -> str | None:
    """The delimiter under which the header names a step; else the most frequent one; None for none."""
    present = [delimiter for delimiter in _DELIMITERS if delimiter in header]
    if " " in header.strip() or "\t" in header:
        present.append(" ")
    for delimiter in present:
        names = [name.strip() for name in split(header, delimiter)]
        if len(names) > 1 and ("step" in declared and declared["step"] in names or naming.names_a_step(names)):
            return delimiter
    counted = [delimiter for delimiter in present if delimiter != " "]
    return max(counted, key=header.count) if counted else None


def _has_decimal_comma(rows: tuple[tuple[str, ...], ...]) -> bool:
    """Commas between digits and no point between digits."""
    cells = [cell for row in rows for cell in row]
    return any(_COMMA.search(cell) for cell in cells) and not any(_POINT.search(cell) for cell in cells)
