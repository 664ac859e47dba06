"""Throughput and pauses from wall times in a log."""

from __future__ import annotations

import numpy as np
import pytest

from tokenaxis.axis.pace import EMA_WARMUP, EMA_WEIGHT, facts, measure
from tokenaxis.facts import gather


def axis(
    elapsed: list[float], attempt: list[int] | None = None, tokens_per_step: float = 100.0
) -> dict[str, np.ndarray]:
    rows = len(elapsed)
    return {
        "tokens": np.arange(rows) * tokens_per_step,
        "attempt": np.array(attempt or [0] * rows, dtype=np.int32),
        "elapsed_s": np.array(elapsed, dtype=np.float64),
    }


def test_a_steady_run_has_one_pace() -> None:
    pace, reason = measure(axis([10 + 2.0 * row for row in range(50)]))
    assert reason is None
    assert pace is not None
    assert (pace.tokens_per_s, pace.seconds, pace.startup_s, pace.pause_s) == (50, 108, 10, 0)
    assert pace.moving_tokens_per_s == pytest.approx(50, rel=1e-12)  # weights sum to 1 up to roundings


def test_the_moving_average_is_that_of_a_loop() -> None:
    rng = np.random.default_rng(1)
    elapsed = np.cumsum(rng.uniform(0.5, 1.5, 40))
    pace, _ = measure(axis(list(elapsed)))
    value = None
    for seconds in np.diff(elapsed)[EMA_WARMUP:]:
        rate = 100.0 / seconds
        value = rate if value is None else EMA_WEIGHT * rate + (1 - EMA_WEIGHT) * value
    assert pace is not None
    assert pace.moving_tokens_per_s == pytest.approx(value, rel=1e-12)  # the same sum, otherwise bracketed


def test_a_pause_costs_goodput_and_is_called_an_estimate() -> None:
    elapsed = [1.0 * row + (30 if row >= 20 else 0) for row in range(41)]
    pace, _ = measure(axis(elapsed))
    assert pace is not None
    assert pace.pause_s == pytest.approx(30)  # 31 s where 1 s is usual
    found = gather({}, facts(axis(elapsed)))
    assert found.value("goodput") == pytest.approx(40 / 70)
    assert "estimate" in found.get("goodput").note
    parts = found.value("time_parts")
    assert sum(part["s"] for part in parts) == pytest.approx(found.value("elapsed_s"))
    assert [part["measured"] for part in parts] == [True, False, False]


def test_rows_logged_at_different_distances_are_no_pause() -> None:
    columns = axis([0.0] * 40)
    steps = np.cumsum([1] * 20 + [10] * 20)
    columns |= {"tokens": steps * 100.0, "elapsed_s": steps * 1.0}
    pace, _ = measure(columns)
    assert pace is not None
    assert pace.pause_s == 0


def test_time_starts_anew_with_every_attempt() -> None:
    elapsed = [5.0 + row for row in range(20)] + [7.0 + row for row in range(20)]
    pace, _ = measure(axis(elapsed, [0] * 20 + [1] * 20))
    assert pace is not None
    assert pace.seconds == 24 + 26
    assert pace.startup_s == 5 + 7
    assert pace.tokens_per_s == 100


@pytest.mark.parametrize(
    ("columns", "reason"),
    [
        ({"tokens": np.arange(3.0), "attempt": np.zeros(3)}, "no wall time"),
        (axis([1.0]), "fewer than two rows"),
        (axis([float("nan")] * 5), "fewer than two rows"),
        (axis([3.0, 2.0, 1.0]), "does not grow"),
        (axis([1.0, 1.0, 1.0]), "does not grow"),
    ],
)
def test_without_a_pace_there_is_a_reason(columns: dict[str, np.ndarray], reason: str) -> None:
    pace, why = measure(columns)
    assert pace is None
    assert why is not None
    assert reason in why
    assert facts(columns) == []


def test_few_rows_have_a_pace_but_no_goodput() -> None:
    keys = {fact["key"] for fact in facts(axis([0.0, 1.0, 2.0]))}
    assert keys == {"tokens_per_s", "elapsed_s"}


#: steps 0 to 9 of 2 s after a start of 3 s, then killed; resumed at step 6, 5 steps more
KILLED = {"superseded_s": 8.0}


def resumed(second: list[float]) -> tuple[dict[str, np.ndarray], list[dict[str, float]]]:
    """Rows that count: 6 of the first attempt (3 s to 13 s), then `second`; the first attempt ended at 21 s."""
    columns = axis([3 + 2.0 * row for row in range(6)] + second, [0] * 6 + [1] * len(second))
    return columns, [KILLED, {"superseded_s": 0.0}]


@pytest.mark.parametrize(
    ("clock", "second", "startup", "seconds"),
    [
        ("begins at 0 again, 4 s of start-up", [4, 6, 8, 10, 12], 3 + 4, 21 + 12),
        ("came out of the checkpoint at 13 s", [15, 17, 19, 21, 23], 3, 21 + (23 - 13)),
        ("never stopped: 30 s between the attempts", [51, 53, 55, 57, 59], 3 + 30, 59),
    ],
)
def test_wall_time_of_all_attempts_is_told_by_the_clock(
    clock: str, second: list[float], startup: float, seconds: float
) -> None:
    columns, attempts = resumed(second)
    pace, _ = measure(columns, attempts)
    assert pace is not None
    assert (pace.startup_s, pace.seconds, pace.lost_s) == (startup, seconds, 8), clock
    assert pace.tokens_per_s == 50
    found = gather({}, facts(columns, attempts))
    parts = {part["name"]: part["s"] for part in found.value("time_parts") or ()}
    if parts:
        assert sum(parts.values()) == pytest.approx(seconds)


def test_steps_done_again_cost_goodput_and_are_a_part_of_their_own() -> None:
    columns = axis([1.0 * row for row in range(20)] + [19.5 + row for row in range(20)], [0] * 20 + [1] * 20)
    found = gather({}, facts(columns, [{"superseded_s": 10.0}, {"superseded_s": 0.0}]))
    parts = {part["name"]: part for part in found.value("time_parts")}
    assert (parts["superseded"]["s"], parts["superseded"]["measured"]) == (10, True)
    assert sum(part["s"] for part in parts.values()) == pytest.approx(found.value("elapsed_s"))
    assert found.value("goodput") == pytest.approx(parts["compute"]["s"] / found.value("elapsed_s"))
    unknown = gather({}, facts(columns, [{"superseded_rows": 3, "superseded_s": None}, {"superseded_s": 0.0}]))
    assert "is not in the log" in unknown.get("elapsed_s").note
