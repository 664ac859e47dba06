"""Delimited tables: what is read, what is reported with its line, what is refused."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tokenaxis import readers
from tokenaxis.declarations import Declaration
from tokenaxis.errors import TokenAxisError


def read(folder: Path, text: str | bytes, name: str = "run.csv", **declared: object) -> readers.RawLog:
    path = folder / name
    path.write_bytes(text.encode() if isinstance(text, str) else text)
    return readers.read(str(path), Declaration(**declared))  # type: ignore[arg-type]


def codes(log: readers.RawLog) -> set[str]:
    return {notice.code for notice in log.warnings}


def test_a_well_formed_table_is_read_with_its_lines(tmp_path: Path) -> None:
    log = read(tmp_path, "step,train_loss,lr\n0,4.5,0.1\n1,4.25,0.2\n")
    assert log.columns["train_loss"].tolist() == [4.5, 4.25]
    assert log.lines.tolist() == [2, 3]
    assert log.names == {"step": "step", "train_loss": "train_loss", "lr": "lr"}
    assert (log.rows_read, log.bad_lines, log.unusable, log.warnings) == (2, [], {}, [])


@pytest.mark.parametrize("delimiter", [",", "\t", ";", "|", " ", "   "])
def test_the_delimiter_is_found(tmp_path: Path, delimiter: str) -> None:
    log = read(tmp_path, "step,train_loss\n0,4.5\n1,4.25\n".replace(",", delimiter))
    assert log.columns["train_loss"].tolist() == [4.5, 4.25]


def test_a_markdown_table_is_a_table(tmp_path: Path) -> None:
    log = read(tmp_path, "| step | loss |\n|------|-----:|\n| 0 | 4.5 |\n| 1 | 4.25 |\n")
    assert log.columns["train_loss"].tolist() == [4.5, 4.25]
    assert log.lines.tolist() == [3, 4]


def test_blank_lines_comments_and_repeated_headers_are_no_rows_but_count_as_lines(tmp_path: Path) -> None:
    log = read(tmp_path, "# made by us\n\nstep,loss\n0,4.5\n\n# resumed\nstep,loss\n1,4.25\n")
    assert log.lines.tolist() == [4, 8]
    assert (log.rows_read, log.bad_lines) == (2, [])
    assert codes(log) == {"repeated_header"}


def test_a_header_that_changed_inside_the_file_moves_the_columns(tmp_path: Path) -> None:
    log = read(tmp_path, "step,loss\n0,4.5\nstep,lr,loss\n1,0.1,4.25\n")
    assert log.columns["train_loss"].tolist() == [4.5, 4.25]
    assert log.rows_read == 2


def test_rows_with_a_wrong_number_of_cells_are_bad_and_listed(tmp_path: Path) -> None:
    log = read(tmp_path, "step,loss,lr\n0,4.5,1\n1,4.4\n2,4.3,1,9\n3,4.2,1\n")
    assert log.columns["step"].tolist() == [0, 3]
    assert (log.rows_read, log.bad_lines) == (4, [3, 4])
    assert "wrong_number_of_fields" in codes(log)


def test_a_trailing_delimiter_is_no_cell(tmp_path: Path) -> None:
    assert read(tmp_path, "step,loss\n0,4.5,\n1,4.25,\n").columns["train_loss"].tolist() == [4.5, 4.25]


def test_rows_without_a_usable_step_are_bad(tmp_path: Path) -> None:
    log = read(tmp_path, "step,loss\n0,4.5\n,4.4\nnan,4.3\n-1,4.2\n1.5,4.1\n2.5,4.0\nx,3.9\n2,3.8\n3,3.7\n4,3.7\n")
    assert log.columns["step"].tolist() == [0, 2, 3, 4]
    assert log.bad_lines == [3, 4, 5, 6, 7, 8]
    said = {notice.code: notice.message for notice in log.warnings}
    assert said["rows_without_step"].startswith("3 rows without a usable step left out (lines 3, 4, 8)")
    assert said["negative_steps"] == "1 row with a step below 0 left out (line 5; the first is -1)"
    assert said["fractional_steps"].endswith("that is no whole number left out (lines 6, 7; the first is 1.5)")


@pytest.mark.parametrize("messy", ["", "# a comment forces the slow way\n"])
def test_a_step_beyond_what_a_float_counts_is_refused_with_its_line_not_dropped(tmp_path: Path, messy: str) -> None:
    rows = "".join(f"{10**17 + step},4.0\n" for step in range(1, 50))
    with pytest.raises(
        TokenAxisError, match="no optimizer steps: 1e\\+17 is beyond 2\\^53|10000000000000000"
    ) as caught:
        read(tmp_path, f"step,train_loss\n{messy}0,4.5\n{rows}")
    assert caught.value.line == (4 if messy else 3)
    assert "`defaults: {columns: {step: " in str(caught.value.remedy)


@pytest.mark.parametrize(
    ("steps", "says"), [("n / 50", "0.02 is no whole number"), ("-n", "-1 is below 0"), ("n / 2 - 9", "-9 is below 0")]
)
def test_a_column_of_epochs_or_negative_numbers_is_refused_not_reduced_to_a_row_or_two(
    steps: str, says: str, tmp_path: Path
) -> None:
    rows = "".join(f"{eval(steps, {'n': n})},4.0\n" for n in range(50))
    with pytest.raises(TokenAxisError, match=f"no optimizer steps: {says}") as caught:
        read(tmp_path, f"step,train_loss\n{rows}")
    assert caught.value.line in (2, 3)


def test_a_loss_beyond_a_million_is_unusable_as_infinity_is(tmp_path: Path) -> None:
    log = read(tmp_path, "step,train_loss\n0,4.5\n1,1e30\n2,-1000001\n3,1e6\n")
    assert np.isnan(log.columns["train_loss"]).tolist() == [False, True, True, False]
    assert log.unusable["train_loss", "huge"].tolist() == [3, 4]


@pytest.mark.parametrize("messy", ["", "# a comment forces the slow way\n"])
def test_cells_without_a_finite_number_are_flagged_with_line_and_kind(tmp_path: Path, messy: str) -> None:
    log = read(tmp_path, f"step,train_loss\n0,4.5\n1,nan\n2,-inf\n3,inf\n4,\n5,NaN\n{messy}6,4.0\n")
    assert log.unusable["train_loss", "nan"].tolist() == [3, 7]
    assert log.unusable["train_loss", "inf"].tolist() == [4, 5]
    assert np.isnan(log.columns["train_loss"]).tolist() == [False, True, True, True, True, True, False]


def test_text_in_a_numeric_cell_is_flagged_and_quoted(tmp_path: Path) -> None:
    log = read(tmp_path, "step,train_loss\n0,4.5\n1,oops\n2,4.0\n")
    assert log.unusable["train_loss", "text"].tolist() == [3]
    assert "'oops'" in log.warnings[0].message
    assert "line 3" in log.warnings[0].message


@pytest.mark.parametrize("blank", ["", "None", "null", "N/A", "-"])
def test_what_loggers_write_for_nothing_is_a_blank(tmp_path: Path, blank: str) -> None:
    log = read(tmp_path, f"step,train_loss,val_loss\n0,4.5,4.4\n1,4.25,{blank}\n")
    assert log.unusable == {}
    assert np.isnan(log.columns["val_loss"]).tolist() == [False, True]


@pytest.mark.parametrize(
    ("tail", "bad"),
    [
        ("2,4.3", [4]),  # fewer fields
        ("2,4.300000,0.0", [4]),  # the last cell is shorter than any other
        ("2,4.300000,0.001000", []),  # whole: some writers end without a line end
        ("2,4.300000,0.001000\n", []),
    ],
)
def test_a_torn_last_line_is_left_out_and_a_whole_one_is_kept(tmp_path: Path, tail: str, bad: list[int]) -> None:
    log = read(tmp_path, "step,loss,lr\n0,4.500000,0.001000\n1,4.400000,0.001000\n" + tail)
    assert log.bad_lines == bad
    assert log.rows_read == 3
    assert ("torn_last_line" in codes(log)) == bool(bad)


def test_duplicate_columns_must_agree(tmp_path: Path) -> None:
    log = read(tmp_path, "step,loss,loss\n0,4.5,4.5\n1,4.25,4.25\n")
    assert codes(log) == {"duplicate_column"}
    with pytest.raises(TokenAxisError, match="different values") as caught:
        read(tmp_path, "step,loss,loss\n0,4.5,4.5\n1,4.25,4.0\n")
    assert caught.value.line == 3


def test_of_columns_whose_names_mean_the_same_the_fuller_is_taken(tmp_path: Path) -> None:
    log = read(tmp_path, "step,train/loss,train_loss\n0,4.5,\n1,4.25,4.0\n2,4.0,\n")
    assert log.columns["train_loss"].tolist() == [4.5, 4.25, 4.0]
    assert "'train/loss' was taken" in log.warnings[0].message


def test_numbers_with_units_separators_and_float_steps_are_read(tmp_path: Path) -> None:
    log = read(tmp_path, 'step,loss,tokens\n"0.0",4.5,0\n"1.0",4.4,500K\n"1,200",4.25,1.25B\n')
    assert log.columns["step"].tolist() == [0, 1, 1200]
    assert log.columns["tokens"].tolist() == [0, 5e5, 1.25e9]


def test_decimal_commas_are_read_and_thousands_are_not_taken_for_them(tmp_path: Path) -> None:
    log = read(tmp_path, "step;loss\n0;4,5\n1;4,25\n")
    assert log.columns["train_loss"].tolist() == [4.5, 4.25]
    log = read(tmp_path, "step;loss\n0;4.5\n1,200;4.25\n")
    assert log.columns["step"].tolist() == [0, 1200]


@pytest.mark.parametrize(
    ("name", "cells", "seconds"),
    [
        ("elapsed_ms", ("500", "1500"), [0.5, 1.5]),
        ("cumulative_time_ms", ("500", "1500"), [0.5, 1.5]),
        ("elapsed_time", ("0:00:30", "1 day, 0:00:00"), [30.0, 86400.0]),
        ("wall_time_s", ("3", "4"), [3.0, 4.0]),
        ("train_time_minutes", ("3", "4"), [180.0, 240.0]),
    ],
)
def test_elapsed_time_is_in_seconds_whatever_its_unit(
    tmp_path: Path, name: str, cells: tuple[str, str], seconds: list[float]
) -> None:
    log = read(tmp_path, f'step,loss,{name}\n0,4.5,"{cells[0]}"\n1,4.25,"{cells[1]}"\n')
    # a factor of 1/60 is not exact in binary
    assert log.columns["elapsed_s"].tolist() == pytest.approx(seconds, rel=1e-12)


def test_a_bare_loss_is_the_training_loss_unless_there_is_an_explicit_one(tmp_path: Path) -> None:
    assert read(tmp_path, "step,loss,val_loss\n0,4.5,4.6\n").names["train_loss"] == "loss"
    log = read(tmp_path, "step,loss,train_loss\n0,4.5,4.6\n1,4.4,4.5\n")
    assert log.names["train_loss"] == "train_loss"
    assert codes(log) == {"train_loss_chosen"}


def test_a_summary_column_does_not_hide_the_loss_of_every_step(tmp_path: Path) -> None:
    rows = "".join(f"{step},{4 - step / 100},\n" for step in range(50))
    assert read(tmp_path, "step,loss,train_loss\n" + rows + "50,,3.7\n").names["train_loss"] == "loss"


def test_the_log_index_of_wandb_is_the_last_choice_for_the_step(tmp_path: Path) -> None:
    log = read(tmp_path, "_step,train/global_step,train/loss\n0,10,4.5\n1,20,4.25\n")
    assert log.columns["step"].tolist() == [10, 20]
    assert log.names["step"] == "train/global_step"


@pytest.mark.parametrize("comment", ["", "# slow\n"])
def test_a_type_column_splits_train_and_val_and_keeps_blanks_blank(tmp_path: Path, comment: str) -> None:
    log = read(tmp_path, f"step,type,loss\n0,val,4.5\n0,train,4.6\n{comment}1,train,\n2,hella,0.3\n3,val,4.0\n")
    assert log.rows_read == 5
    np.testing.assert_array_equal(log.columns["val_loss"], [4.5, np.nan, np.nan, np.nan, 4.0])
    np.testing.assert_array_equal(log.columns["train_loss"], [np.nan, 4.6, np.nan, np.nan, np.nan])


def test_of_several_validation_sets_the_first_is_taken_and_the_choice_is_named(tmp_path: Path) -> None:
    text = "_step,eval/c4/CrossEntropyLoss,eval/pile/CrossEntropyLoss,eval/pile_bpb/x\n100,4.5,4.0,1\n200,4.25,3.9,1\n"
    log = read(tmp_path, text)
    assert log.names["val_loss"] == "eval/c4/CrossEntropyLoss"
    (notice,) = log.warnings
    assert notice.code == "val_loss_chosen"
    assert notice.message.startswith("2 validation losses")
    assert "`defaults: {columns: {val_loss: eval/pile/CrossEntropyLoss}}`" in notice.message
    log = read(tmp_path, text, columns={"val_loss": "eval/pile/CrossEntropyLoss"})
    assert log.columns["val_loss"].tolist() == [4.0, 3.9]
    assert log.warnings == []


def test_declared_columns_win_over_every_alias(tmp_path: Path) -> None:
    log = read(tmp_path, "step,n,loss,ce\n0,7,4.5,1.5\n1,8,4.4,1.25\n", columns={"step": "n", "train_loss": "ce"})
    assert log.columns["step"].tolist() == [7, 8]
    assert log.columns["train_loss"].tolist() == [1.5, 1.25]


def test_a_declared_column_that_is_not_there_is_refused_with_those_there_are(tmp_path: Path) -> None:
    with pytest.raises(TokenAxisError, match=r"no column 'ce'.*'step', 'loss'"):
        read(tmp_path, "step,loss\n0,4.5\n", columns={"train_loss": "ce"})


def test_a_column_without_any_value_is_not_a_column_of_the_log(tmp_path: Path) -> None:
    assert "val_loss" not in read(tmp_path, "step,loss,val_loss\n0,4.5,\n1,4.4,\n").columns
    with pytest.raises(TokenAxisError, match="no loss value"):
        read(tmp_path, "step,loss\n0,\n1,\n")


def test_quoted_cells_may_span_lines_and_a_stray_quote_swallows_none(tmp_path: Path) -> None:
    log = read(tmp_path, 'step,note,loss\n0,"two\nlines",4.5\n1,5" disk,4.4\n2,x,4.3\n3,y,4.2\n')
    assert log.columns["step"].tolist() == [0, 1, 2, 3]
    assert log.lines.tolist() == [2, 4, 5, 6]


@pytest.mark.parametrize("encoding", ["utf-8-sig", "utf-16", "utf-16-le", "utf-16-be"])
def test_byte_order_marks_are_understood(tmp_path: Path, encoding: str) -> None:
    mark = "\ufeff" if encoding in ("utf-16-le", "utf-16-be") else ""
    log = read(tmp_path, (mark + "step,loss\n0,4.5\n1,4.25\n").encode(encoding))
    assert log.columns["train_loss"].tolist() == [4.5, 4.25]


NUMBERS = st.floats(0.001, 100.0, allow_nan=False, width=64)


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    rows=st.lists(st.tuples(st.integers(0, 2**53), NUMBERS, st.none() | NUMBERS), min_size=1, max_size=40),
    delimiter=st.sampled_from([",", "\t", ";", "|"]),
    end=st.sampled_from(["\n", "\r\n"]),
    comment=st.booleans(),
)
def test_what_was_written_is_read_back_exactly(
    tmp_path: Path, rows: list[tuple[int, float, float | None]], delimiter: str, end: str, comment: bool
) -> None:
    lines = [delimiter.join(("step", "train_loss", "lr"))] + (["# seen"] if comment else [])
    lines += [delimiter.join((str(step), repr(loss), "" if lr is None else repr(lr))) for step, loss, lr in rows]
    log = read(tmp_path, end.join(lines) + end)
    assert log.columns["step"].tolist() == [row[0] for row in rows]
    assert log.columns["train_loss"].tolist() == [row[1] for row in rows]
    lrs = [np.nan if row[2] is None else row[2] for row in rows]
    np.testing.assert_array_equal(log.columns.get("lr", np.full(len(rows), np.nan)), lrs)
    assert log.lines.tolist() == list(range(2 + comment, 2 + comment + len(rows)))


def test_both_ways_of_parsing_agree(tmp_path: Path) -> None:
    rng = np.random.default_rng(3)
    rows = [f"{step},{rng.normal(3, 1):.6f},{'' if step % 7 else 'nan'},{rng.random():.8g}" for step in range(500)]
    text = "step,train_loss,val_loss,lr\n" + "\n".join(rows) + "\n"
    fast, slow = read(tmp_path, text), read(tmp_path, text + "# the slow way\n")
    for name in fast.columns:
        np.testing.assert_array_equal(fast.columns[name], slow.columns[name])
    np.testing.assert_array_equal(fast.unusable["val_loss", "nan"], slow.unusable["val_loss", "nan"])
    np.testing.assert_array_equal(fast.lines, slow.lines)
