"""Several files of a run give the table that one file with the same rows gives."""

from __future__ import annotations

import numpy as np
import pytest

from tokenaxis.axis import build_axis
from tokenaxis.axis.concatenation import Piece
from tokenaxis.axis.joining import join_logs
from tokenaxis.declarations import Declaration
from tokenaxis.errors import TokenAxisError
from tokenaxis.readers.base import RawLog

DECLARED = Declaration(tokens_per_step=100.0)


def log(steps: list[int] | np.ndarray, seed: int = 0, column: str = "train_loss", **more: object) -> RawLog:
    step = np.asarray(steps, float)
    loss = np.random.default_rng(seed).uniform(2, 4, len(step))
    columns = {"step": step, column: loss}
    lines = np.arange(2, len(step) + 2)
    return RawLog("table", columns, lines, {name: name for name in columns}, len(step), **more)  # type: ignore[arg-type]


def concatenated(logs: list[RawLog]) -> RawLog:
    columns = {name: np.concatenate([one.columns[name] for one in logs]) for name in logs[0].columns}
    rows = len(columns["step"])
    return RawLog("table", columns, np.arange(2, rows + 2), dict(logs[0].names), rows)


@pytest.mark.parametrize("seed", range(30))
def test_attempts_in_files_of_their_own_are_attempts_in_one_file(seed: int) -> None:
    rng = np.random.default_rng(seed)
    logs, first = [], 0
    for number in range(int(rng.integers(2, 6))):
        last = first + int(rng.integers(5, 200))
        logs.append(log(np.arange(first, last), seed=100 * seed + number))
        first = int(rng.integers(max(1, first), last + 1))
    joined = join_logs([Piece(f"{n}.csv", one) for n, one in enumerate(logs)], "attempts")
    one, other = (build_axis(raw, DECLARED, "run", "auto") for raw in (joined, concatenated(logs)))
    assert set(one.columns) == set(other.columns)
    for name, values in one.columns.items():
        np.testing.assert_array_equal(values, other.columns[name])
    assert one.meta["attempts"] == other.meta["attempts"]
    assert one.meta["rows"] == other.meta["rows"]


@pytest.mark.parametrize("seed", range(30))
def test_overlapping_pieces_of_one_export_are_that_export(seed: int) -> None:
    rng = np.random.default_rng(seed)
    whole = log(np.arange(0, 500, int(rng.integers(1, 5))), seed)
    rows = len(whole.lines)
    cuts = np.sort(rng.choice(np.arange(1, rows), 3, replace=False))
    pieces = []
    for number, (start, end) in enumerate(zip([0, *cuts], [*cuts, rows], strict=True)):
        start = max(0, start - int(rng.integers(0, 20)))
        columns = {name: values[start:end] for name, values in whole.columns.items()}
        part = RawLog("table", columns, np.arange(2, end - start + 2), dict(whole.names), end - start)
        pieces.append(Piece(f"{number}.csv", part))
    axis = build_axis(join_logs(pieces, "exports"), DECLARED, "run", "auto")
    expected = build_axis(whole, DECLARED, "run", "auto")
    for name, values in expected.columns.items():
        np.testing.assert_array_equal(axis.columns[name], values)
    assert axis.meta["superseded_tokens"] == 0


@pytest.mark.parametrize("seed", range(10))
def test_columns_in_files_of_their_own_are_one_row_a_step(seed: int) -> None:
    rng = np.random.default_rng(seed)
    train = np.arange(0, 300)
    val = np.sort(rng.choice(train, 20, replace=False))
    pieces = [Piece("train", log(train, seed)), Piece("val", log(val, seed + 1, "val_loss"))]
    axis = build_axis(join_logs(pieces[:: rng.choice([1, -1])], "columns"), DECLARED, "run", "auto")
    assert axis.columns["step"].tolist() == train.tolist()
    assert np.flatnonzero(~np.isnan(axis.columns["val_loss"])).tolist() == val.tolist()
    np.testing.assert_array_equal(axis.columns["train_loss"], pieces[0].log.columns["train_loss"])


def test_metrics_of_a_resumed_run_are_joined_attempt_by_attempt() -> None:
    train = Piece("train", log([*range(0, 100), *range(50, 200)], 1))
    val = Piece("val", log([0, 50, 90, 50, 90, 150], 2, "val_loss"))
    axis = build_axis(join_logs([train, val], "columns"), DECLARED, "run", "auto")
    assert axis.columns["step"].tolist() == list(range(200))
    assert [attempt["first_step"] for attempt in axis.meta["attempts"]] == [0, 50]
    assert axis.columns["val_loss"][150] == val.log.columns["val_loss"][-1]
    assert axis.columns["val_loss"][90] == val.log.columns["val_loss"][4]


def test_the_declared_first_step_moves_a_file_that_counts_from_0_again() -> None:
    pieces = [Piece("a", log(range(171), 1)), Piece("b", log(range(200), 2), first_step=100)]
    axis = build_axis(join_logs(pieces, "attempts"), DECLARED, "run", "auto")
    assert axis.columns["step"].tolist() == list(range(300))
    assert axis.meta["rows"]["superseded"] == 71


def test_files_that_count_tokens_in_different_ways_are_refused() -> None:
    logs = [log(range(10), 1, tokens_convention="after"), log(range(10, 20), 2, tokens_convention="before")]
    for one in logs:
        one.columns["tokens"] = one.columns["step"] * 100
    with pytest.raises(TokenAxisError, match="different ways"):
        join_logs([Piece(str(n), one) for n, one in enumerate(logs)], "attempts")


def test_values_of_a_loss_in_two_files_that_differ_are_taken_from_the_fuller_one() -> None:
    pieces = [Piece("loss", log(range(100), 1)), Piece("train_loss", log(range(0, 100, 10), 2))]
    joined = join_logs(pieces, "columns")
    assert "train_loss_chosen" in {notice.code for notice in joined.warnings}
    np.testing.assert_array_equal(joined.columns["train_loss"], pieces[0].log.columns["train_loss"])
