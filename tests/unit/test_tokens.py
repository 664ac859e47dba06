"""The token axis itself: tokens consumed before each step, from whatever the log has."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tokenaxis.axis import batch as sources
from tokenaxis.axis.batch import Batch, resolve_batch
from tokenaxis.axis.batch_column import BatchColumn
from tokenaxis.axis.tokens import ConventionHints, Tokens, tokens_from_batch, tokens_from_column
from tokenaxis.axis.tokens_column import complete, implied_batch
from tokenaxis.declarations import Declaration
from tokenaxis.errors import TokenAxisError

NAN = np.nan
B = 1000.0


def of_batch(step: list[int], cells: list[float] | None = None, **declared: Any) -> Tokens:
    column = None if cells is None else BatchColumn.from_values(np.array(cells, float))
    batch = resolve_batch(np.array(step), column, Declaration(**declared), [], "run.csv")
    assert batch is not None
    return tokens_from_batch(np.array(step), batch)


def of_column(
    step: list[int],
    tokens: list[float],
    cells: list[float] | None = None,
    attempt: list[int] | None = None,
    declared: str | None = None,
    format: str | None = None,
    params: str | None = None,
    name: str = "run.csv",
    **declaration: Any,
) -> tuple[Tokens, Batch | None]:
    steps = np.array(step)
    attempts = np.zeros(len(step), np.int32) if attempt is None else np.array(attempt)
    counted = complete(steps, np.array(tokens, float), attempts, np.arange(len(step)) + 2)
    assert counted is not None
    column = None if cells is None else BatchColumn.from_values(np.array(cells, float))
    batch = resolve_batch(steps, column, Declaration(**declaration), [], name)
    return tokens_from_column(steps, counted, batch, ConventionHints(declared, format, params), "tokens")


def codes(tokens: Tokens) -> list[str]:
    return [notice.code for notice in tokens.warnings]


# ------------------------------------------------------------------------------------------------ without a column


def test_a_fixed_batch_gives_step_times_batch() -> None:
    tokens = of_batch([0, 1, 5, 9], tokens_per_step=B)
    assert tokens.before.tolist() == [0, 1000, 5000, 9000]
    assert (tokens.source, tokens.bounds) == ("step x batch", None)


def test_a_rotated_log_of_a_fixed_batch_is_exact() -> None:
    assert of_batch([1300, 1301], tokens_per_step=B).before.tolist() == [1_300_000, 1_301_000]


def test_a_batch_column_is_cumulated_and_a_gap_takes_the_batch_of_the_row_before_it() -> None:
    tokens = of_batch([0, 1, 4, 5], [10, 20, 30, 30])
    assert tokens.before.tolist() == [0, 10, 70, 100]
    # the switch from 20 to 30 may have come one step after step 1: 20 + 2 x 30 tokens, 20 more
    assert tokens.bounds == (100, 120)
    assert codes(tokens) == ["switch_in_gap"]


def test_a_log_that_shows_every_switch_has_no_bounds() -> None:
    assert of_batch([0, 1, 2, 3], [10, 10, 30, 30]).bounds is None


def test_a_schedule_is_exact_across_gaps_and_for_a_log_that_starts_in_the_middle() -> None:
    tokens = of_batch([3, 7], [200, 200], batch_schedule=((0.0, 100.0), (150.0, 200.0)))
    assert tokens.before.tolist() == [400, 1200]
    assert tokens.bounds is None


def test_the_tokens_before_a_rotated_log_of_changing_batch_are_reported_as_unknown() -> None:
    tokens = of_batch([100, 101, 102], [10, 10, 20])
    assert codes(tokens) == ["tokens_offset_unknown"]
    assert tokens.before[-1] - tokens.before[0] == 20
    # between no tokens and 100 steps of the largest batch before the first row
    assert tokens.bounds == (20, 2020)


def test_a_log_whose_first_row_is_one_logging_interval_from_0_is_not_rotated() -> None:
    assert of_batch([10, 20, 30], [10, 10, 20]).bounds == (300, 390)  # for the hidden switch alone
    assert of_batch([10, 20, 30], [10, 10, 10]).warnings == []


def test_a_rotated_log_with_a_batch_column_of_one_value_may_hide_a_smaller_batch_before_it() -> None:
    tokens = of_batch([100, 101, 102], [10, 10, 10])
    assert tokens.before.tolist() == [1000, 1010, 1020]
    assert tokens.bounds == (20, 1020)
    assert codes(tokens) == ["tokens_offset_unknown"]


def test_a_declared_size_that_agrees_with_the_column_settles_what_was_before_a_rotated_log() -> None:
    tokens = of_batch([100, 101, 102], [10, 10, 10], tokens_per_step=10.0)
    assert (tokens.before[0], tokens.bounds) == (1000, None)


@settings(max_examples=200, deadline=None, derandomize=True)
@given(
    st.lists(st.tuples(st.integers(1, 9), st.sampled_from([100.0, 200.0, 400.0])), min_size=2, max_size=40), st.data()
)
def test_the_true_tokens_lie_within_the_bounds_wherever_the_switches_were(rows: list, data: st.DataObject) -> None:
    """Between two logged rows of different batch the switch may come at any step: the bounds hold all of them."""
    step = np.cumsum([0, *(gap for gap, _ in rows[:-1])])
    cells = np.array([size for _, size in rows])
    true = 0.0
    for place, gap in enumerate(np.diff(step)):
        at_first = gap if cells[place] == cells[place + 1] else data.draw(st.integers(1, int(gap)))
        true += at_first * cells[place] + (gap - at_first) * cells[place + 1]
    tokens = of_batch(step.tolist(), cells.tolist())
    lowest, highest = tokens.bounds or (tokens.before[-1], tokens.before[-1])
    assert lowest <= true <= highest
    assert lowest <= tokens.before[-1] <= highest


def test_numbers_that_are_no_count_of_tokens_are_refused() -> None:
    with pytest.raises(TokenAxisError, match="no count of tokens"):
        of_batch([0, 10**15], tokens_per_step=1e300)


# ------------------------------------------------------------------------------------------------ conventions


def test_0_tokens_at_step_0_means_before() -> None:
    tokens, _ = of_column([0, 1, 2], [0, B, 2 * B], tokens_per_step=B)
    assert (tokens.convention, tokens.convention_source) == ("before", "recognised")


@pytest.mark.parametrize("batch", [{"tokens_per_step": B}, {}, {"cells": [B, B, B]}])
def test_a_column_with_its_own_batch_at_step_0_counts_after_and_is_shifted(batch: dict[str, Any]) -> None:
    tokens, _ = of_column([0, 1, 2], [B, 2 * B, 3 * B], **batch)
    assert tokens.before.tolist() == [0, B, 2 * B]
    assert (tokens.convention, tokens.convention_source, codes(tokens)) == ("after", "recognised", ["tokens_after"])


def test_a_fixed_batch_shows_the_convention_of_a_log_that_starts_later() -> None:
    tokens, _ = of_column([10, 20, 30], [11 * B, 21 * B, 31 * B], tokens_per_step=B)
    assert tokens.before.tolist() == [10 * B, 20 * B, 30 * B]
    assert tokens.convention == "after"


def test_step_times_batch_counts_before_also_where_steps_start_at_1() -> None:
    """An evaluation after `step` updates has seen step x batch tokens: such a column is left as it is."""
    tokens, _ = of_column([50, 100, 150], [50 * B, 100 * B, 150 * B])
    assert tokens.before.tolist() == [50 * B, 100 * B, 150 * B]
    assert (tokens.convention, tokens.convention_source) == ("before", "recognised")
    tokens, _ = of_column([1, 2, 3], [0, B, 2 * B], tokens_per_step=B)
    assert (tokens.before[0], tokens.convention_source) == (0, "recognised")


def test_a_switch_of_the_batch_shows_the_convention_where_the_offset_is_unknown() -> None:
    offset, cells = 7777.0, [10.0, 10.0, 30.0, 30.0]
    tokens, _ = of_column([5, 6, 7, 8], [offset, offset + 10, offset + 40, offset + 70], cells)
    assert tokens.convention == "after"
    tokens, _ = of_column([5, 6, 7, 8], [offset, offset + 10, offset + 20, offset + 50], cells)
    assert (tokens.convention, tokens.convention_source) == ("before", "recognised")


def test_what_the_log_does_not_show_is_assumed_to_count_before() -> None:
    tokens, _ = of_column([5, 6, 7], [123_456.0, 123_556.0, 123_656.0], tokens_per_step=100.0)
    assert (tokens.convention, tokens.convention_source) == ("before", "assumed")


def test_a_declaration_wins_over_format_and_format_over_params() -> None:
    step, logged = [5, 6, 7], [123_456.0, 123_556.0, 123_656.0]
    stated = {"tokens_per_step": 100.0, "params": "after"}
    assert of_column(step, logged, **stated, format="before", declared="after")[0].convention_source == "declared"
    tokens, _ = of_column(step, logged, **stated, format="before")
    assert (tokens.convention, tokens.convention_source) == ("before", "format")
    tokens, _ = of_column(step, logged, **stated)
    assert (tokens.before[0], tokens.convention_source) == (123_356, "assumed")


def test_a_stated_convention_that_the_log_contradicts_is_kept_and_reported() -> None:
    tokens, _ = of_column([0, 1, 2], [B, 2 * B, 3 * B], tokens_per_step=B, declared="before")
    assert tokens.before[0] == B
    assert codes(tokens) == ["tokens_convention_contradicted"]


def test_a_declared_after_that_would_make_tokens_negative_is_refused() -> None:
    with pytest.raises(TokenAxisError, match="cannot be 0 at step 0") as caught:
        of_column([0, 1, 2], [0, B, 2 * B], tokens_per_step=B, declared="after")
    assert caught.value.remedy == "declare `defaults: {tokens_convention: before}`"


def test_counts_after_a_step_of_changing_batch_are_shifted_by_the_steps_own_batch() -> None:
    tokens, _ = of_column([0, 1, 2, 3], [10, 20, 50, 80], [10, 10, 30, 30])
    assert tokens.before.tolist() == [0, 10, 20, 50]


# ------------------------------------------------------------------------------------------------ bad and blank counts


def test_negative_tokens_are_refused_with_their_line() -> None:
    with pytest.raises(TokenAxisError, match="negative at step 1") as caught:
        of_column([0, 1, 2], [0, -5, 10], tokens_per_step=B)
    assert caught.value.line == 3


def test_tokens_that_decrease_while_the_step_goes_on_are_refused_with_their_line() -> None:
    with pytest.raises(TokenAxisError, match="decreases from 2,000 to 1,500 at step 3") as caught:
        of_column([0, 1, 2, 3], [0, 1000, 2000, 1500], tokens_per_step=B)
    assert caught.value.line == 5


def test_a_counter_that_starts_again_with_an_attempt_is_continued() -> None:
    tokens, _ = of_column([0, 1, 2, 3, 4], [0, B, 2 * B, 0, B], attempt=[0, 0, 0, 1, 1], tokens_per_step=B)
    assert tokens.before.tolist() == [0, B, 2 * B, 3 * B, 4 * B]
    assert "tokens_restarted" in codes(tokens)


def test_blank_counts_are_interpolated_in_the_step() -> None:
    tokens, _ = of_column([0, 1, 2, 3, 5], [0, NAN, 2 * B, 3 * B, NAN], tokens_per_step=B)
    assert tokens.before.tolist() == [0, B, 2 * B, 3 * B, 5 * B]
    assert codes(tokens) == ["tokens_filled"]


def test_a_column_with_a_single_count_is_no_token_column() -> None:
    assert complete(np.arange(3), np.array([NAN, 5.0, NAN]), np.zeros(3, np.int32), np.arange(3)) is None


def test_counts_of_one_rank_contradict_the_batch_and_are_reported() -> None:
    step = list(range(50))
    tokens, _ = of_column(step, [s * B / 8 for s in step], tokens_per_step=B)
    assert codes(tokens) == ["tokens_disagree_with_batch"]


def test_what_the_tokens_show_wins_over_a_file_name_that_contradicts_them() -> None:
    step = list(range(50))
    tokens, batch = of_column(step, [s * B for s in step], name="run_8Kbs.csv")
    assert batch is not None
    assert (batch.source, batch.fixed) == (sources.TOKENS_COLUMN, B)
    assert codes(tokens) == ["batch_name_contradicted"]


# ------------------------------------------------------------------------------------------------ batch from counts


def test_counts_imply_the_batch_of_every_step() -> None:
    implied = implied_batch(np.arange(5), np.array([0, 10, 20, 50, 80.0]), "before")
    assert implied is not None
    assert implied.tolist() == [10, 10, 30, 30, 30]
    implied = implied_batch(np.arange(5), np.array([10, 20, 50, 80, 110.0]), "after")
    assert implied is not None
    assert implied.tolist() == [10, 10, 30, 30, 30]


def test_counts_printed_with_three_digits_imply_their_constant_batch() -> None:
    step = np.arange(3000)
    printed = np.array([float(f"{s * 0.5e6:.3g}") for s in step])
    implied = implied_batch(step, printed, "before")
    assert implied is not None
    assert (implied == 0.5e6).all()


def test_counts_that_vary_from_row_to_row_imply_positive_batches_that_sum_to_them() -> None:
    rng = np.random.default_rng(3)
    grown = rng.integers(0, 3, 400) * 100.0  # ties are common
    tokens = np.r_[0.0, np.cumsum(grown)]
    implied = implied_batch(np.arange(401), tokens, "before")
    assert implied is not None
    assert implied.min() > 0
    # the last stretch of equal counts has no next one: its rate is that of the stretch before it
    last = np.flatnonzero(np.diff(tokens))[-1] + 1
    assert implied[:last].sum() == pytest.approx(tokens[last], rel=1e-12)  # float sums of exact numbers


@pytest.mark.parametrize("tokens", [[5.0], [5.0, 5.0, 5.0]])
def test_counts_that_do_not_grow_imply_no_batch(tokens: list[float]) -> None:
    assert implied_batch(np.arange(len(tokens)), np.array(tokens), "before") is None
    assert of_column(list(range(len(tokens))), tokens)[1] is None
