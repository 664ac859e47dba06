"""Token axes of public logs, against what is known of them from outside (their README, their own headers)."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tokenaxis import readers
from tokenaxis.axis import TokenAxis, build_axis
from tokenaxis.declarations import Declaration
from tokenaxis.errors import TokenAxisError


def axis_of(shared: Path, path: str, **declared: Any) -> TokenAxis:
    declaration = Declaration(**declared)
    return build_axis(readers.read(str(shared / "logs" / path), declaration), declaration, path, "auto")


def codes(axis: TokenAxis) -> set[str]:
    return {warning["code"] for warning in axis.meta["warnings"]}


@pytest.mark.parametrize("name", ["log_bigger.txt", "log_smaller.txt", "log_shuffled.txt"])
def test_train_and_val_lines_of_build_nanogpt_are_one_row_a_step(shared: Path, name: str) -> None:
    axis = axis_of(shared, f"build-nanogpt/{name}", tokens_per_step=524_288)
    rows = axis.meta["rows"]
    assert (rows["merged"], rows["kept"], rows["superseded"]) == (78, 19_073, 0)
    assert (rows["with_train_loss"], rows["with_val_loss"]) == (19_073, 78)
    assert axis.columns["tokens"][-1] == 19_072 * 524_288


def test_a_row_a_step_where_val_rows_carry_the_loss_and_train_rows_none(shared: Path) -> None:
    path = "csv-nanogpt-lab/20250418_150225_Baseline_60m__metrics.csv"
    axis = axis_of(shared, path, tokens_per_step=8192)
    assert axis.columns["step"].tolist() == list(range(3001))
    assert (axis.meta["rows"]["merged"], axis.meta["rows"]["with_val_loss"]) == (30, 31)
    assert len(axis.meta["attempts"]) == 1


def test_a_whole_gpt2_run_knows_its_batch_from_its_own_header(shared: Path) -> None:
    axis = axis_of(shared, "llmc/gpt2_train.11685414.log.gz")
    assert axis.meta["batch"]["source"] == "log"
    assert axis.meta["rows"]["with_train_loss"] == 19_560
    # 19,560 updates of 524,288 tokens; the last row is the evaluation after them
    assert axis.columns["tokens"][-1] == 19_560 * 524_288
    # llm.c warms up over 700 steps
    assert 0.99 * 700 - 1 <= axis.meta["warmup"]["end_step"] <= 700


def test_a_run_whose_loss_is_nan_from_the_start_keeps_its_rows_and_says_so(shared: Path) -> None:
    axis = axis_of(shared, "llmc/gpt2_train.11679031.log.gz")
    assert axis.meta["rows"]["kept"] == 16_256
    assert axis.meta["rows"]["with_train_loss"] == 0
    assert {"nan_cells", "empty_column"} <= codes(axis)


@pytest.mark.parametrize(
    ("name", "tokens_per_step"), [("190M-1xC", 524_288), ("370M-1xC-rerun", 786_432), ("760M-5xC", 1_310_720)]
)
def test_tokens_of_an_evaluation_after_step_updates_are_left_as_they_are(
    shared: Path, name: str, tokens_per_step: int
) -> None:
    """OLMo logs total_tokens = _step x batch beside an evaluation of the weights after _step updates."""
    axis = axis_of(shared, f"olmo-ladder/{name}.csv")
    assert np.array_equal(axis.columns["tokens"], axis.columns["step"] * float(tokens_per_step))
    assert axis.meta["tokens"]["convention_source"] == "recognised"
    assert [stage["tokens_per_step"] for stage in axis.meta["batch"]["stages"]] == [tokens_per_step]


def test_a_killed_and_resumed_run_drops_the_71_rows_that_were_done_again(shared: Path) -> None:
    axis = axis_of(shared, "trainmeter/csv/kill_1.024Kbs.csv")
    assert (axis.meta["rows"]["read"], axis.meta["rows"]["superseded"], axis.meta["rows"]["kept"]) == (371, 71, 300)
    assert axis.columns["step"].tolist() == list(range(300))
    assert axis.meta["superseded_tokens"] == 71 * 1024


def test_a_growing_batch_adds_up_to_what_the_trainer_counted(shared: Path) -> None:
    axis = axis_of(shared, "trainmeter/csv/dyn.csv")
    assert [stage["tokens_per_step"] for stage in axis.meta["batch"]["stages"]] == [512, 1024, 2048]
    assert axis.columns["tokens"][-1] + axis.columns["tokens_per_step"][-1] == 353_280
    assert axis.meta["unusable"][0]["first_step"] == 50


def test_a_log_whose_warmup_was_cut_off_does_not_show_it(shared: Path) -> None:
    axis = axis_of(shared, "multipowerlaw/csv_100/constant_24000.csv", tokens_per_step=1e6)
    assert axis.meta["warmup"]["end_step"] is None
    assert axis.meta["lr"]["constant_after_warmup"]


def test_a_log_that_does_not_state_its_batch_is_refused_with_the_line_to_declare(shared: Path) -> None:
    with pytest.raises(TokenAxisError, match="batch size is unknown") as caught:
        axis_of(shared, "llmc/siddanth-main.log")
    assert "tokens_per_step:" in str(caught.value)
