"""Predictions in hindsight: planted predictions, planted crossings."""

from __future__ import annotations

import math

import numpy as np
import pytest

from tests.unit.test_comparison_fake_sweep import make_run
from tokenaxis.comparison.answers import Answers, collect
from tokenaxis.comparison.curves import Windows
from tokenaxis.comparison.hindsight import judged, summarised
from tokenaxis.comparison.model import Sweep

TARGET = 1.8

HORIZONS = (1.25, 1.5, 2.0, 3.0)


def crossed(count: int) -> tuple[Answers, list[float]]:
    """(answers of `count` runs that reached TARGET, tokens at their crossings)."""
    answers = collect(Sweep("s", [make_run(f"r{n}", 4000, targets=(TARGET,)) for n in range(count)]), None)
    return answers, [answers.cells[f"r{n}", TARGET].tokens for n in range(count)]


def windows(
    run: str, tokens: float, error: float, half: float, horizons: tuple[float, ...] = (3, 2, 1.5, 1.25)
) -> Windows:
    """Windows at `horizons` whose predictions are off by `error` in ln(tokens), with intervals of ±`half`."""
    seen = tokens / np.array(horizons)
    predicted = np.full(len(seen), tokens * math.exp(error))
    return Windows(run, TARGET, seen, predicted, predicted * math.exp(-half), predicted * math.exp(half))


def test_errors_and_coverage_are_those_that_were_planted() -> None:
    answers, tokens = crossed(4)
    planted = [0.02, -0.04, 0.06, 0.3]  # the last lies outside its interval
    found = summarised(judged(answers, [windows(f"r{n}", tokens[n], planted[n], 0.1) for n in range(4)], HORIZONS))
    assert [entry.horizon for entry in found] == [1.25, 1.5, 2.0, 3.0]
    for entry in found:
        assert (entry.predictions, entry.unanswered) == (4, 0)
        assert entry.median_error == pytest.approx(0.05, rel=1e-9)  # between 0.04 and 0.06; only rounding
        assert (entry.held, entry.intervals) == (3, 4)


def test_a_window_without_an_answer_is_counted_as_one() -> None:
    answers, tokens = crossed(1)
    silent = windows("r0", tokens[0], math.nan, 0.1)
    for entry in summarised(judged(answers, [silent], HORIZONS)):
        assert (entry.predictions, entry.unanswered, entry.median_error, entry.intervals) == (0, 1, None, 0)


def test_an_interval_without_an_upper_end_holds_what_lies_above_its_lower_end() -> None:
    answers, tokens = crossed(1)
    entry = windows("r0", tokens[0], -0.5, 0.1)
    open_ended = Windows("r0", TARGET, entry.window_tokens, entry.predicted, entry.low, np.full(4, np.nan))
    assert all(found.held == 1 for found in summarised(judged(answers, [open_ended], HORIZONS)))


def test_only_windows_near_a_horizon_count_for_it() -> None:
    answers, tokens = crossed(1)
    found = summarised(judged(answers, [windows("r0", tokens[0], 0.0, 0.1, horizons=(1.75, 1.27))], HORIZONS))
    assert [entry.horizon for entry in found] == [1.25]


def test_targets_that_are_only_predicted_have_no_hindsight() -> None:
    answers = collect(Sweep("s", [make_run("r0", 4000, 1e5, targets=(TARGET,))]), None)
    assert answers.cells["r0", TARGET].status == "predicted"
    assert summarised(judged(answers, [windows("r0", 1e6, 0.0, 0.1)], HORIZONS)) == []
