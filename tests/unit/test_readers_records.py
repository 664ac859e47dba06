"""Logs of records: JSON lines and trainer states."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tokenaxis import readers
from tokenaxis.declarations import Declaration
from tokenaxis.errors import TokenAxisError


def read(folder: Path, lines: list[Any], name: str = "run.jsonl", end: str = "\n", **declared: Any) -> readers.RawLog:
    path = folder / name
    text = "\n".join(line if isinstance(line, str) else json.dumps(line) for line in lines) + end
    path.write_text(text, encoding="utf-8")
    return readers.read(str(path), Declaration(**declared))


def test_keys_are_known_by_any_alias_also_inside_objects(tmp_path: Path) -> None:
    log = read(tmp_path, [{"current_steps": 5, "loss": 3.5, "lr": 0.1}, {"current_steps": 10, "loss": 3.25, "lr": 0.2}])
    assert log.names == {"step": "current_steps", "train_loss": "loss", "lr": "lr"}
    log = read(tmp_path, [{"global_step": n, "train": {"loss": 4.0 - n}, "optim": {"lr": 0.1}} for n in range(3)])
    assert log.names == {"step": "global_step", "train_loss": "train.loss", "lr": "optim.lr"}


def test_records_without_a_step_or_a_value_are_passed_with_a_count(tmp_path: Path) -> None:
    log = read(tmp_path, [{"config": {"lr": 1}}, {"step": 0, "loss": 3.5}, {"epoch": 1}, {"step": 1, "note": "saved"}])
    assert (log.rows_read, log.bad_lines, log.lines.tolist()) == (1, [], [2])
    (notice,) = log.warnings
    assert notice.code == "records_passed"
    assert "3 records" in notice.message


def test_a_loss_without_a_step_is_a_bad_row(tmp_path: Path) -> None:
    log = read(tmp_path, [{"step": 0, "loss": 3.5}, {"loss": 3.25}])
    assert (log.rows_read, log.bad_lines) == (2, [2])


def test_a_torn_last_line_and_lines_of_noise_are_bad_rows(tmp_path: Path) -> None:
    log = read(
        tmp_path, [{"step": 0, "loss": 3.5}, "Saving checkpoint", {"step": 1, "loss": 3.25}, '{"step": 2, "lo'], end=""
    )
    assert log.columns["step"].tolist() == [0, 1]
    assert log.bad_lines == [2, 4]
    assert {"torn_last_line", "not_json"} == {notice.code for notice in log.warnings}


def test_losses_that_are_no_numbers_are_flagged(tmp_path: Path) -> None:
    lines = [{"step": 0, "loss": "3.5"}, '{"step": 1, "loss": NaN}', '{"step": 2, "loss": -Infinity}']
    lines += [{"step": 3, "loss": "oops"}, {"step": 4, "loss": None, "lr": 1}, {"step": 5, "loss": True, "lr": 1}]
    log = read(tmp_path, lines)
    np.testing.assert_array_equal(log.columns["train_loss"], [3.5, *[np.nan] * 5])
    assert log.unusable["train_loss", "nan"].tolist() == [2]
    assert log.unusable["train_loss", "inf"].tolist() == [3]
    assert log.unusable["train_loss", "text"].tolist() == [4]


def test_a_split_key_tells_train_from_val(tmp_path: Path) -> None:
    log = read(tmp_path, [{"step": n, "split": split, "loss": n + 1.5} for n in range(2) for split in ("train", "val")])
    np.testing.assert_array_equal(log.columns["train_loss"], [1.5, np.nan, 2.5, np.nan])
    np.testing.assert_array_equal(log.columns["val_loss"], [np.nan, 1.5, np.nan, 2.5])


def test_an_epoch_mean_does_not_hide_the_loss_of_every_step(tmp_path: Path) -> None:
    lines = [{"step": n, "loss": 4.0 - n / 100} for n in range(30)] + [{"step": 30, "train_loss": 3.9, "val_loss": 3.5}]
    log = read(tmp_path, lines)
    assert log.names["train_loss"] == "loss"
    assert log.columns["val_loss"][-1] == 3.5
    assert np.isnan(log.columns["train_loss"][-1])


def test_a_trainer_state_is_read_with_lines_and_without_its_summary(tmp_path: Path) -> None:
    history = [
        {"loss": 3.5, "learning_rate": 0.1, "step": 5},
        {"eval_loss": 3.4, "step": 5},
        {"loss": 3.25, "step": 10},
    ]
    history.append({"step": 10, "train_loss": 3.4, "train_runtime": 100.0})
    state = {"global_step": 10, "log_history": history, "max_steps": 10, "logging_steps": 5, "best_metric": None}
    log = read(tmp_path, [json.dumps(state, indent=1)], "trainer_state.json")
    assert log.format == "hf-trainer-state"
    np.testing.assert_array_equal(log.columns["train_loss"], [3.5, np.nan, 3.25])
    np.testing.assert_array_equal(log.columns["val_loss"], [np.nan, 3.4, np.nan])
    assert log.lines.tolist() == [4, 9, 13]
    assert ("planned_steps", 10, "emitted", "max_steps beside log_history") in log.facts


def test_a_trainer_state_that_breaks_off_is_read_up_to_there(tmp_path: Path) -> None:
    state = json.dumps({"log_history": [{"loss": 4.0 - n, "step": n} for n in range(3)], "max_steps": 3})
    log = read(tmp_path, [state[: state.index('"step": 2') + 4]], "trainer_state.json")
    assert log.columns["step"].tolist() == [0, 1]
    assert "torn_last_line" in {notice.code for notice in log.warnings}
    with pytest.raises(TokenAxisError, match="empty log_history"):
        read(tmp_path, ['{"log_history": [], "global_step": 0}'], "trainer_state.json")


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(st.tuples(st.integers(0, 2**53), st.floats(0.001, 100), st.booleans()), min_size=1, max_size=30))
def test_what_was_written_is_read_back_exactly(tmp_path: Path, rows: list[tuple[int, float, bool]]) -> None:
    log = read(tmp_path, [{"step": step, "val_loss" if val else "train_loss": loss} for step, loss, val in rows])
    assert log.columns["step"].tolist() == [step for step, _, _ in rows]
    both = [log.columns.get(name, np.full(len(rows), np.nan)) for name in ("train_loss", "val_loss")]
    np.testing.assert_array_equal(np.where(np.isnan(both[0]), both[1], both[0]), [loss for _, loss, _ in rows])
