"""A declared batch schedule: the integral over its stages equals a run, step by step."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tokenaxis.axis.schedule import BatchSchedule
from tokenaxis.errors import TokenAxisError


def run_step_by_step(pairs: list[tuple[float, float]], steps: int) -> tuple[list[float], list[float]]:
    """(tokens before, batch) of each step: the definition of a schedule, in a loop."""
    tokens, before, batch = 0.0, [], []
    for _ in range(steps):
        size = [size for start, size in pairs if start <= tokens][-1]
        before.append(tokens)
        batch.append(size)
        tokens += size
    return before, batch


def test_a_stage_starts_at_the_first_step_past_its_tokens() -> None:
    schedule = BatchSchedule.from_pairs([(0, 100), (250, 200)])
    assert schedule.tokens_before(np.arange(5)).tolist() == [0, 100, 200, 300, 500]
    assert schedule.batch_at(np.arange(5)).tolist() == [100, 100, 100, 200, 200]


def test_a_large_batch_may_jump_over_a_stage() -> None:
    schedule = BatchSchedule.from_pairs([(0, 100), (101, 50), (150, 200)])
    assert schedule.tokens_before(np.arange(4)).tolist() == [0, 100, 200, 400]


@settings(max_examples=200, deadline=None, derandomize=True)
@given(
    st.lists(st.tuples(st.integers(1, 5000), st.integers(1, 1000)), max_size=5, unique_by=lambda pair: pair[0]),
    st.integers(1, 1000),
)
def test_the_integral_equals_a_loop_over_the_steps(later: list[tuple[int, int]], first_batch: int) -> None:
    pairs = [(0.0, float(first_batch)), *sorted((float(start), float(size)) for start, size in later)]
    before, batch = run_step_by_step(pairs, 120)
    schedule = BatchSchedule.from_pairs(pairs)
    assert schedule.tokens_before(np.arange(120)).tolist() == before
    assert schedule.batch_at(np.arange(120)).tolist() == batch


@settings(max_examples=50, deadline=None, derandomize=True)
@given(st.floats(0.1, 1e6), st.floats(0.1, 1e6), st.floats(1.0, 1e7))
def test_fractional_batches_agree_with_the_loop(first: float, second: float, start: float) -> None:
    pairs = [(0.0, first), (start, second)]
    steps = int(min(start / first + 5, 2000))
    before, _ = run_step_by_step(pairs, steps)
    # the loop rounds at every addition, and may therefore switch one step later or earlier: exact up to one step of it
    tolerance = 1e-9 * before[-1] + abs(first - second)
    assert np.abs(BatchSchedule.from_pairs(pairs).tokens_before(np.arange(steps)) - before).max() <= tolerance


@pytest.mark.parametrize(
    "pairs",
    [
        [],
        [(10.0, 5.0)],
        [(0.0, 0.0)],
        [(0.0, -1.0)],
        [(0.0, float("nan"))],
        [(0.0, 1.0), (5.0, 2.0), (5.0, 3.0)],
        [(0.0, 1.0), (9.0, 2.0), (5.0, 3.0)],
    ],
)
def test_a_schedule_that_is_none_is_refused_with_an_example(pairs: list[tuple[float, float]]) -> None:
    with pytest.raises(TokenAxisError, match="schedule|batch") as caught:
        BatchSchedule.from_pairs(pairs)
    assert "batch_schedule: [[0," in str(caught.value)
