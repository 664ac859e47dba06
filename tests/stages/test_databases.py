"""Trackers that keep their runs in SQLite (trackio, MLflow): what a running or killed writer leaves is read whole."""

from __future__ import annotations

import hashlib
import json
import re
import shutil
import signal
import sqlite3
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from tokenaxis import readers
from tokenaxis.axis.model import TokenAxis
from tokenaxis.errors import TokenAxisError
from tokenaxis.stages.token_axis import axis_of
from tokenaxis.sweep.declared import SweepDeclaration
from tokenaxis.sweep.discover import Discovery, discover

#: a writer in write-ahead mode, as trackio's is, that is killed while all its rows are in the log beside the database
KILLED_WRITER = """
import json, os, signal, sqlite3, sys
database = sqlite3.connect(sys.argv[1])
database.execute("PRAGMA journal_mode=WAL")
database.execute("PRAGMA wal_autocheckpoint=0")
database.execute("CREATE TABLE metrics (id INTEGER PRIMARY KEY, timestamp TEXT, run_name TEXT, step INT, metrics TEXT)")
for step in range(int(sys.argv[2])):
    row = (f"2026-01-01T00:00:{step:02d}", "killed", step, json.dumps({"train/loss": 4 - step / 100}))
    database.execute("INSERT INTO metrics (timestamp, run_name, step, metrics) VALUES (?, ?, ?, ?)", row)
    database.commit()
os.kill(os.getpid(), signal.SIGKILL)
"""
BATCH = SweepDeclaration(entries=(("*", {"tokens_per_step": 1000}),))


def found(folder: Path, cache: Path | None = None) -> Discovery:
    return discover(folder, BATCH, [".*"], cache)


def axes(folder: Path) -> dict[str | None, TokenAxis]:
    return {run.part: axis_of(folder, run.as_record(), "auto") for run in found(folder).runs}


def killed(path: Path, rows: int) -> None:
    path.parent.mkdir(exist_ok=True)
    ended = subprocess.run([sys.executable, "-c", KILLED_WRITER, str(path), str(rows)], check=False)
    assert ended.returncode == -signal.SIGKILL


def contents(folder: Path) -> dict[str, str]:
    return {file.name: hashlib.sha256(file.read_bytes()).hexdigest() for file in folder.iterdir()}


def test_rows_that_a_killed_writer_left_in_the_write_ahead_log_are_read_and_nothing_is_written(tmp_path: Path) -> None:
    folder = tmp_path / "logs"
    killed(folder / "project.db", 30)
    before = contents(folder)
    assert b"run_name" not in (folder / "project.db").read_bytes()  # all of it, the schema too, is in the log beside it
    discovery = found(folder)
    (axis,) = axes(folder).values()
    assert (len(axis.columns["step"]), axis.columns["train_loss"][-1]) == (30, 3.71)
    assert contents(folder) == before
    reasons = {entry["name"]: entry["reason"] for entry in discovery.passed_over}
    assert set(reasons) == {"project.db-wal", "project.db-shm"}
    assert all("read with it" in reason for reason in reasons.values())


def test_two_killed_projects_whose_own_files_are_equal_are_no_copies(tmp_path: Path) -> None:
    folder = tmp_path / "logs"
    killed(folder / "one.db", 20)
    killed(folder / "two.db", 30)
    assert (folder / "one.db").read_bytes() == (folder / "two.db").read_bytes()
    assert [(run.name, run.same_bytes_as) for run in found(folder).runs] == [("one.db", None), ("two.db", None)]


def test_rows_that_only_the_write_ahead_log_gained_are_seen_by_the_next_look(tmp_path: Path) -> None:
    folder, cache = tmp_path / "logs", tmp_path / "cache.json"
    killed(folder / "project.db", 20)
    (before,) = found(folder, cache).runs
    with sqlite3.connect(
        folder / "project.db"
    ) as writer:  # merges what is there on opening, and writes beside it again
        writer.execute("PRAGMA wal_autocheckpoint=0")
        writer.execute("INSERT INTO metrics VALUES (99, '', 'another', 0, '{\"train/loss\": 3}')")
        writer.commit()
        runs = found(folder, cache).runs
    assert [run.part for run in runs] == ["another", "killed"]
    assert before.files[0].stamp != runs[0].files[0].stamp


