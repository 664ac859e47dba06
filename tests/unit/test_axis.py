"""The whole token axis of a raw log: its table, its description, and what is refused."""

from __future__ import annotations

import json
import math
import time
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tokenaxis import columns
from tokenaxis.axis import TokenAxis, build_axis
from tokenaxis.declarations import Declaration
from tokenaxis.errors import Notice, TokenAxisError
from tokenaxis.readers.base import RawLog

NAN = math.nan
KEYS = {
    "logged_steps",
    "schema", "run", "format", "rows", "bad_lines", "unusable", "attempts", "superseded_tokens", "tokens", "batch",
    "warmup", "lr", "columns", "facts", "warnings",
}  # fmt: skip


def raw_log(bad_lines: list[int] | None = None, **cells: list[float]) -> RawLog:
    """A log by hand: canonical columns, line 2 on."""
    arrays = {name: np.array(values, float) for name, values in cells.items()}
    rows = len(arrays["step"])
    bad = bad_lines or []
    return RawLog("csv", arrays, np.arange(2, rows + 2), {name: name for name in arrays}, rows + len(bad), bad)


def axis_of(raw: RawLog, name: str = "run.csv", convention: str = "auto", **declared: Any) -> TokenAxis:
    return build_axis(raw, Declaration(**({"tokens_per_step": 100.0} | declared)), name, convention)


def codes(axis: TokenAxis) -> list[str]:
    return [warning["code"] for warning in axis.meta["warnings"]]


def test_the_table_has_the_canonical_columns_with_their_types() -> None:
    axis = axis_of(raw_log(step=[0, 1], train_loss=[3, 2], lr=[1, 1], elapsed_s=[0, 5], val_loss=[NAN, 2.5]))
    assert set(axis.columns) == {*columns.ALWAYS, "train_loss", "val_loss", "lr", "elapsed_s"}
    for name, values in axis.columns.items():
        assert values.dtype == columns.BY_NAME[name].kind
        assert values.shape == (2,)


def test_the_description_has_exactly_the_documented_keys_and_is_json() -> None:
    raw = raw_log([9], step=[0, 1, 2, 1, 2], train_loss=[3, 2, 1, NAN, 1.5], lr=[1, 2, 2, 2, 2])
    raw.unusable[("train_loss", "nan")] = np.array([5])
    raw.facts.append(("n_layers", np.int64(12), "emitted", None))
    raw.facts.append(("odd", [np.float64("nan"), (1, 2)], "detected", "a note"))
    meta = axis_of(raw).meta
    assert set(meta) == KEYS
    assert json.loads(json.dumps(meta, allow_nan=False)) == meta
    assert meta["facts"] == [
        {"key": "n_layers", "value": 12, "source": "emitted", "note": None},
        {"key": "odd", "value": [None, [1, 2]], "source": "detected", "note": "a note"},
    ]


def test_every_row_read_is_accounted_for() -> None:
    raw = raw_log([9], step=[0, 1, 2, 1, 1, 2], train_loss=[3, 2, 1, 2.5, NAN, 1.5], val_loss=[NAN] * 4 + [2.7, NAN])
    assert axis_of(raw).meta["rows"] == {
        "read": 7,
        "bad": 1,
        "superseded": 2,
        "merged": 1,
        "kept": 3,
        "with_train_loss": 3,
        "with_val_loss": 1,
    }


def test_attempts_say_what_time_went_into_steps_that_were_done_again() -> None:
    log = raw_log(step=[0, 10, 20, 30, 20, 30, 40], train_loss=[7, 6, 5, 4, 5, 4, 3], elapsed_s=[1, 3, 5, 7, 2, 4, 6])
    # the last row that counts was logged at 3 s, the last one at 7 s
    assert [attempt["superseded_s"] for attempt in axis_of(log).meta["attempts"]] == [4, 0]
    gone = raw_log(step=[5, 10, 0, 10, 20], train_loss=[7, 6, 7, 6, 5], elapsed_s=[1, 3, 1, 3, 5])
    assert [attempt["superseded_s"] for attempt in axis_of(gone).meta["attempts"]] == [2, 0]


def test_attempts_say_what_was_spent_on_steps_that_were_done_again() -> None:
    meta = axis_of(raw_log(step=[0, 10, 20, 30, 20, 30, 40], train_loss=[7, 6, 5, 4, 5, 4, 3])).meta
    # steps 20 to 30, both included, were done twice: 11 steps of 100 tokens
    assert meta["attempts"] == [
        {"first_step": 0, "last_step": 30, "rows": 4, "superseded_rows": 2, "superseded_tokens": 1100},
        {"first_step": 20, "last_step": 40, "rows": 3, "superseded_rows": 0, "superseded_tokens": 0},
    ]
    assert meta["superseded_tokens"] == 1100


def test_superseded_tokens_are_counted_with_the_batch_of_their_own_attempt() -> None:
    raw = raw_log(
        step=[0, 1, 2, 3, 2, 3], train_loss=[7, 6, 5, 4, 5, 4], tokens_per_step=[100, 100, 200, 200, 300, 300]
    )
    axis = axis_of(raw)
    assert axis.meta["superseded_tokens"] == 400
    assert axis.columns["tokens"].tolist() == [0, 100, 200, 500]


