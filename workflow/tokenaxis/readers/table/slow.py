"""Tables that are not well-formed, line by line: what is wrong is reported with its line, the rest is read."""

from __future__ import annotations

import math
from array import array
from typing import TYPE_CHECKING

from tokenaxis.columns import normalise
from tokenaxis.errors import Notice
from tokenaxis.readers import cells
from tokenaxis.readers.naming import KINDS, Naming
from tokenaxis.readers.table.body import Body
from tokenaxis.readers.table.dialect import Dialect, is_open, is_rule, split
from tokenaxis.readers.table.parsed import KIND_CODES, Parsed

if TYPE_CHECKING:
    import numpy as np

#: lines that a quoted cell may span
_QUOTED_LINES = 20


class _Rows:
    """Growing columns; one row is added at a time."""

    def __init__(self, dialect: Dialect, naming: Naming):
        self.dialect, self.naming = dialect, naming
        canonical = {s.index: name for name, groups in naming.candidates.items() for group in groups for s in group}
        self.canonical = canonical
        self.values = {source.index: array("d") for source in naming.sources}
        self.positions: dict[int, int | None] = {source.index: source.index for source in naming.sources}
        self.kind_position = None if naming.kind is None else naming.kind.index
        self.width = len(dialect.names)
        self.lines, self.kinds = array("q"), array("b")
        self.unusable: dict[int, dict[str, array]] = {}
        self.texts: dict[int, str] = {}
        counters = naming.candidates.get("step") or naming.candidates.get("tokens", [])
        self.steps = {normalise(source.name) for group in counters for source in group}
        self.wrong_width: list[int] = []
        self.headers = 0

    def header(self, fields: list[str]) -> bool:
        """Whether a line repeats the header; columns that moved are followed."""
        keys = [normalise(field.strip()) for field in fields]
        if not self.steps.intersection(keys):
            return False
        by_key = {key: position for position, key in reversed(list(enumerate(keys)))}
        same = tuple(field.strip() for field in fields) == self.dialect.names
        for source in self.naming.sources:
            self.positions[source.index] = source.index if same else by_key.get(normalise(source.name))
        if self.naming.kind is not None:
            self.kind_position = self.naming.kind.index if same else by_key.get(normalise(self.naming.kind.name))
        self.width = len(fields)
        self.headers += 1
        return True

    def add(self, line: int, fields: list[str]) -> None:
        """One row, or a bad line."""
        if len(fields) != self.width:
            if self.header(fields):
                return
            trailing = len(fields) == self.width + 1 and not fields[-1].strip()
            if not trailing:
                self.wrong_width.append(line)
                return
        row = len(self.lines)
        comma = self.dialect.decimal_comma
        for index, column in self.values.items():
            position = self.positions[index]
            if position is None:
                column.append(math.nan)
                continue
            text = fields[position]
            kind = None
            try:
                value = float(text)
                if not -math.inf < value < math.inf:
                    kind, value = cells.kind_of(value), math.nan
            except ValueError:
                value, kind = cells.number(text, self.canonical[index], comma)
                if kind == "text" and self.header(fields):
                    self._truncate(row)
                    return
            column.append(value)
            if kind is not None:
                self.unusable.setdefault(index, {}).setdefault(kind, array("q")).append(row)
                if kind == "text":
                    self.texts.setdefault(index, text.strip())
        self.lines.append(line)
        if self.kind_position is not None:
            word = fields[self.kind_position].strip().lower()
            self.kinds.append(KIND_CODES.get(KINDS.get(word, ""), 0))

    def _truncate(self, rows: int) -> None:
        """Undo a row that turned out to be a header."""
        for column in self.values.values():
            del column[rows:]
        for kinds in self.unusable.values():
            for flagged in kinds.values():
                while flagged and flagged[-1] >= rows:
                    flagged.pop()

    def parsed(self) -> Parsed:
        """The columns as numpy."""
        import numpy as np

        def numpy(values: array, kind: type) -> np.ndarray:
            return np.frombuffer(values, kind) if len(values) else np.empty(0, kind)

        unusable = {
            index: {kind: numpy(rows, np.int64) for kind, rows in kinds.items() if rows}
            for index, kinds in self.unusable.items()
        }
        codes = None if self.naming.kind is None else numpy(self.kinds, np.int8)
        values = {index: numpy(column, np.float64) for index, column in self.values.items()}
        parsed = Parsed(values, numpy(self.lines, np.int64), unusable, codes, list(self.wrong_width))
        if self.headers:
            parsed.notices.append(Notice("repeated_header", f"the header stands {self.headers} more times in the file"))
        if self.wrong_width:
            shown = ", ".join(str(line) for line in self.wrong_width[:5])
            message = f"{len(self.wrong_width)} lines with a wrong number of fields were left out (lines {shown})"
            parsed.notices.append(Notice("wrong_number_of_fields", message))
        for index, text in self.texts.items():
            name, rows = self.dialect.names[index], unusable.get(index, {}).get("text")
            if rows is not None:
                message = (
                    f"column {name!r} holds text, no number, in {len(rows)} rows; "
                    f"the first is {text[:40]!r} in line {parsed.lines[rows[0]]}"
                )
                parsed.notices.append(Notice("text_in_cells", message))
        return parsed


def parse(body: Body, dialect: Dialect, naming: Naming) -> Parsed:
    """Parse a table's body line by line: blank lines, comments and repeated headers are skipped.

    Args:
        body: everything after the header line.
        dialect: how it is written.
        naming: the columns to read.
    """
    rows = _Rows(dialect, naming)
    pending: list[tuple[int, str]] = []
    for line, raw in enumerate(body.raw_lines(), dialect.header_line + 1):
        text = raw.decode("utf-8", "replace").rstrip("\r\n\0")
        if not pending and '"' not in text:
            _add(rows, line, text)
            continue
        pending.append((line, text))
        open_still = is_open([part for _, part in pending], rows.dialect.delimiter)
        if not open_still or len(pending) == _QUOTED_LINES:
            _add_quoted(rows, pending)
            pending = []
    _add_quoted(rows, pending)
    return rows.parsed()


def _add_quoted(rows: _Rows, pending: list[tuple[int, str]]) -> None:
    """A row whose quoted cells may span lines; lines that do not make one row together are taken one by one."""
    if len(pending) > 1:
        whole = "\n".join(text for _, text in pending)
        if len(split(whole, rows.dialect.delimiter)) == rows.width:
            _add(rows, pending[0][0], whole)
            return
    for line, text in pending:
        _add(rows, line, text)


def _add(rows: _Rows, line: int, text: str) -> None:
    stripped = text.strip()
    if not stripped or stripped[0] == "#" or (stripped[0] in "|-+=:" and is_rule(stripped)):
        return
    if stripped == rows.dialect.header:
        rows.header(list(rows.dialect.names))
        return
    rows.add(line, split(text, rows.dialect.delimiter))
