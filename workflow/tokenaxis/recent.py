"""Tables that were read a moment ago: the stages of a run read the same token axis one after the other."""

from __future__ import annotations

import os
from collections import OrderedDict
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

    import numpy as np

#: bytes of columns that are kept, the latest ones: a hundred runs of 10,000 rows
KEPT_BYTES = 64 << 20


@dataclass(frozen=True)
class Table:
    """A table as it was read: columns that nobody may write to, and its metadata as it stands in the file."""

    columns: dict[str, np.ndarray]
    metadata: dict[bytes, bytes]

    @property
    def size(self) -> int:
        """Bytes of the columns."""
        return sum(values.nbytes for values in self.columns.values())


class Recent:
    """The latest tables, as long as their files stay as they are."""

    def __init__(self, room: int = KEPT_BYTES) -> None:
        self.room = room
        self._tables: OrderedDict[str, tuple[tuple[int, ...], Table]] = OrderedDict()
        self._size = 0

    def get(self, path: Path) -> Table | None:
        """The table of a file that has not been replaced since it was read."""
        known = self._tables.get(str(path))
        return known[1] if known is not None and known[0] == stamp(path) else None

    def keep(self, path: Path, table: Table, seen: tuple[int, ...]) -> None:
        """Keep a table; `seen` is its stamp from before it was read. The oldest ones make room for it."""
        self._forget(str(path))
        for values in table.columns.values():
            values.flags.writeable = False
        self._tables[str(path)] = seen, table
        self._size += table.size
        while self._size > self.room:
            self._forget(next(iter(self._tables)))

    def _forget(self, name: str) -> None:
        known = self._tables.pop(name, None)
        if known is not None:
            self._size -= known[1].size


def stamp(path: Path) -> tuple[int, ...]:
    """What changes when a file is replaced.

    Raises:
        OSError: there is no such file.
    """
    status = os.stat(path)
    return status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns
