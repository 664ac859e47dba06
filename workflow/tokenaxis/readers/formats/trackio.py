"""Projects of trackio: SQLite, table metrics (timestamp, run_name, step, metrics as JSON), a row a log call, many runs.

`step` is the number of the log call, where the caller gives no other. Schema: gradio-app/trackio
trackio/sqlite_storage.py @ 0019634; later ones add columns and a table configs (run_name, config).
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from tokenaxis.declarations import Declaration
from tokenaxis.errors import Notice, TokenAxisError
from tokenaxis.readers.base import RawLog, Reader, Sample
from tokenaxis.readers.records import Records, flatten
from tokenaxis.readers.settings import facts_of

if TYPE_CHECKING:
    import sqlite3

NAME = "trackio"
_MAGIC = b"SQLite format 3\0"


def sniff(sample: Sample) -> int:
    """Certain when a SQLite file's first pages define the table of metrics."""
    head = sample.head
    return 95 if head.startswith(_MAGIC) and b"metrics" in head and b"run_name" in head else 0


def parts(path: str) -> list[str]:
    """The runs of a project, in the order of their names.

    Raises:
        TokenAxisError: the file is damaged.
    """
    with _opened(path) as project:
        return [str(row[0]) for row in project.execute("SELECT DISTINCT run_name FROM metrics ORDER BY run_name")]


def read(path: str, declaration: Declaration) -> RawLog:
    """Read a project with one run.

    Raises:
        TokenAxisError: it holds several runs, or no loss.
    """
    runs = parts(path)
    if len(runs) != 1:
        shown = ", ".join(repr(run) for run in runs[:6])
        raise TokenAxisError(f"holds {len(runs)} runs ({shown})", remedy="read it as part of a sweep: each is a run")
    return read_part(path, declaration, runs[0])


def read_part(path: str, declaration: Declaration, part: str) -> RawLog:
    """Read the run `part` of a project.

    Raises:
        TokenAxisError: the file is damaged, or the run has no loss.
    """
    records = Records(declaration.columns)
    config: dict[str, Any] = {}
    with _opened(path) as project:
        start = None
        query = "SELECT id, timestamp, step, metrics FROM metrics WHERE run_name = ? ORDER BY id"
        for number, timestamp, step, text in project.execute(query, (part,)):
            row = _decoded(text)
            if row is None:
                records.bad_lines.append(int(number))
                continue
            time = _seconds(timestamp)
            start = time if start is None else start
            elapsed = {} if time is None or start is None else {"elapsed_s": time - start}
            records.add(int(number), {"_step": step, **elapsed, **row})
        for (text,) in _optional(project, "SELECT config FROM configs WHERE run_name = ?", part):
            config |= _decoded(text) or {}
    log = records.log(NAME, [])
    log.facts += facts_of(dict(flatten(config)), "trackio config")
    if log.names["step"] == "_step":
        message = "the step is the number of the log call, which is the optimizer step only if each step was logged"
        log.warnings.append(Notice("step_is_log_index", message))
    return log


@contextmanager
def _opened(path: str) -> Iterator[sqlite3.Connection]:
    import sqlite3

    # immutable: neither a lock nor a journal is written beside the user's log
    project = sqlite3.connect(f"file:{quote(path)}?mode=ro&immutable=1", uri=True)
    try:
        yield project
    except (sqlite3.Error, UnicodeError, OverflowError) as error:
        raise TokenAxisError(f"is a damaged trackio project ({error})", remedy="copy the file again") from None
    finally:
        project.close()


def _optional(project: sqlite3.Connection, query: str, run: str) -> Iterator[tuple[Any, ...]]:
    """Rows of a table that older projects do not have."""
    import sqlite3

    try:
        yield from project.execute(query, (run,))
    except sqlite3.Error:
        return


def _decoded(text: Any) -> dict[str, Any] | None:
    try:
        found = json.loads(text)
    except (ValueError, TypeError, RecursionError):
        return None
    return found if isinstance(found, dict) else None


def _seconds(timestamp: Any) -> float | None:
    try:
        return datetime.fromisoformat(str(timestamp)).timestamp()
    except (ValueError, OverflowError, OSError):
        return None


READER = Reader(NAME, "projects of trackio (SQLite), a run a name", sniff, read, parts=parts, read_part=read_part)
