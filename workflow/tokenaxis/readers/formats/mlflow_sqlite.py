"""MLflow's database (mlflow.db, its default store since 3.7): tables runs, metrics, params; many runs.

A value is a row (key, value, timestamp in ms, step, is_nan); nan is stored as 0 with is_nan, an infinity as the largest
float. Schema: mlflow/mlflow mlflow/store/tracking/dbmodels/models.py of 3.17; is_nan and the order of columns differ in
older ones, which are read by name.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from tokenaxis.declarations import Declaration
from tokenaxis.errors import TokenAxisError
from tokenaxis.readers import naming
from tokenaxis.readers.base import RawLog, Reader, Sample
from tokenaxis.readers.formats.mlflow import NO_STEPS, STEPS_REMEDY
from tokenaxis.readers.records import LOSS_ROLES, Records
from tokenaxis.readers.settings import facts_of
from tokenaxis.readers.settings_files import plain
from tokenaxis.readers.sqlite import MAGIC, opened, optional, the_one

if TYPE_CHECKING:
    import sqlite3

NAME = "mlflow-sqlite"
_WHAT = "MLflow database"
_LARGEST = 1.7976931348623157e308
#: characters of a run's id that tell runs of one name apart
_SHORT = 8
#: metrics that are no columns of a row: what a row has anyway, and words
_NO_COLUMNS = (None, "step", "kind", "elapsed_s")


def sniff(sample: Sample) -> int:
    """Certain when a SQLite file has MLflow's tables of metrics and of their latest values."""
    if not sample.head.startswith(MAGIC):
        return 0
    return 96 if b"run_uuid" in sample.tail and b"latest_metrics" in sample.tail else 0


def parts(path: str) -> list[str]:
    """The runs that hold a value, in the order of their names; deleted ones are none.

    Raises:
        TokenAxisError: the file is damaged.
    """
    with opened(path, _WHAT) as database:
        return sorted(_runs(database))


def read(path: str, declaration: Declaration) -> RawLog:
    """Read a database with one run.

    Raises:
        TokenAxisError: it holds several runs, or no loss.
    """
    return read_part(path, declaration, the_one(parts(path)))


def read_part(path: str, declaration: Declaration, part: str) -> RawLog:
    """Read the run `part` of a database.

    Raises:
        TokenAxisError: the file is damaged, or the run is gone, has no loss, or was logged without steps.
    """
    with opened(path, _WHAT) as database:
        run = _runs(database).get(part)
        if run is None:
            raise TokenAxisError(f"holds no run {part!r} any more", remedy="start the engine again")
        names = {str(row[1]) for row in database.execute("PRAGMA table_info(metrics)")}
        is_nan = "is_nan" if "is_nan" in names else "0"
        query = f"SELECT rowid, key, value, timestamp, step, {is_nan} FROM metrics WHERE run_uuid = ?"
        values = database.execute(f"{query} ORDER BY timestamp, rowid", (run,)).fetchall()
        params = dict(optional(database, "SELECT key, value FROM params WHERE run_uuid = ?", run))
    log = _records(values, declaration).log(NAME, [], what="value")
    log.facts += facts_of(dict(plain(str(key), value) for key, value in params.items()), "MLflow params")
    log.started = float(values[0][3]) / 1000
    return log


def _runs(database: sqlite3.Connection) -> dict[str, str]:
    """Shown name -> run_uuid; two runs of one name are told apart by their ids."""
    rows = database.execute(
        "SELECT run_uuid, name FROM runs WHERE lifecycle_stage IS NOT 'deleted' "
        "AND EXISTS (SELECT 1 FROM metrics WHERE metrics.run_uuid = runs.run_uuid)"
    ).fetchall()
    named: dict[str, list[str]] = {}
    for run, name in rows:
        named.setdefault(str(name or run), []).append(str(run))
    return {name if len(runs) == 1 else f"{name} ({run[:_SHORT]})": run for name, runs in named.items() for run in runs}


def _records(values: list[tuple[Any, ...]], declaration: Declaration) -> Records:
    """Values that were logged one after the other for one step are one row."""
    records = Records(declaration.columns)
    first, row = 0, dict[str, Any]()
    start, losses, steps = values[0][3], 0, set()
    for number, key, value, timestamp, step, is_nan in values:
        role = naming.role(key, declaration.columns)
        if role in _NO_COLUMNS and key not in declaration.columns.values():
            continue
        if row and (row["step"] != step or key in row):
            records.add(first, row)
            row = {}
        if not row:
            first, row = int(number), {"step": step, "elapsed_s": (timestamp - start) / 1000}
        row[key] = math.nan if is_nan else math.copysign(math.inf, value) if abs(value) >= _LARGEST else value
        if role in LOSS_ROLES:
            losses += 1
            steps.add(step)
    if row:
        records.add(first, row)
    if losses > 1 and steps == {0} and "step" not in declaration.columns:
        raise TokenAxisError(NO_STEPS, remedy=STEPS_REMEDY)
    return records


READER = Reader(NAME, "MLflow's database (mlflow.db), a run a name", sniff, read, parts=parts, read_part=read_part)
