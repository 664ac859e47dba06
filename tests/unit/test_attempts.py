"""Attempts: which rows of a log that was killed and resumed count, and what happens to the others."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tokenaxis.axis.attempts import Joined, is_newest_first, join_attempts
from tokenaxis.axis.merging import merge_steps
from tokenaxis.errors import TokenAxisError

NAN = math.nan


def join(steps: list[int], train: list[float] | None = None, val: list[float] | None = None) -> Joined:
    """Joined rows; without losses each row's train loss is its place in the file, which shows where it came from."""
    columns = {"train_loss": np.arange(len(steps), dtype=float) if train is None else np.array(train, float)}
    if val is not None:
        columns["val_loss"] = np.array(val, float)
    return join_attempts(np.array(steps, np.int64), columns)


def test_ascending_steps_are_one_attempt_and_stay_as_they_are() -> None:
    joined = join([0, 1, 5, 9])
    assert joined.step.tolist() == [0, 1, 5, 9]
    assert joined.attempt.tolist() == [0, 0, 0, 0]
    assert (joined.superseded, joined.merged, joined.repeated) == (0, 0, 0)


def test_rows_of_an_abandoned_attempt_are_dropped() -> None:
    joined = join([0, 1, 2, 3, 4, 2, 3])
    assert joined.step.tolist() == [0, 1, 2, 3]
    assert joined.columns["train_loss"].tolist() == [0, 1, 5, 6]
    assert joined.attempt.tolist() == [0, 0, 1, 1]
    assert joined.superseded_rows.tolist() == [3, 0]
    assert joined.redone_from[0] == 2


def test_the_later_attempt_wins_even_if_it_is_shorter() -> None:
    assert join([0, 1, 2, 3, 4, 5, 6, 1]).step.tolist() == [0, 1]


def test_an_attempt_behind_an_earlier_resume_drops_the_whole_attempt_between() -> None:
    joined = join([0, 1, 2, 3, 4, 5, 3, 4, 5, 6, 2, 3])
    assert joined.columns["train_loss"].tolist() == [0, 1, 10, 11]
    assert joined.superseded_rows.tolist() == [4, 4, 0]
    assert joined.rows.tolist() == [6, 4, 2]
    # the first attempt's steps 2.. were done again last by the third attempt
    assert joined.redone_from[:2].tolist() == [2, 2]


def test_a_chain_of_resumes_keeps_a_part_of_each_attempt() -> None:
    joined = join([0, 1, 2, 3, 2, 3, 4, 5, 4, 5, 6])
    assert joined.attempt.tolist() == [0, 0, 1, 1, 2, 2, 2]
    assert joined.step.tolist() == [0, 1, 2, 3, 4, 5, 6]


def test_a_step_logged_twice_with_another_loss_counts_once_and_the_later_row_wins() -> None:
    joined = join([0, 1, 2, 2, 3], train=[5.0, 4.0, 3.0, 2.9, 2.5])
    assert joined.step.tolist() == [0, 1, 2, 3]
    assert joined.columns["train_loss"].tolist() == [5.0, 4.0, 2.9, 2.5]
    assert (joined.superseded, joined.repeated, joined.merged) == (1, 1, 0)


def test_train_and_val_rows_of_one_step_are_one_row_and_no_value_is_lost() -> None:
    joined = join([0, 0, 1, 2, 2], train=[9, NAN, 8, 7, NAN], val=[NAN, 9.5, NAN, NAN, 7.5])
    assert joined.step.tolist() == [0, 1, 2]
    assert joined.columns["train_loss"].tolist() == [9, 8, 7]
    assert np.array_equal(joined.columns["val_loss"], [9.5, NAN, 7.5], equal_nan=True)
    assert (joined.superseded, joined.merged) == (0, 2)


def test_the_same_row_logged_twice_is_merged_not_superseded() -> None:
    joined = join([0, 1, 1], train=[3.0, 2.0, 2.0])
    assert (joined.superseded, joined.merged) == (0, 1)


def test_an_evaluation_that_comes_late_is_no_resume() -> None:
    steps = [8, 9, 10, 8, 11, 12]
    joined = join(steps, train=[3, 2.9, 2.8, NAN, 2.7, 2.6], val=[NAN, NAN, NAN, 3.1, NAN, NAN])
    assert joined.step.tolist() == [8, 9, 10, 11, 12]
    assert joined.columns["val_loss"][0] == 3.1
    assert len(joined.rows) == 1
    assert (joined.late, joined.merged, joined.superseded) == (1, 1, 0)


def test_an_evaluation_before_the_first_row_of_a_resume_belongs_to_the_resume() -> None:
    joined = join([0, 1, 2, 3, 2, 2, 3], train=[5, 4, 3, 2, NAN, 3.3, 2.2], val=[NAN, NAN, NAN, NAN, 3.5, NAN, NAN])
    assert joined.columns["train_loss"].tolist() == [5, 4, 3.3, 2.2]
    assert joined.columns["val_loss"][2] == 3.5
    assert len(joined.rows) == 2


def test_a_late_evaluation_of_a_superseded_step_is_superseded_with_it() -> None:
    joined = join([0, 1, 2, 1, 3, 1, 2], train=[9, 8, 7, NAN, 6, 8.5, 7.5], val=[NAN, NAN, NAN, 8.1, NAN, NAN, NAN])
    assert joined.step.tolist() == [0, 1, 2]
    assert np.isnan(joined.columns["val_loss"]).all()
    assert joined.superseded == 4


