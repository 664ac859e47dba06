"""Lines of a captured console: colours, carriage returns of progress bars, and what launchers put before each line."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tokenaxis.readers.content import Content

_ESCAPE = re.compile(rb"\x1b\[[0-9;?]*[A-Za-z]")
#: before a row on its line, for a first look: ranks, time stamps, loggers' names end with one of these
LEAD = rb"(?:[^\n]{1,120}?[\]:>)|-] {0,4})?"
#: behind the beginning of a line: no other loss and no tokens follow, which a reader of certain fields would not see
NOTHING_MORE = rb"(?![^\n]*\b(?:val[_ ]loss|tokens)\b)"
_LONGEST_LEAD = 160
#: who wrote a line: torchrun's [rank0]: and [default0]:, srun's `0: `, mpirun's [1,0]<stdout>, deepspeed's worker-0:
_RANK = re.compile(
    rb"(?:rank|default|worker|node)[-_ =]?(\d{1,5})\b|^ {0,5}(\d{1,5}): |^\[\d{1,5},(\d{1,5})\]<", re.IGNORECASE
)


def visible(part: bytes) -> bytes:
    """A piece of a console as it is read: without escape sequences, and a line where a carriage return begins one."""
    if b"\x1b" in part:
        part = _ESCAPE.sub(b"", part)
    return part.replace(b"\r", b"\n")


def readable(content: Content) -> bytes:
    """The text that patterns search. Bytes are where `content.data` has them, whose line ends count lines.

    Escape sequences leave `content.data` for good; a carriage return begins a line here and none there, as in editors.
    """
    if b"\x1b" in content.data:
        content.data = _ESCAPE.sub(b"", content.data)
    return content.data.replace(b"\r", b"\n") if b"\r" in content.data else content.data


def lead(data: bytes, row: bytes) -> bytes:
    """Pattern of what stands before rows on their lines, b"" where rows begin lines.

    A launcher or a logger writes the same before each line but for numbers: ranks, dates, processes.

    Args:
        data: the log, see `readable`.
        row: pattern of how a row begins, without an anchor.
    """
    if re.search(rb"(?m)^(?:" + row + rb")", data) is not None:
        return b""
    match = re.search(rb"(?m)^([^\n]{1,%d}?)(?<![\w.])(?:" % _LONGEST_LEAD + row + rb")", data)
    if match is None:
        return b""
    return re.sub(rb"\d+", rb"\\d+", re.escape(match.group(1))).replace(rb"\ ", b" +")


def rank_of(line: bytes) -> int | None:
    """The rank that a line's first bytes name; None where they name none."""
    match = _RANK.search(line)
    return None if match is None else int(next(group for group in match.groups() if group is not None))


def whole_lines(data: bytes) -> bytes:
    """Without a last line that has no line end yet: standard output is written line by line."""
    return data[: data.rfind(b"\n") + 1]