def test_a_table_is_computed_again_when_only_the_write_ahead_log_grew(tmp_path: Path, root: Path) -> None:
    killed(tmp_path / "longer" / "project.db", 30)
    killed(tmp_path / "logs" / "project.db", 20)
    text = (root / "params.yaml").read_text(encoding="utf-8")
    text = re.sub(r"^sweep: \S+", "sweep: mine", text, flags=re.MULTILINE)
    (tmp_path / "params.yaml").write_text(re.sub(r"^logs: \S+", "logs: logs", text, flags=re.MULTILINE))
    declared = tmp_path / "configs" / "sweeps" / "mine.yaml"
    declared.parent.mkdir(parents=True)
    declared.write_text("defaults: {tokens_per_step: 1000}\n")

    def said() -> str:
        for script in ("runs", "token_axis"):
            command = [sys.executable, str(root / "scripts" / f"{script}.py")]
            done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=True)
        return done.stdout + done.stderr

    assert "1 computed, 0 up to date" in said()
    assert "0 computed, 1 up to date" in said()
    shutil.copyfile(tmp_path / "longer" / "project.db-wal", tmp_path / "logs" / "project.db-wal")
    assert "1 computed, 0 up to date" in said()


def test_a_transaction_that_a_kill_tore_is_undone_in_a_copy(tmp_path: Path) -> None:
    """A rollback journal beside the database holds the pages as they were before the torn transaction."""
    folder = tmp_path / "logs"
    folder.mkdir()
    writer = """
import os, signal, sqlite3, sys
database = sqlite3.connect(sys.argv[1], isolation_level=None)
database.execute("CREATE TABLE metrics (id INTEGER PRIMARY KEY, timestamp TEXT, run_name TEXT, step INT, metrics TEXT)")
insert = "INSERT INTO metrics (timestamp, run_name, step, metrics) VALUES ('', 'r', ?, ?)"
database.execute("BEGIN")
database.executemany(insert, [(step, '{"train/loss": 3.5}') for step in range(20)])
database.execute("COMMIT")
database.execute("PRAGMA cache_size=1")  # pages are written to the file before the transaction ends
database.execute("BEGIN")
database.executemany(insert, [(step, '{"train/loss": 2.5}') for step in range(20, 5000)])
os.kill(os.getpid(), signal.SIGKILL)
"""
    subprocess.run([sys.executable, "-c", writer, str(folder / "project.db")], check=False)
    assert (folder / "project.db-journal").stat().st_size
    before = contents(folder)
    (axis,) = axes(folder).values()
    assert axis.columns["step"].tolist() == list(range(20))
    assert contents(folder) == before


def test_runs_of_one_name_are_told_apart_by_their_ids(tmp_path: Path) -> None:
    folder = tmp_path / "logs"
    folder.mkdir()
    with sqlite3.connect(folder / "project.db") as project:
        project.execute(
            "CREATE TABLE metrics (id INTEGER PRIMARY KEY, run_id TEXT, timestamp TEXT, run_name TEXT, step INTEGER, "
            "metrics TEXT)"
        )
        for run, level in (("0123456789", 3), ("abcdefghij", 2)):
            rows = [(run, "", "same", step, json.dumps({"train/loss": level})) for step in range(20)]
            project.executemany(
                "INSERT INTO metrics (run_id, timestamp, run_name, step, metrics) VALUES (?, ?, ?, ?, ?)", rows
            )
    project.close()
    assert {part: axis.columns["train_loss"][0] for part, axis in axes(folder).items()} == {
        "same (01234567)": 3,
        "same (abcdefgh)": 2,
    }


def test_projects_of_one_folder_whose_runs_have_the_same_name_stay_apart(tmp_path: Path) -> None:
    folder = tmp_path / "logs"
    folder.mkdir()
    for name in ("one", "two"):
        with sqlite3.connect(folder / f"{name}.db") as project:
            project.execute(
                "CREATE TABLE metrics (id INTEGER PRIMARY KEY, timestamp TEXT, run_name TEXT, step INT, metrics TEXT)"
            )
            rows = [("", run, step, json.dumps({"loss": 3})) for run in ("a", "b") for step in range(len(name) * 5)]
            project.executemany("INSERT INTO metrics (timestamp, run_name, step, metrics) VALUES (?, ?, ?, ?)", rows)
        project.close()
    assert [run.name for run in found(folder).runs] == ["one.db:a", "one.db:b", "two.db:a", "two.db:b"]


# MLflow

LARGEST = float(np.finfo(np.float64).max)


def mlflow(path: Path, values: dict[str, list[tuple[str, float, int, int, int]]], is_nan: bool = True) -> None:
    """A database as MLflow makes it.

    Args:
        path: of the file.
        values: name of a run -> (key, value, timestamp in ms, step, is_nan) of each value.
        is_nan: whether the table has that column, which old ones do not.
    """
    path.parent.mkdir(exist_ok=True)
    with sqlite3.connect(path) as database:
        extra = ", is_nan BOOLEAN" if is_nan else ""
        database.execute("CREATE TABLE runs (run_uuid TEXT PRIMARY KEY, name TEXT, lifecycle_stage TEXT)")
        database.execute("CREATE TABLE params (key TEXT, value TEXT, run_uuid TEXT)")
        database.execute("CREATE TABLE latest_metrics (key TEXT, value FLOAT, run_uuid TEXT)")
        database.execute(f"CREATE TABLE metrics (key TEXT, value FLOAT, timestamp INT, run_uuid TEXT, step INT{extra})")
        for name, rows in values.items():
            run = hashlib.sha256(name.encode()).hexdigest()[:32]
            stage = "deleted" if name.startswith("deleted") else "active"
            database.execute("INSERT INTO runs VALUES (?, ?, ?)", (run, name, stage))
            for key, value in (("global_batch_size", "8"), ("seq_len", "128"), ("note", "text")):
                database.execute("INSERT INTO params VALUES (?, ?, ?)", (key, value, run))
            for key, value, timestamp, step, nan in rows:
                cells = (key, value, timestamp, run, step, *([nan] if is_nan else []))
                database.execute(f"INSERT INTO metrics VALUES ({', '.join('?' * len(cells))})", cells)
    database.close()


