"""Calibration on the sweep's own runs: other runs only, runs as the unit, and it says what was used."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest

from tokenaxis.comparison import calibration
from tokenaxis.comparison.answers import Answer, Answers
from tokenaxis.comparison.calibration import FEWEST_RUNS, HORIZONS, calibrated, factor_of, score
from tokenaxis.comparison.curves import Windows

CROSSING = 6e9


def sweep(errors: dict[str, float], half: float = 0.1) -> tuple[Answers, list[Windows]]:
    """Runs that reached a target at 6e9 tokens, their windows erring by `errors` with half-widths `half`; and one run
    with a prediction at 8e9 +- 10%."""
    cells, windows = {}, []
    seen = CROSSING / np.array(HORIZONS)[::-1]
    for run, error in errors.items():
        cells[run, 2.0] = Answer(run, 2.0, "reached", tokens=CROSSING)
        predicted = np.full(len(seen), CROSSING * math.exp(error))
        low, high = predicted * math.exp(-half), predicted * math.exp(half)
        windows.append(Windows(run, 2.0, seen, predicted, low, high))
    cells["open", 1.9] = Answer("open", 1.9, "predicted", tokens=8e9, low=8e9 / 1.1, high=8e9 * 1.1, level=0.9)
    return Answers(tuple([*errors, "open"]), (2.0, 1.9), cells, None, ""), windows


def on_others(answers: Answers, windows: list[Windows]) -> dict[tuple[str, float], calibration.Calibrated]:
    """Intervals calibrated on what the windows of the other runs predicted."""
    return calibrated(answers, calibration.scores_of(answers, windows))


def test_a_score_is_the_error_in_half_widths_on_the_side_of_the_truth():
    assert score(11.0, 10.0, 9.0, 12.0) == pytest.approx(math.log(1.1) / math.log(1.2))
    assert score(9.5, 10.0, 9.0, 12.0) == pytest.approx(math.log(10 / 9.5) / math.log(10 / 9))
    assert score(99.0, 10.0, 9.0, math.nan) == 0.0, "nothing bounds it above"
    assert score(9.5, math.nan, math.nan, math.nan) == math.inf, "no answer although the target was reached"


def test_fewer_than_eight_other_runs_do_not_calibrate_and_it_says_so():
    found = on_others(*sweep({f"r{i}": 0.05 for i in range(FEWEST_RUNS - 1)}))["open", 1.9]
    assert found.low is None and found.high is None and found.factor is None
    assert "not calibrated" in found.calibration and "7 other runs" in found.calibration


def test_intervals_that_were_too_wide_are_narrowed_and_too_narrow_ones_widened():
    for error, factor in ((0.02, 0.2), (0.3, 3.0)):
        found = on_others(*sweep({f"r{i}": error for i in range(10)}))["open", 1.9]
        assert found.factor == pytest.approx(factor)
        assert found.low == pytest.approx(8e9 * 1.1**-factor) and found.high == pytest.approx(8e9 * 1.1**factor)
        assert "40 earlier predictions of 10 other runs" in found.calibration


def test_a_calibrated_interval_does_not_begin_inside_the_log():
    answers, windows = sweep({f"r{i}": 0.9 for i in range(10)})
    open_cell = replace(answers.cells["open", 1.9], horizon=1.05)
    wide = replace(answers, cells=answers.cells | {("open", 1.9): open_cell})
    assert on_others(wide, windows)["open", 1.9].low == pytest.approx(8e9 / 1.05)


def test_a_run_is_not_calibrated_on_itself():
    answers, windows = sweep({f"r{i}": 0.05 for i in range(9)})
    cells = answers.cells | {("r0", 1.9): Answer("r0", 1.9, "predicted", tokens=8e9, low=7e9, high=9e9, level=0.9)}
    wild = [
        Windows("r0", 2.0, w.window_tokens, w.predicted * 9, w.low * 9, w.high * 9) if w.run == "r0" else w
        for w in windows
    ]
    found = on_others(Answers(answers.runs, answers.targets, cells, None, ""), wild)
    assert found["r0", 1.9].factor == pytest.approx(0.5), "the eight others err by half of their half-widths"
    assert found["open", 1.9].factor > 5.0, "for another run the wild one counts"


def test_a_run_with_many_predictions_counts_as_much_as_one_with_few():
    scores = {f"r{i}": [1.0] for i in range(10)} | {"many": [9.0] * 1000}
    assert factor_of(scores, 0.8) == 1.0, "1,000 of 1,010 scores are 9, but ten of eleven runs are at 1"


@pytest.mark.parametrize("seed", range(20))
def test_leaving_a_run_out_of_the_pool_is_pooling_the_others(seed: int):
    """Against the definition, one run at a time: with ties, infinite scores and runs of different weight."""
    rng = np.random.default_rng(seed)
    choices = [0.0, 0.5, 1.0, 2.0, math.inf]
    scores = {f"r{i}": [float(rng.choice(choices)) if rng.random() < 0.5 else float(rng.exponential())
                        for _ in range(rng.integers(1, 6))] for i in range(rng.integers(8, 30))}  # fmt: skip
    pool = calibration.Pooled(scores)
    for run in [*scores, "of another sweep"]:
        others = {other: values for other, values in scores.items() if other != run}
        assert pool.counts(without=run) == (len(others), sum(map(len, others.values())))
        for level in (0.5, 0.9, 0.99):
            assert pool.factor(level, without=run) == by_definition(others, level)


def by_definition(scores: dict[str, list[float]], level: float) -> float | None:
    """The smallest score at which the mean of the runs' distribution functions is level (R + 1) / R, or all."""
    runs = list(scores.values())
    if len(runs) < FEWEST_RUNS:
        return None
    wanted = min(level * (len(runs) + 1) / len(runs), 1.0)
    known = sorted(value for values in runs for value in values)
    for place in known:
        # 1e-9: sums of shares such as 1/3 are not exact
        if np.mean([np.mean(np.array(values) <= place) for values in runs]) >= wanted - 1e-9:
            return place
    return known[-1]


def test_calibrated_intervals_cover_a_run_that_was_not_used():
    """Errors of runs drawn from one heavy-tailed law, intervals a third too narrow: the nominal share is reached."""
    rng = np.random.default_rng(3)
    held = []
    for _ in range(400):
        errors = 0.1 * rng.standard_t(3, 21)
        factor = factor_of({str(i): [abs(error) / 0.1] for i, error in enumerate(errors[:-1])}, 0.9)
        held.append(abs(errors[-1]) / 0.1 <= factor)
    # conformal coverage is 0.9 to 0.9 + 1/21; four standard deviations of a share of 400
    assert 0.9 - 0.06 < np.mean(held) < 0.9 + 1 / 21 + 0.06


def test_targets_without_any_earlier_answer_leave_the_intervals_as_they_are():
    answers, windows = sweep({f"r{i}": 0.05 for i in range(10)})
    nothing = [Windows(w.run, w.target, w.window_tokens, w.predicted * np.nan, w.low, w.high) for w in windows]
    found = on_others(answers, nothing)["open", 1.9]
    assert found.factor is None and "had no answer" in found.calibration
    assert calibration.scores_of(answers, nothing)["r0"] == [math.inf] * 4
