"""SQLite files of trackers, opened without leaving a trace beside them.

A running or killed writer leaves its last rows in a write-ahead log (`-wal`), or the old pages of a torn transaction in
a journal (`-journal`). Both count only for a reader that may write: such a database is read from a copy.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from tokenaxis.errors import TokenAxisError

if TYPE_CHECKING:
    import sqlite3

MAGIC = b"SQLite format 3\0"
#: endings of the files that a writer keeps beside its database and that hold some of its content
BESIDE = ("-wal", "-journal")
#: how often a database that changes while it is copied is copied again
_TRIES = 3


@contextmanager
def opened(path: str, what: str) -> Iterator[sqlite3.Connection]:
    """A database, to be read.

    Args:
        path: the file; what its writer left beside it is part of it.
        what: what errors call it.

    Raises:
        TokenAxisError: the file is damaged.
    """
    import sqlite3

    with _complete(path) as (file, flags):
        database = sqlite3.connect(f"file:{quote(file)}?{flags}", uri=True)
        try:
            yield database
        except (sqlite3.Error, UnicodeError, OverflowError) as error:
            raise TokenAxisError(f"is a damaged {what} ({error})", remedy="copy the file again") from None
        finally:
            database.close()


def optional(database: sqlite3.Connection, query: str, *arguments: Any) -> list[tuple[Any, ...]]:
    """Rows of a table, or with columns, that not every version of a database has; none where it has not."""
    import sqlite3

    try:
        return database.execute(query, arguments).fetchall()
    except sqlite3.OperationalError:
        return []


def the_one(runs: list[str]) -> str:
    """The only run of a database.

    Raises:
        TokenAxisError: it holds none, or several.
    """
    if len(runs) != 1:
        shown = ", ".join(repr(run) for run in runs[:6])
        raise TokenAxisError(f"holds {len(runs)} runs ({shown})", remedy="read it as part of a sweep: each is a run")
    return runs[0]


def schema(path: str) -> bytes:
    """The statements that made a database's tables, for recognition; nothing where it is damaged."""
    try:
        with opened(path, "SQLite file") as database:
            rows = database.execute("SELECT sql FROM sqlite_master WHERE type = 'table' AND sql IS NOT NULL").fetchall()
    except (TokenAxisError, OSError):
        return b""
    return "\n".join(str(sql) for (sql,) in rows).encode("utf-8", "replace")


@contextmanager
def _complete(path: str) -> Iterator[tuple[str, str]]:
    """(file, flags of its URI): the database itself, or a copy in which what lies beside it can be merged."""
    if not any(_size(path + ending) for ending in BESIDE):
        # immutable: neither a lock nor a journal is written beside the user's log
        yield path, "mode=ro&immutable=1"
        return
    with tempfile.TemporaryDirectory(prefix="tokenaxis-") as folder:
        copy = os.path.join(folder, "copy.db")
        for _ in range(_TRIES):
            before = _stamps(path)
            for ending in ("", *BESIDE):
                if _size(path + ending):
                    shutil.copyfile(path + ending, copy + ending)
                elif os.path.exists(copy + ending):
                    os.remove(copy + ending)
            if _stamps(path) == before:
                break
        yield copy, "mode=rw"


def _size(path: str) -> int:
    try:
        return os.path.getsize(path)
    except OSError:
        return 0


def _stamps(path: str) -> list[tuple[int, int] | None]:
    found: list[tuple[int, int] | None] = []
    for ending in ("", *BESIDE):
        try:
            status = os.stat(path + ending)
        except OSError:
            found.append(None)
        else:
            found.append((status.st_size, status.st_mtime_ns))
    return found
