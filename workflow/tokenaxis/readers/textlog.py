"""Text logs, one line per event: patterns find the rows, this module turns the matches into a RawLog."""

from __future__ import annotations

import re
import sys
from array import array
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from tokenaxis.columns import LOSSES, NAMES
from tokenaxis.errors import Notice, TokenAxisError
from tokenaxis.readers.base import RawLog
from tokenaxis.readers.cells import may_be_cut
from tokenaxis.readers.content import Content
from tokenaxis.readers.headers import Fact
from tokenaxis.readers.repeats import once_each

if TYPE_CHECKING:
    import numpy as np

#: stands for "the group took no part in the match"; no log holds it
_ABSENT = -sys.float_info.max
_TEXT = -sys.float_info.max / 2
#: beyond this a float no longer counts every integer
_LARGEST_STEP = 2.0**53
_BLOCK = 1 << 20
#: bytes before the last line in which it is compared with its like
_TORN_WINDOW = 8192


@dataclass
class Rows:
    """Matches of one pattern.

    Attributes:
        offsets: int64 (rows,), byte where each match begins.
        columns: canonical name -> float64 (rows,), NaN where blank or unusable.
        unusable: (column, kind) -> int64 rows of cells that hold no finite number.
    """

    offsets: np.ndarray
    columns: dict[str, np.ndarray]
    unusable: dict[tuple[str, str], np.ndarray] = field(default_factory=dict)

    def only(self, keep: np.ndarray) -> Rows:
        """Those rows for which `keep`, bool (rows,), is true."""
        import numpy as np

        if keep.all():
            return self
        place = np.cumsum(keep) - 1
        unusable = {key: place[indices[keep[indices]]] for key, indices in self.unusable.items()}
        columns = {name: values[keep] for name, values in self.columns.items()}
        return Rows(self.offsets[keep], columns, {key: rows for key, rows in unusable.items() if len(rows)})


def find_rows(data: bytes, pattern: re.Pattern[bytes], names: Sequence[str]) -> Rows:
    """Every match of a pattern as a row.

    Args:
        data: the log.
        pattern: multi-line pattern whose groups are numbers.
        names: canonical name of each group; several groups of one name: the one that took part counts.
    """
    import numpy as np

    offsets, cells = array("q"), [array("d") for _ in names]
    appends = [column.append for column in cells]
    for match in pattern.finditer(data):
        offsets.append(match.start())
        for append, text in zip(appends, match.groups(), strict=True):
            if text is None:
                append(_ABSENT)
                continue
            try:
                append(float(text))
            except ValueError:
                append(_TEXT)
    rows = Rows(_numpy(offsets, np.int64), {})
    for name in dict.fromkeys(names):
        mine = [_numpy(column, np.float64) for own, column in zip(names, cells, strict=True) if own == name]
        values = mine[0]
        for other in mine[1:]:
            np.copyto(values, other, where=values == _ABSENT)
        present, text = values != _ABSENT, values == _TEXT
        finite = np.isfinite(values)
        for kind, where in (("text", text), ("nan", np.isnan(values)), ("inf", ~finite & ~np.isnan(values))):
            if where.any():
                rows.unusable[name, kind] = np.flatnonzero(where)
        values[~(finite & present & ~text)] = np.nan
        rows.columns[name] = values
    return rows


def one_based(train: Rows, line: str) -> list[Notice]:
    """Rows whose log counts the updates that their batch makes, as the updates done before; and the notice of it.

    Args:
        train: rows; with a step 0 among them they count from 0, and stay.
        line: how such a line begins, for the notice, e.g. "step:N".
    """
    if not len(train.offsets) or not train.columns["step"].min() >= 1:
        return []
    train.columns["step"] = train.columns["step"] - 1
    message = f"train lines count from 1: line `{line}` became step N-1, the updates done before its loss"
    return [Notice("steps_one_based", message)]


def _numpy(values: array, kind: type) -> np.ndarray:
    """An array that grew, as numpy, without a copy."""
    import numpy as np

    return np.frombuffer(values, kind) if len(values) else np.empty(0, kind)


def torn_offset(data: bytes, patterns: Iterable[re.Pattern[bytes]]) -> int | None:
    """Where a last row begins that may be cut inside: no line end, and fewer fields or too short a last."""
    if data.endswith((b"\n", b"\r")):
        return None
    start = max(0, len(data) - _TORN_WINDOW)
    window = data[start:]
    for pattern in patterns:
        matches = list(pattern.finditer(window))
        if not matches or matches[-1].end() != len(window):
            continue
        last = matches[-1]
        group = last.lastindex or 0
        alike = [_text(match, group) for match in matches[:-1] if match.lastindex == last.lastindex]
        if not alike or may_be_cut(_text(last, group), alike):
            return start + last.start() if len(matches) > 1 else None
    return None


def _text(match: re.Match[bytes], group: int) -> str:
    return match.group(group).decode("utf-8", "replace")


def build(
    reader: str,
    content: Content,
    found: Sequence[Rows],
    names: dict[str, str],
    *,
    broken: Iterable[int] = (),
    torn: int | None = None,
    facts: list[Fact] | None = None,
    warnings: list[Notice] | None = None,
    what: str = "step line",
    needs_loss: bool = True,
    timed: bool = True,
) -> RawLog:
    """The log of the rows found.

    Args:
        reader: name of the format.
        content: the file.
        found: rows by pattern; they are put in file order.
        names: canonical name -> the log's own name.
        broken: bytes where lines begin that look like rows and are none.
        torn: byte where a torn last row begins, which is left out.
        facts, warnings: handed on.
        what: what the format calls a row, for messages.
        needs_loss: False for one of several files of a run.
        timed: its lines hold times, so that two of the same bytes are one line that was printed twice.

    Raises:
        TokenAxisError: no row, or no loss.
    """
    import numpy as np

    log = RawLog(reader, {}, np.empty(0, np.int64), {}, 0, facts=facts or [])
    found, repeats = once_each(content.data, found, whole_lines=timed)
    log.warnings = [*content.notices, *(warnings or []), *repeats]
    columns = [name for name in NAMES if any(name in rows.columns for rows in found)]
    offsets = _joined([rows.offsets for rows in found])
    newlines = _newlines(content.data)
    lines = np.searchsorted(newlines, offsets, side="left") + 1
    steps = _joined([rows.columns["step"] for rows in found])
    with np.errstate(invalid="ignore"):
        keep = (steps >= 0) & (steps <= _LARGEST_STEP) & (steps == np.floor(steps))
    if torn is not None:
        keep &= offsets != torn
    spots = np.array(sorted(broken), np.int64)
    broken_lines = np.searchsorted(newlines, spots, side="left") + 1
    if len(spots):
        broken_lines = np.setdiff1d(broken_lines, lines[keep])
    del newlines
    order: np.ndarray | slice = slice(None)
    if not (keep.all() and bool((offsets[1:] >= offsets[:-1]).all())):
        order = np.argsort(offsets, kind="stable")
        order = order[keep[order]]
    log.lines = lines[order]
    log.bad_lines = np.union1d(lines[~keep], broken_lines).tolist()
    log.rows_read = len(log.lines) + len(log.bad_lines)
    for name in columns:
        blank = [np.empty(0) if name in rows.columns else np.full(len(rows.offsets), np.nan) for rows in found]
        parts = [rows.columns.pop(name, nothing) for rows, nothing in zip(found, blank, strict=True)]
        log.columns[name] = _joined(parts)[order]
        log.names[name] = names.get(name, name)
    _gather_unusable(log, found, lines, keep)
    _complain(log, torn, lines, offsets)
    if not len(log.lines):
        raise TokenAxisError(f"has no {what}: the run ended before its first step, or the file is no log")
    flagged = {name for name, _ in log.unusable}
    for name in columns:
        if name != "step" and name not in flagged and np.isnan(log.columns[name]).all():
            del log.columns[name], log.names[name]
    if needs_loss and not any(loss in log.columns for loss in LOSSES):
        raise TokenAxisError("has steps and no loss")
    return log


def _joined(parts: list[np.ndarray]) -> np.ndarray:
    import numpy as np

    return parts[0] if len(parts) == 1 else np.concatenate(parts)


def _gather_unusable(log: RawLog, found: Sequence[Rows], lines: np.ndarray, keep: np.ndarray) -> None:
    import numpy as np

    start = 0
    for rows in found:
        here, kept = lines[start : start + len(rows.offsets)], keep[start : start + len(rows.offsets)]
        start += len(rows.offsets)
        for (name, kind), indices in rows.unusable.items():
            usable = indices[kept[indices]]
            if name == "step" or name not in log.columns or not len(usable):  # a format may have taken a column out
                continue
            earlier = log.unusable.get((name, kind), np.empty(0, np.int64))
            log.unusable[name, kind] = np.sort(np.concatenate([earlier, here[usable]]))


def _complain(log: RawLog, torn: int | None, lines: np.ndarray, offsets: np.ndarray) -> None:
    if torn is not None and (offsets == torn).any():
        line = int(lines[offsets == torn][0])
        log.warnings.append(Notice("torn_last_line", f"line {line}, the last, is torn (cut inside); left out"))
    if log.bad_lines and not (torn is not None and len(log.bad_lines) == 1):
        shown = ", ".join(str(line) for line in log.bad_lines[:5])
        message = f"{len(log.bad_lines)} incomplete or unreadable rows were left out (lines {shown})"
        log.warnings.append(Notice("incomplete_rows", message))


def _newlines(data: bytes) -> np.ndarray:
    """Bytes of the line ends."""
    import numpy as np

    content = np.frombuffer(data, np.uint8)
    blocks = range(0, len(content), _BLOCK)
    parts = [np.flatnonzero(content[start : start + _BLOCK] == 10) + start for start in blocks]
    return np.concatenate([np.empty(0, np.int64), *parts])


def broken_rows(data: bytes, start: re.Pattern[bytes], found: Iterable[Rows]) -> list[int]:
    """Bytes where a line begins like a row and is none that was found."""
    import numpy as np

    starts = _numpy(array("q", (match.start() for match in start.finditer(data))), np.int64)
    unknown = np.ones(len(starts), bool)
    for rows in found:
        if len(rows.offsets):
            at = np.minimum(np.searchsorted(rows.offsets, starts), len(rows.offsets) - 1)
            unknown &= rows.offsets[at] != starts
    return starts[unknown].tolist()