def test_superseded_tokens_follow_a_declared_schedule() -> None:
    raw = raw_log(step=[0, 1, 2, 3, 2, 3], train_loss=[7, 6, 5, 4, 5, 4])
    axis = axis_of(raw, batch_schedule=((0.0, 100.0), (250.0, 500.0)))
    assert axis.meta["superseded_tokens"] == 100 + 500


def test_a_resume_and_a_second_run_in_one_file_are_told_apart() -> None:
    assert "resumed" in codes(axis_of(raw_log(step=[0, 1, 2, 1, 2], train_loss=[3, 2, 1, 2, 1])))
    again = axis_of(raw_log(step=[0, 1, 2, 0, 1], train_loss=[3, 2, 1, 4, 3]))
    assert "restarted" in codes(again)
    assert again.columns["train_loss"].tolist() == [4, 3]


def test_rows_sorted_from_last_to_first_are_turned_around_with_a_warning() -> None:
    axis = axis_of(raw_log(step=[3, 2, 1, 0], train_loss=[1, 2, 3, 4]))
    assert axis.columns["train_loss"].tolist() == [4, 3, 2, 1]
    assert all(values.flags.c_contiguous for values in axis.columns.values())  # they are written as buffers
    assert codes(axis)[0] == "newest_first"


def test_cells_without_a_number_are_listed_by_kind_with_steps_and_lines() -> None:
    raw = raw_log(step=[0, 1, 2, 3], train_loss=[3, NAN, NAN, 1])
    raw.unusable[("train_loss", "inf")] = np.array([3])
    raw.unusable[("train_loss", "text")] = np.array([4])
    axis = axis_of(raw)
    assert axis.meta["unusable"] == [
        {"column": "train_loss", "kind": "inf", "rows": 1, "first_step": 1, "last_step": 1, "lines": [3]},
        {"column": "train_loss", "kind": "text", "rows": 1, "first_step": 2, "last_step": 2, "lines": [4]},
    ]
    assert {"inf_cells", "text_cells"} <= set(codes(axis))


def test_a_cell_counts_as_unusable_only_where_its_step_has_no_value_at_all() -> None:
    """Some loggers write nan for the loss that a row does not have."""
    raw = raw_log(step=[0, 0, 1, 2, 1, 2], train_loss=[3, NAN, NAN, 1, 2, 1], val_loss=[NAN, 4, NAN, NAN, NAN, NAN])
    raw.unusable[("train_loss", "nan")] = np.array([3, 4])  # one merged away, one superseded
    assert axis_of(raw).meta["unusable"] == []


def test_a_step_that_is_no_whole_number_makes_a_bad_row() -> None:
    axis = axis_of(raw_log(step=[0, 1, 1.5, -1, 2], train_loss=[5, 4, 3, 2, 1]))
    assert axis.columns["step"].tolist() == [0, 1, 2]
    assert axis.meta["bad_lines"] == [4, 5]
    assert (axis.meta["rows"]["read"], axis.meta["rows"]["bad"]) == (5, 2)
    assert {"fractional_steps", "negative_steps"} <= set(codes(axis))


@pytest.mark.parametrize("steps", [[0.1, 0.2, 0.3], [-1, -2, 5], [1e300, 2e300, 3e300], [2.0**54, 2.0**60, 1.0]])
def test_a_step_column_of_fractions_or_absurd_numbers_is_refused_with_its_line(steps: list[float]) -> None:
    with pytest.raises(TokenAxisError, match="no optimizer steps") as caught:
        axis_of(raw_log(step=steps, train_loss=[1, 1, 1]))
    assert caught.value.line == 2
    assert "columns: {step:" in str(caught.value)


def test_a_log_without_a_row_or_without_a_loss_is_refused() -> None:
    with pytest.raises(TokenAxisError, match="no row"):
        axis_of(raw_log(step=[], train_loss=[]))
    with pytest.raises(TokenAxisError, match="neither a training nor a validation loss"):
        axis_of(raw_log(step=[0, 1], lr=[1, 1]))


def test_a_refusal_names_the_run() -> None:
    with pytest.raises(TokenAxisError, match="batch size is unknown") as caught:
        axis_of(raw_log(step=[0, 1], train_loss=[2, 1]), name="a/run.csv", tokens_per_step=None)
    assert caught.value.file == "a/run.csv"


def test_conventions_are_checked_by_name() -> None:
    raw = raw_log(step=[0, 1], train_loss=[2, 1])
    with pytest.raises(TokenAxisError, match=r"token_axis\.tokens_convention"):
        axis_of(raw, convention="sometimes")
    with pytest.raises(TokenAxisError, match="tokens_convention is 'later'"):
        axis_of(raw, tokens_convention="later")


