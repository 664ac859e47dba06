"""Losses that are means over a logging interval stand in its middle: the bias of placing them at its end is gone."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tokenaxis import readers
from tokenaxis.axis import TokenAxis, build_axis
from tokenaxis.axis.means import place_means
from tokenaxis.axis.rows import UsableRows
from tokenaxis.declarations import Declaration
from tokenaxis.readers import IntervalMean

BATCH = 524_288.0


def law(tokens: np.ndarray) -> np.ndarray:
    return 2.0 + 0.6 * (tokens / 1e9) ** -0.35


def means_of_law(interval: int, updates: int) -> list[tuple[int, float]]:
    """(updates done, mean loss over the last `interval` of them); the batch of update u has seen u·BATCH tokens."""
    losses = law(np.maximum(np.arange(updates), 0.5) * BATCH)
    return [(done, float(losses[done - interval : done].mean())) for done in range(interval, updates + 1, interval)]


def trainer_state(path: Path, interval: int, updates: int, evaluations: int = 0) -> Path:
    history: list[dict[str, Any]] = []
    for done, loss in means_of_law(interval, updates):
        history.append({"step": done, "loss": loss, "learning_rate": 1e-4})
        if evaluations and done % evaluations == 0:
            history.append({"step": done, "eval_loss": float(law(np.array(done * BATCH)))})
    state = {"global_step": updates, "log_history": history, "logging_steps": interval, "max_steps": updates}
    path.write_text(json.dumps(state, indent=1), encoding="utf-8")
    return path


def axis_of(path: Path, **declared: Any) -> TokenAxis:
    declaration = Declaration(tokens_per_step=BATCH, **declared)
    return build_axis(readers.read(str(path), declaration), declaration, path.name, "auto")


def off(axis: TokenAxis, column: str = "train_loss", from_tokens: float = 5e8) -> np.ndarray:
    """How far each loss lies from the law at its tokens."""
    loss, tokens = axis.columns[column], axis.columns["tokens"]
    rows = ~np.isnan(loss) & (tokens > from_tokens)
    return loss[rows] - law(tokens[rows])


@pytest.mark.parametrize("interval", [1, 2, 5, 10, 50])
def test_a_mean_lies_on_the_law_at_its_tokens_and_not_above_it(interval: int, tmp_path: Path) -> None:
    axis = axis_of(trainer_state(tmp_path / "trainer_state.json", interval, 4000))
    # what is left is the law's curvature over the interval, k² L''/24: below 4e-5 from 0.5e9 tokens on for k = 50
    assert np.abs(off(axis)).max() < 4e-5
    declared = axis_of(tmp_path / "trainer_state.json", facts={"train_loss_interval_steps": 1})
    if interval >= 10:  # placed at the end, each value is too high: at 0.5e9 tokens by k/2 steps of slope
        assert off(declared).min() > 0
        assert off(declared).max() > 20 * np.abs(off(axis)).max()


def test_a_mean_over_an_even_number_of_steps_lies_between_two_and_its_tokens_are_exact(tmp_path: Path) -> None:
    axis = axis_of(trainer_state(tmp_path / "trainer_state.json", 10, 100))
    assert axis.columns["step"].tolist() == [4 + 10 * n for n in range(10)]
    assert axis.columns["tokens"].tolist() == [(4.5 + 10 * n) * BATCH for n in range(10)]
    assert axis.meta["logged_steps"] == [10, 100]
    message = next(w["message"] for w in axis.meta["warnings"] if w["code"] == "train_loss_is_a_mean")
    assert "mean over 10 steps" in message


def test_evaluations_stay_where_they_were_done(tmp_path: Path) -> None:
    axis = axis_of(trainer_state(tmp_path / "trainer_state.json", 10, 4000, evaluations=100))
    assert np.abs(off(axis, "val_loss")).max() < 1e-9  # the law itself, printed with all digits
    assert np.abs(off(axis)).max() < 4e-5
    rows = axis.meta["rows"]
    assert (rows["read"], rows["kept"], rows["merged"]) == (440, 440, 0)
    assert (np.diff(axis.columns["step"]) > 0).all()


def megatron(path: Path, interval: int, updates: int) -> Path:
    lines = ["------------------------ arguments ------------------------", "  seq_length ............ 2048"]
    lines.append(f"  log_interval .......... {interval}")
    for done, loss in means_of_law(interval, updates):
        lines.append(
            f" iteration {done:8d}/ 9000 | consumed samples: {done * 256:12d} | consumed tokens: {done * 524288:12d} | "
            f"learning rate: 2.0E-04 | global batch size:   256 | lm loss: {loss:.9E} | grad norm: 1.0 |"
        )
        if done % 1000 == 0:
            loss = float(law(np.array(done * BATCH)))
            lines.append(f" validation loss at iteration {done} | lm loss value: {loss:.9E} | lm loss PPL: 1.0 |")
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path


@pytest.mark.parametrize("interval", [1, 100, 200])
def test_megatron_counts_tokens_after_the_step_and_its_loss_is_a_mean(interval: int, tmp_path: Path) -> None:
    axis = axis_of(megatron(tmp_path / "run.out", interval, 6000))
    # ten printed digits, and the curvature over 200 steps, which from 2e9 tokens on is below 4e-5
    assert np.abs(off(axis, from_tokens=2e9)).max() < 4e-5
    assert np.abs(off(axis, "val_loss")[:-1]).max() < 1e-8
    assert (axis.meta["tokens"]["convention"], axis.meta["tokens"]["convention_source"]) == ("after", "format")
    assert axis.columns["tokens"][-1] <= 6000 * BATCH


def rows_of(**columns: list[float]) -> UsableRows:
    arrays = {name: np.array(values, float) for name, values in columns.items()}
    step = arrays.pop("step").astype(np.int64)
    return UsableRows(step, arrays, np.arange(1, len(step) + 1), [], [])


def test_the_first_interval_after_a_resume_is_no_longer_than_the_usual_one() -> None:
    rows = rows_of(step=[10, 20, 30, 40, 25, 30], train_loss=[5, 4, 3, 2, 2.7, 2.5])
    placed = place_means(rows, IntervalMean(10, counted_after=True))
    assert placed.rows.step.tolist() == [4, 14, 24, 34, 19, 27]
    assert placed.behind.tolist() == [0.5, 0.5, 0.5, 0.5, 0.5, 0.0]


def test_a_gap_in_the_log_does_not_make_an_interval_longer_than_the_log_says() -> None:
    rows = rows_of(step=[10, 20, 60], train_loss=[5, 4, 3])
    assert place_means(rows, IntervalMean(10, counted_after=True)).rows.step.tolist() == [4, 14, 54]
    assert place_means(rows, IntervalMean(None, counted_after=True)).rows.step[-1] == 39  # since the row before


def test_a_row_with_a_mean_and_an_evaluation_becomes_two() -> None:
    rows = rows_of(step=[100, 200], train_loss=[4, 3], val_loss=[np.nan, 3.5], tokens=[1e5, 2e5])
    placed = place_means(rows, IntervalMean(100))
    assert placed.split == 1
    assert placed.rows.step.tolist() == [50, 150, 200]
    assert np.array_equal(placed.rows.columns["val_loss"], [np.nan, np.nan, 3.5], equal_nan=True)
    assert np.array_equal(placed.rows.columns["train_loss"], [4, 3, np.nan], equal_nan=True)
    assert placed.rows.columns["tokens"].tolist() == [5e4, 1.5e5, 2e5]


def test_rows_of_one_step_are_left_alone() -> None:
    rows = rows_of(step=[0, 1, 2], train_loss=[3, 2, 1])
    assert place_means(rows, None).rows is rows
    assert place_means(rows, IntervalMean(1)).rows.step.tolist() == [0, 1, 2]


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("trainer_log.jsonl", '{"current_steps": %d, "total_steps": 900, "loss": %f}\n'),
        ("history.jsonl", '{"train/global_step": %d, "train/loss": %f}\n'),
    ],
)
def test_logs_of_the_hf_trainer_are_known_by_what_they_call_their_steps(name: str, text: str, tmp_path: Path) -> None:
    (tmp_path / name).write_text("".join(text % row for row in means_of_law(10, 4000)), encoding="utf-8")
    # six printed decimals and the curvature over 10 steps
    assert np.abs(off(axis_of(tmp_path / name))).max() < 3e-6


def test_the_public_megatron_run_is_placed_by_its_own_counts(shared: Path) -> None:
    """Iteration 7600: 1,278,848 samples of 2048 tokens, and a mean over iterations 7401 to 7600 of 256 sequences."""
    path = shared / "logs/megatron-datablations/blowup-4-alibi-bf16-nods-1814592.out"
    axis = build_axis(readers.read(str(path)), Declaration(), path.name, "auto")
    train = np.flatnonzero(~np.isnan(axis.columns["train_loss"]))
    assert axis.columns["tokens"][train[-1]] == (1_278_848 - 100.5 * 256) * 2048
    assert axis.columns["tokens"][train[0]] == (200 - 100.5) * 128 * 2048
    assert [stage["tokens_per_step"] for stage in axis.meta["batch"]["stages"]] == [128 * 2048, 256 * 2048]