def history(steps: int, level: float = 4.0) -> list[tuple[str, float, int, int, int]]:
    rows = []
    for step in range(steps):
        now = 1_700_000_000_000 + 500 * step
        rows += [("train/loss", level - step / 100, now, step, 0), ("lr", 1e-3, now, step, 0)]
        if step % 10 == 9:
            rows.append(("val/loss", level + 1, now + 100, step, 0))
    return rows


def test_each_run_of_an_mlflow_database_is_a_run_with_its_parameters_as_facts(tmp_path: Path) -> None:
    folder = tmp_path / "logs"
    mlflow(folder / "mlflow.db", {"a": history(30), "b": history(20), "deleted one": history(20), "empty": []})
    runs = discover(folder, SweepDeclaration(), [".*"]).runs
    assert [(run.part, run.format) for run in runs] == [("a", "mlflow-sqlite"), ("b", "mlflow-sqlite")]
    axis = axis_of(folder, runs[0].as_record(), "auto")
    rows = axis.meta["rows"]
    assert (rows["kept"], rows["with_train_loss"], rows["with_val_loss"], rows["superseded"]) == (30, 30, 3, 0)
    assert axis.columns["tokens"][-1] == 29 * 8 * 128
    assert axis.columns["elapsed_s"][-1] == 14.5


def test_what_mlflow_stores_instead_of_nan_and_infinity_is_no_number(tmp_path: Path) -> None:
    path = tmp_path / "logs" / "mlflow.db"
    now = 1_700_000_100_000
    mlflow(path, {"a": [*history(30), ("train/loss", 0.0, now, 30, 1), ("train/loss", LARGEST, now + 1, 31, 0)]})
    log = readers.read(str(path))
    assert {key: len(lines) for key, lines in log.unusable.items()} == {
        ("train_loss", "nan"): 1,
        ("train_loss", "inf"): 1,
    }
    assert np.isnan(log.columns["train_loss"][-2:]).all()


def test_a_run_that_resumed_in_mlflow_is_two_attempts(tmp_path: Path) -> None:
    folder = tmp_path / "logs"
    later = [(key, value - 1, now + 60_000, step, nan) for key, value, now, step, nan in history(40) if step >= 20]
    mlflow(folder / "mlflow.db", {"a": history(30) + later}, is_nan=False)
    (axis,) = axes(folder).values()
    assert [attempt["first_step"] for attempt in axis.meta["attempts"]] == [0, 20]
    assert axis.columns["step"].tolist() == list(range(40))


@pytest.mark.parametrize("name", ["mlflow.db", "metrics/loss"])
def test_values_that_mlflow_got_without_a_step_are_refused_with_how_to_log_them(tmp_path: Path, name: str) -> None:
    path = tmp_path / name
    path.parent.mkdir(exist_ok=True)
    rows = [("loss", 4.0 - row / 10, 1_700_000_000_000 + row, 0, 0) for row in range(10)]
    if name == "mlflow.db":
        mlflow(path, {"a": rows})
    else:
        path.write_text("".join(f"{now} {value} {step}\n" for _, value, now, step, _ in rows), encoding="utf-8")
    with pytest.raises(TokenAxisError, match="without a step") as refused:
        readers.read(str(path))
    assert "step=step" in str(refused.value.remedy)


def test_a_damaged_database_is_refused_or_read_as_far_as_it_goes(tmp_path: Path) -> None:
    path = tmp_path / "logs" / "mlflow.db"
    mlflow(path, {"a": history(30)})
    data = path.read_bytes()
    for seed in range(60):
        rng = np.random.default_rng(seed)
        damaged = bytearray(data)
        for spot in rng.integers(100, len(damaged), 20):
            damaged[spot] = rng.integers(256)
        path.write_bytes(bytes(damaged[: len(damaged) - int(rng.integers(0, 3000))]))
        try:
            for axis in axes(path.parent).values():
                assert np.isfinite(axis.columns["step"]).all()
        except TokenAxisError as error:
            assert error.reason