def test_warnings_of_the_reader_come_first() -> None:
    raw = raw_log(step=[0, 1], train_loss=[2, 1])
    raw.warnings.append(Notice("odd_file", "an odd file"))
    assert axis_of(raw).meta["warnings"][0] == {"code": "odd_file", "message": "an odd file"}


def test_stages_are_stretches_of_equal_batch() -> None:
    raw = raw_log(step=[0, 1, 2, 3], train_loss=[4, 3, 2, 1], tokens_per_step=[10, 10, 30, 30])
    assert axis_of(raw).meta["batch"] == {
        "source": "column",
        "stages": [
            {"first_step": 0, "last_step": 1, "first_tokens": 0, "last_tokens": 10, "tokens_per_step": 10},
            {"first_step": 2, "last_step": 3, "first_tokens": 20, "last_tokens": 50, "tokens_per_step": 30},
        ],
    }


def test_a_batch_that_varies_from_row_to_row_is_one_stage_with_its_mean() -> None:
    rng = np.random.default_rng(1)
    sizes = rng.integers(90, 110, 2000).astype(float)
    step = np.arange(2000.0)
    raw = raw_log(step=step.tolist(), train_loss=(5 - step / 1000).tolist(), tokens_per_step=sizes.tolist())
    axis = axis_of(raw)
    assert len(axis.meta["batch"]["stages"]) == 1
    assert axis.meta["batch"]["stages"][0]["tokens_per_step"] == sizes.mean()
    assert "batch_varies" in codes(axis)
    assert np.array_equal(axis.columns["tokens_per_step"], sizes)


def test_the_raw_log_is_left_alone() -> None:
    raw = raw_log(
        step=[0, 1, 2, 1], train_loss=[3, NAN, 1, 2], tokens=[100, NAN, 300, 200], tokens_per_step=[100, 0, 100, 100]
    )
    before = {name: values.copy() for name, values in raw.columns.items()}
    for values in raw.columns.values():
        values.flags.writeable = False
    axis_of(raw)
    for name, values in before.items():
        assert np.array_equal(values, raw.columns[name], equal_nan=True)
    assert raw.warnings == []


def test_a_missing_rate_is_a_warning_unless_the_start_of_the_fit_is_declared() -> None:
    raw = raw_log(step=[0, 1, 2], train_loss=[3, 2, 1])
    assert "warmup_not_visible" in codes(axis_of(raw))
    assert codes(axis_of(raw, fit_start_step=1)) == []


cells = st.one_of(
    st.just(NAN), st.integers(-3, 50).map(float), st.sampled_from([0.5, 1e9, 1e16, 1e300, -1e300, 1e-300])
)


@settings(max_examples=400, deadline=None, derandomize=True)
@given(st.data())
def test_any_table_gives_a_sound_axis_or_the_one_expected_error(data: st.DataObject) -> None:
    rows = data.draw(st.integers(1, 14))
    names = data.draw(
        st.lists(st.sampled_from(["train_loss", "val_loss", "lr", "tokens", "tokens_per_step"]), unique=True)
    )
    table = {name: data.draw(st.lists(cells, min_size=rows, max_size=rows)) for name in names}
    step = st.one_of(st.integers(0, 9).map(float), st.sampled_from([-1.0, 0.5, 1e15, 1e300]))
    order = data.draw(st.sampled_from([sorted, list]))
    raw = raw_log(step=order(data.draw(st.lists(step, min_size=rows, max_size=rows))), **table)
    for name in names:
        raw.unusable[(name, "nan")] = raw.lines[np.isnan(raw.columns[name])]
    declared = data.draw(st.sampled_from([{}, {"tokens_per_step": None}, {"batch_schedule": ((0.0, 7.0), (9.0, 3.0))}]))
    try:
        axis = axis_of(raw, convention=data.draw(st.sampled_from(["auto", "before", "after"])), **declared)
    except TokenAxisError as error:
        assert error.reason
        return
    json.dumps(axis.meta, allow_nan=False)
    assert set(axis.meta) == KEYS
    count = axis.meta["rows"]
    assert count["read"] == count["bad"] + count["superseded"] + count["merged"] + count["kept"]
    assert count["superseded"] == sum(attempt["superseded_rows"] for attempt in axis.meta["attempts"])
    assert (np.diff(axis.columns["step"]) > 0).all()
    assert (np.diff(axis.columns["tokens"]) >= 0).all()
    assert axis.columns["tokens"][0] >= 0
    assert np.isfinite(axis.columns["tokens"]).all()
    assert (axis.columns["tokens_per_step"] > 0).all()


def test_a_run_of_10000_rows_takes_milliseconds() -> None:
    """Measured .2 to .6 ms; 20 ms would mean a loop over rows."""
    step = np.r_[0:6000, 5000:9000].astype(float)
    rows = {"train_loss": 5 - step / 1e4, "lr": np.minimum(1, (step + 1) / 200), "tokens": step * 100}
    raw = raw_log(step=step.tolist(), **{name: values.tolist() for name, values in rows.items()})
    took = []
    for _ in range(5):
        start = time.perf_counter()
        axis_of(raw)
        took.append(time.perf_counter() - start)
    assert min(took) < 0.02
