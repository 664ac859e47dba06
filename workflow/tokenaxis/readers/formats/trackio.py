"""Projects of trackio: SQLite, table metrics (timestamp, run_name, step, metrics as JSON), a row a log call, many runs.

`step` is the number of the log call, where the caller gives no other. Schema: gradio-app/trackio
trackio/sqlite_storage.py @ 0019634; later ones add run_id and a table configs (run_id, run_name, config).
"""

from __future__ import annotations

import json
from datetime import datetime
from typing import TYPE_CHECKING, Any

from tokenaxis.declarations import Declaration
from tokenaxis.errors import Notice
from tokenaxis.readers.base import RawLog, Reader, Sample
from tokenaxis.readers.records import Records, flatten
from tokenaxis.readers.settings import facts_of
from tokenaxis.readers.sqlite import MAGIC, opened, optional, the_one

if TYPE_CHECKING:
    import sqlite3

NAME = "trackio"
_WHAT = "trackio project"
#: characters of a run's id that tell runs of one name apart
_SHORT = 8


def sniff(sample: Sample) -> int:
    """Certain when a SQLite file has a table of metrics with the names of runs."""
    if not sample.head.startswith(MAGIC):
        return 0
    schema = sample.head + sample.tail
    return 95 if b"metrics" in schema and b"run_name" in schema else 0


def parts(path: str) -> list[str]:
    """The runs of a project, in the order of their names.

    Raises:
        TokenAxisError: the file is damaged.
    """
    with opened(path, _WHAT) as project:
        return sorted(_runs(project))


def read(path: str, declaration: Declaration) -> RawLog:
    """Read a project with one run.

    Raises:
        TokenAxisError: it holds several runs, or no loss.
    """
    return read_part(path, declaration, the_one(parts(path)))


def read_part(path: str, declaration: Declaration, part: str) -> RawLog:
    """Read the run `part` of a project.

    Raises:
        TokenAxisError: the file is damaged, or the run has no loss.
    """
    records = Records(declaration.columns)
    config: dict[str, Any] = {}
    with opened(path, _WHAT) as project:
        column, run = _runs(project).get(part, ("run_name", part))
        start = None
        query = f"SELECT id, timestamp, step, metrics FROM metrics WHERE {column} = ? ORDER BY id"
        for number, timestamp, step, text in project.execute(query, (run,)):
            row = _decoded(text)
            if row is None:
                records.bad_lines.append(int(number))
                continue
            time = _seconds(timestamp)
            start = time if start is None else start
            elapsed = {} if time is None or start is None else {"elapsed_s": time - start}
            records.add(int(number), {"_step": step, **elapsed, **row})
        for (text,) in optional(project, f"SELECT config FROM configs WHERE {column} = ?", run):
            config |= _decoded(text) or {}
    log = records.log(NAME, [])
    log.facts += facts_of(dict(flatten(config)), "trackio config")
    if log.names["step"] == "_step":
        message = "the step is the number of the log call, which is the optimizer step only if each step was logged"
        log.warnings.append(Notice("step_is_log_index", message))
    return log


def _runs(project: sqlite3.Connection) -> dict[str, tuple[str, str]]:
    """Shown name -> (column, value) by which the rows of a run are found.

    Newer projects have a run_id; two runs of one name are told apart by it. In older ones a name is a run.
    """
    by_id = optional(project, "SELECT DISTINCT run_id, run_name FROM metrics")
    if not by_id:
        rows = project.execute("SELECT DISTINCT run_name FROM metrics")
        return {str(name): ("run_name", str(name)) for (name,) in rows}
    named: dict[str, list[str]] = {}
    for run, name in by_id:
        named.setdefault(str(name), []).append(str(run))
    return {
        name if len(runs) == 1 else f"{name} ({run[:_SHORT]})": ("run_id", run)
        for name, runs in named.items()
        for run in runs
    }


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