@pytest.mark.parametrize(
    ("steps", "expected"),
    [
        ([3, 2, 1], True),
        ([2, 1], False),  # two rows may as well be a resume
        ([5, 5, 4, 4, 3, 3], True),
        ([0, 1, 2, 0, 1], False),
        ([0, 1, 2], False),
        ([9, 8, 7, 6, 5, 9, 8, 7, 6, 5, 4, 3, 2, 1, 0], True),  # a resumed run, exported newest first
    ],
)
def test_a_file_sorted_from_last_to_first_is_told_from_resumes(steps: list[int], expected: bool) -> None:
    assert is_newest_first(np.array(steps)) is expected


def test_two_writers_in_one_file_are_refused() -> None:
    steps = [step for pair in zip(range(300, 340), range(40), strict=True) for step in pair]
    with pytest.raises(TokenAxisError, match="two writers"):
        join(steps)


def test_a_step_that_goes_backward_thousands_of_times_is_refused() -> None:
    with pytest.raises(TokenAxisError, match="goes backward"):
        join([0, 1, 2, 3] * 1200)


def test_a_crash_loop_is_no_second_writer() -> None:
    steps = [*range(100), *[90, 91] * 40, *range(90, 200)]
    joined = join(steps)
    assert joined.step.tolist() == list(range(200))


# ------------------------------------------------------------------------------------------------ properties


def naive(rows: list[tuple[int, float, float]]) -> dict:
    """The rule of attempts, row by row: what a later attempt starts at or before is dropped; then equal steps merge."""
    kept: list[tuple[int, float, float]] = []
    attempts, superseded, previous = 1, 0, None
    for row in rows:
        if previous is not None and row[0] < previous:
            attempts += 1
            superseded += sum(other[0] >= row[0] for other in kept)
            kept = [other for other in kept if other[0] < row[0]]
        kept.append(row)
        previous = row[0]
    table: dict[int, list[float]] = {}
    for step, *losses in kept:
        cells = table.setdefault(step, [NAN, NAN])
        for place, loss in enumerate(losses):
            if not math.isnan(loss):
                cells[place] = loss
    replaced = sum(
        any(not math.isnan(loss) and loss != table[step][place] for place, loss in enumerate(losses))
        for step, *losses in kept
    )
    return {
        "table": table,
        "attempts": attempts,
        "superseded": superseded + replaced,
        "merged": len(kept) - len(table) - replaced,
    }


attempts_of_a_log = st.lists(
    st.tuples(st.integers(0, 30), st.lists(st.integers(0, 3), min_size=0, max_size=25)), min_size=1, max_size=6
)
losses = st.sampled_from([1.0, 2.0, 3.0])


@settings(max_examples=300, deadline=None, derandomize=True)
@given(attempts_of_a_log, st.data())
def test_concatenated_attempts_follow_the_rule_row_by_row(attempts: list, data: st.DataObject) -> None:
    steps = [int(s) for first, gaps in attempts for s in first + np.r_[0, np.cumsum(gaps)].astype(int)]
    # every row has a training loss: evaluations that come late are another rule
    train = data.draw(st.lists(losses, min_size=len(steps), max_size=len(steps)))
    val = data.draw(st.lists(st.one_of(st.just(NAN), losses), min_size=len(steps), max_size=len(steps)))
    expected = naive(list(zip(steps, train, val, strict=True)))
    joined = join(steps, train, val)
    table = expected["table"]
    assert joined.step.tolist() == list(table)
    assert np.array_equal(joined.columns["train_loss"], [cells[0] for cells in table.values()], equal_nan=True)
    assert np.array_equal(joined.columns["val_loss"], [cells[1] for cells in table.values()], equal_nan=True)
    assert len(joined.rows) == expected["attempts"]
    assert joined.superseded == expected["superseded"]
    assert joined.merged == expected["merged"]
    assert len(steps) == joined.superseded + joined.merged + len(joined.step)
    assert joined.rows.sum() == len(steps)


@settings(max_examples=200, deadline=None, derandomize=True)
@given(st.lists(st.tuples(st.integers(0, 40), st.booleans(), st.booleans()), min_size=1, max_size=19))
def test_whatever_the_order_every_row_is_accounted_for(rows: list[tuple[int, bool, bool]]) -> None:
    train = [1.0 + place if has else NAN for place, (_, has, _) in enumerate(rows)]
    val = [2.0 + place if has else NAN for place, (_, _, has) in enumerate(rows)]
    joined = join([row[0] for row in rows], train, val)
    assert (np.diff(joined.step) > 0).all()
    assert len(rows) == joined.superseded + joined.merged + len(joined.step)
    assert joined.rows.sum() == len(rows)
    assert (joined.superseded_rows <= joined.rows).all()
    assert np.array_equal(np.array([row[0] for row in rows])[joined.row], joined.step)


def test_merging_takes_the_last_value_of_each_column() -> None:
    merged = merge_steps(
        np.array([1, 1, 1, 2]),
        {"lr": np.array([0.1, NAN, NAN, 0.2]), "val_loss": np.array([NAN, 3.0, 2.0, NAN])},
    )
    assert merged.columns["lr"].tolist() == [0.1, 0.2]
    assert merged.columns["val_loss"][0] == 2.0
    assert merged.repeated.tolist() == [False, True, False, False]
