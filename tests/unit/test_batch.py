"""Tokens per step: which source is believed, what may stand in blank cells, and what is refused."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tokenaxis.axis import batch
from tokenaxis.axis.batch import Batch, no_batch, resolve_batch
from tokenaxis.axis.batch_column import BatchColumn
from tokenaxis.declarations import Declaration
from tokenaxis.errors import TokenAxisError
from tokenaxis.readers.batch_name import batch_in_name

NAN = np.nan
SCHEDULE = ((0.0, 100.0), (1000.0, 200.0))


def resolved(
    cells: list[float] | None = None,
    name: str = "run.csv",
    facts: list[tuple[str, Any, str, str | None]] | None = None,
    rows: int = 4,
    step: list[int] | None = None,
    **declared: Any,
) -> Batch:
    steps = np.arange(rows if cells is None else len(cells)) if step is None else np.array(step)
    column = None if cells is None else BatchColumn.from_values(np.array(cells, float))
    found = resolve_batch(steps, column, Declaration(**declared), facts or [], name)
    if found is None:
        raise no_batch(name)
    return found


def codes(found: Batch) -> list[str]:
    return [notice.code for notice in found.warnings]


# ------------------------------------------------------------------------------------------------ precedence

FACT = [("tokens_per_step", 512, "emitted", None)]


def test_a_column_wins_over_everything_and_the_overruled_declaration_is_reported() -> None:
    found = resolved([7.0, 7.0], "run_1Mbs.csv", FACT, tokens_per_step=9.0)
    assert (found.source, found.fixed) == (batch.COLUMN, 7.0)
    assert codes(found) == ["batch_declared_ignored"]


def test_a_declaration_that_agrees_with_the_column_is_not_reported() -> None:
    assert resolved([7.0, 7.0], tokens_per_step=7.0).warnings == []


def test_a_declared_size_wins_over_facts_and_names() -> None:
    found = resolved(None, "run_1Mbs.csv", FACT, tokens_per_step=9.0)
    assert (found.source, found.fixed) == (batch.DECLARED, 9.0)


def test_a_declared_schedule_wins_over_a_declared_size() -> None:
    found = resolved(rows=13, tokens_per_step=9.0, batch_schedule=SCHEDULE)
    assert found.source == batch.SCHEDULE
    assert found.per_row.tolist() == [100.0] * 10 + [200.0] * 3


def test_what_the_log_says_about_itself_wins_over_its_name() -> None:
    found = resolved(None, "run_1Mbs.csv", FACT)
    assert (found.source, found.fixed) == (batch.LOG, 512.0)


def test_an_emitted_fact_wins_over_a_detected_one() -> None:
    facts = [("tokens_per_step", 512, "emitted", None), ("tokens_per_step", 99, "detected", None)]
    assert resolved(None, facts=facts).fixed == 512.0


def test_sequences_need_a_sequence_length_declared_or_logged() -> None:
    facts = [("sequences_per_step", 8, "detected", None)]
    assert resolved(None, facts=facts, seq_len=1024).fixed == 8192.0
    assert resolved(None, facts=[*facts, ("seq_len", 64, "detected", None)]).fixed == 512.0
    with pytest.raises(TokenAxisError, match="batch size is unknown"):
        resolved(None, facts=facts)


@pytest.mark.parametrize("value", [0, -5, float("nan"), float("inf"), "many", True, None])
def test_a_fact_that_is_no_positive_number_is_passed_over(value: Any) -> None:
    assert resolved(None, "run_1Kbs.csv", [("tokens_per_step", value, "emitted", None)]).source == batch.FILE_NAME


def test_the_name_of_the_file_is_the_last_resort() -> None:
    found = resolved(None, "runs/exp_2Mbs/run_0.5Mbs.csv")
    assert (found.source, found.fixed) == (batch.FILE_NAME, 500_000.0)


def test_without_any_source_the_line_to_declare_is_named() -> None:
    with pytest.raises(TokenAxisError, match="batch size is unknown") as caught:
        resolved(None)
    assert "`defaults: {tokens_per_step: 524288}`" in str(caught.value)
    assert "--batch-size" in str(caught.value)


def test_a_folder_name_is_suggested_but_not_believed() -> None:
    with pytest.raises(TokenAxisError) as caught:
        resolved(None, "exp_2Mbs/run.csv")
    assert "`defaults: {tokens_per_step: 2000000}`" in str(caught.value)


@pytest.mark.parametrize("value", [0.0, -1.0, float("inf"), float("nan")])
def test_a_declared_batch_that_is_not_positive_is_refused(value: float) -> None:
    with pytest.raises(TokenAxisError, match="not a positive number"):
        resolved(None, tokens_per_step=value)


# ------------------------------------------------------------------------------------------------ names


@pytest.mark.parametrize(
    ("name", "tokens", "plain"),
    [
        ("run_0.5Mbs.csv", 500_000, False),
        ("gpt_16Kbs.csv", 16_000, False),
        ("gpt_16kBS_lr3e-4.csv", 16_000, False),
        ("b8_512bs.csv", 512, True),
        ("b8_8bs_0.5Mbs.csv", 500_000, False),  # sequences and tokens: the one with a unit is in tokens
        ("a_1Kbs_1Kbs.csv", 1000, False),
    ],
)
def test_batch_sizes_in_names(name: str, tokens: int, plain: bool) -> None:
    found = batch_in_name(name)
    assert found is not None
    assert (found.tokens_per_step, found.plain) == (tokens, plain)


@pytest.mark.parametrize("name", ["run.csv", "0.5Mbs.csv", "run_0.5Mbsize.csv", "run_Mbs.csv", "jobs_12.csv"])
def test_names_that_state_no_batch(name: str) -> None:
    assert batch_in_name(name) is None


@pytest.mark.parametrize("name", ["run_1.2.3Mbs.csv", "run_0Kbs.csv", "run_.Mbs.csv", f"run_{'9' * 400}Mbs.csv"])
def test_a_batch_in_a_name_that_is_no_positive_number_is_refused(name: str) -> None:
    with pytest.raises(TokenAxisError, match="batch size in the file's name") as caught:
        batch_in_name(name)
    assert "tokens_per_step:" in str(caught.value)


def test_two_batch_sizes_in_one_name_are_refused() -> None:
    with pytest.raises(TokenAxisError, match="more than one batch size"):
        batch_in_name("run_1Mbs_2Mbs.csv")


def test_a_plain_number_in_a_name_is_read_as_tokens_and_said_so() -> None:
    assert codes(resolved(None, "run_64bs.csv")) == ["batch_from_plain_name"]


# ------------------------------------------------------------------------------------------------ blank cells


def test_a_blank_cell_between_two_equal_ones_has_one_possible_value() -> None:
    found = resolved([5.0, NAN, 5.0, 9.0])
    assert found.per_row.tolist() == [5.0, 5.0, 5.0, 9.0]
    assert codes(found) == ["batch_filled"]


def test_blank_cells_of_a_column_with_a_single_value_get_it() -> None:
    assert resolved([NAN, NAN, 5.0, NAN]).per_row.tolist() == [5.0] * 4


def test_a_blank_cell_at_step_0_alone_gets_the_next_ones_batch() -> None:
    assert resolved([NAN, 5.0, 9.0]).per_row.tolist() == [5.0, 5.0, 9.0]


def test_blank_cells_before_a_changing_batch_are_refused() -> None:
    with pytest.raises(TokenAxisError, match="batch size is unknown") as caught:
        resolved([NAN, NAN, 5.0, 9.0])
    assert "batch_schedule" in str(caught.value)


def test_a_declared_size_fills_the_blank_cells_before_a_changing_batch() -> None:
    assert resolved([NAN, NAN, 5.0, 9.0], tokens_per_step=4.0).per_row.tolist() == [4.0, 4.0, 5.0, 9.0]


def test_a_declared_schedule_fills_every_blank_cell_exactly() -> None:
    cells = [NAN] * 10 + [200.0] * 3
    found = resolved(cells, batch_schedule=SCHEDULE)
    assert found.schedule is not None
    assert found.per_row.tolist() == [100.0] * 10 + [200.0] * 3
    assert found.warnings == []


def test_a_schedule_that_the_column_contradicts_is_not_used() -> None:
    found = resolved([100.0] * 10 + [150.0] * 3, batch_schedule=SCHEDULE)
    assert found.schedule is None
    assert found.per_row[-1] == 150.0
    assert codes(found) == ["batch_schedule_contradicted"]


def test_zero_and_negative_cells_are_as_good_as_blank() -> None:
    column = BatchColumn.from_values(np.array([5.0, 0.0, -3.0, 5.0]))
    assert column is not None
    assert column.unusable.tolist() == [1, 2]
    assert column.filled(np.arange(4), None)[0].tolist() == [5.0] * 4


def test_a_column_without_one_positive_number_is_no_source() -> None:
    assert BatchColumn.from_values(np.array([NAN, 0.0])) is None
    assert resolved([NAN, 0.0], tokens_per_step=3.0).source == batch.DECLARED


def test_a_hidden_switch_bounds_the_tokens_by_the_steps_it_may_have_come_at() -> None:
    column = BatchColumn.from_values(np.array([10.0, 30.0, 20.0]))
    assert column is not None
    # steps 0..4 at 10 or from step 1 on at 30: up to 3*20 more; steps 4..6: 30, then 30 or 20: up to 10 less
    lowest, highest, rows = column.switch_bounds(np.array([0, 4, 6]))
    assert (lowest, highest, rows.tolist()) == (-10.0, 60.0, [1, 2])


def test_a_switch_between_two_neighbouring_steps_is_exact() -> None:
    column = BatchColumn.from_values(np.array([10.0, 30.0]))
    assert column is not None
    assert column.switch_bounds(np.array([4, 5]))[:2] == (0.0, 0.0)
