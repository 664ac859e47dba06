"""Tables that are remembered from one stage to the next."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from tokenaxis import recent, store


def written(path: Path, value: float) -> Path:
    store.write_parquet(path, {"step": np.arange(5), "loss": np.full(5, value)}, {"value": value}, f"print{value}")
    return path


def test_a_table_that_was_replaced_is_read_anew(tmp_path: Path) -> None:
    for value in (1.0, 2.0, 3.0):
        path = written(tmp_path / "run.parquet", value)
        for _ in range(2):
            columns, meta = store.read_parquet(path)
            assert columns["loss"].tolist() == [value] * 5 and meta == {"value": value}
            assert store.read_parquet_meta(path) == {"value": value, "fingerprint": f"print{value}"}


def test_a_table_that_was_deleted_is_gone(tmp_path: Path) -> None:
    path = written(tmp_path / "run.parquet", 1.0)
    store.read_parquet(path)
    path.unlink()
    assert store.parquet_fingerprint(path) is None
    with pytest.raises(OSError):
        store.read_parquet(path)


def test_what_one_stage_does_with_a_table_is_not_seen_by_the_next(tmp_path: Path) -> None:
    path = written(tmp_path / "run.parquet", 1.0)
    columns, meta = store.read_parquet(path)
    with pytest.raises(ValueError):
        columns["loss"][0] = 7
    columns["more"] = meta["more"] = columns.pop("step")
    again, meta = store.read_parquet(path)
    assert list(again) == ["step", "loss"] and meta == {"value": 1.0}


def test_the_oldest_tables_make_room(tmp_path: Path) -> None:
    kept = recent.Recent(room=200)  # two tables of 80 bytes
    paths = [written(tmp_path / f"{n}.parquet", float(n)) for n in range(3)]
    for path in paths:
        kept.keep(path, recent.Table({"loss": np.ones(10)}, {}), recent.stamp(path))
    assert [kept.get(path) is not None for path in paths] == [False, True, True]


def test_some_columns_of_a_table_are_read_by_name_and_not_remembered_as_all(tmp_path: Path) -> None:
    path = written(tmp_path / "run.parquet", 1.0)
    assert list(store.read_parquet(path, ["loss", "none"])[0]) == ["loss"]
    assert list(store.read_parquet(path)[0]) == ["step", "loss"]
    assert list(store.read_parquet(path, ["step"])[0]) == ["step"]
