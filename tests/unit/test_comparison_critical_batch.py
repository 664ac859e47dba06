"""The critical batch size: published numbers, planted numbers, honest intervals."""

from __future__ import annotations

import numpy as np
import pytest

from tests.unit.test_comparison_fake_sweep import B_CRIT, make_run, make_sweep
from tokenaxis.comparison.answers import collect
from tokenaxis.comparison.batch_size import trade_offs
from tokenaxis.comparison.critical_batch import fit
from tokenaxis.comparison.model import Sweep

#: steps to the target loss with batches of 2**6 ... 2**14 sequences, by model: Zhang et al. 2024 (arXiv:2410.21676),
#: the data of their notebook; and the batch E_min/S_min, in sequences, that McCandlish et al.'s equation gives for them
ZHANG = {
    "85M": ([46000, 23000, 13282, 7000, 3840, 2528, 1917, 1600, 1600], 2191),
    "151M": ([96000, 49000, 24000, 12000, 7128, 4350, 2940, 2400, 2300], 3240),
    "302M": ([196000, 90000, 46000, 23400, 13300, 7224, 4980, 3400, 2879], 5433),
    "604M": ([311000, 166000, 81000, 37440, 21320, 11400, 7199, 4700, 3800], 7907),
    "1.2B": ([642000, 331000, 176000, 94000, 46500, 25000, 15360, 8900, 6500], 11131),
}


@pytest.mark.parametrize(("steps", "batch"), ZHANG.values(), ids=ZHANG)
def test_the_five_models_of_zhang_2024(steps: list[int], batch: int) -> None:
    batches = 2.0 ** np.arange(6, 15)
    found = fit(batches, np.array(steps) * batches, None, 0.9)
    assert round(found.batch) == batch
    assert found.low < batch < found.high


def test_a_planted_trade_off_comes_back_exactly() -> None:
    batches = np.array([1e3, 4e3, 16e3, 64e3])
    found = fit(batches, 2e6 + 250.0 * batches, np.full(4, 0.1), 0.9)
    # no noise: golden section in ln(batch) ends where the sum of squares is flat to rounding, about 1e-8
    assert found.batch == pytest.approx(8000, rel=1e-6)
    assert found.tokens_min == pytest.approx(2e6, rel=1e-6)
    assert found.steps_min == pytest.approx(250, rel=1e-6)


@pytest.mark.parametrize("points", [3, 4, 6])
def test_the_interval_covers_the_truth_as_often_as_it_says(points: int) -> None:
    rng = np.random.default_rng(11)
    batches = np.geomspace(1e3, 64e3, points)
    hits = 0
    for _ in range(200):
        tokens = (1e6 + 100 * batches) * np.exp(0.05 * rng.standard_normal(points))
        found = fit(batches, tokens, None, 0.9)
        hits += (found.low or 0) <= 1e4 <= (found.high or np.inf)
    # binomial sd of 200 draws at 0.9 is 0.021: three of them either side, and the profile is only nearly exact
    assert 0.83 <= hits / 200 <= 0.97


def test_two_batch_sizes_are_not_enough() -> None:
    found = fit(np.array([1e3, 2e3, 2e3]), np.array([1e6, 2e6, 2e6]), None, 0.9)
    assert found.batch is None
    assert "three batch sizes" in found.reason


@pytest.mark.parametrize(("power", "word"), [(0.0, "below"), (1.0, "beyond")])
def test_batches_on_one_side_only_give_a_reason_instead_of_a_number(power: float, word: str) -> None:
    batches = np.array([1e3, 4e3, 16e3])
    found = fit(batches, 1e6 * (batches / 1e3) ** power, None, 0.9)
    assert found.batch is None
    assert word in found.reason


@pytest.mark.parametrize("batches", [np.array([100.0, 200.0, 400.0]), np.array([4e4, 8e4, 16e4])])
def test_extrapolation_is_said(batches: np.ndarray) -> None:
    found = fit(batches, 1e6 + 100 * batches, None, 0.9)
    assert found.batch == pytest.approx(1e4, rel=1e-4)  # exact data; the valley is flat this far out
    assert "extrapolated" in found.reason


def test_runs_of_a_sweep_give_the_planted_critical_batch() -> None:
    sweep = make_sweep()
    found = trade_offs(sweep, collect(sweep, None), 5.0)
    assert [entry.target for entry in found] == [2.0, 1.8, 1.6, 1.4]
    for entry in found:
        assert entry.critical.points == 4  # the best run at each of four fixed batches
        assert entry.critical.batch == pytest.approx(B_CRIT, rel=1e-4)


def test_a_run_whose_batch_changed_on_the_way_is_shown_but_not_fitted() -> None:
    runs = [make_run("a", 2000), make_run("b", 8000), make_run("grows", 4000, grows_to=16000)]
    found = trade_offs(Sweep("s", runs), collect(Sweep("s", runs), None), 5.0)
    last = found[-1]
    assert {point.cell.run: point.fixed for point in last.points} == {"a": True, "b": True, "grows": False}
    assert [point.cell.run for point in last.used] == ["a", "b"]


def test_models_of_different_size_are_not_fitted_together() -> None:
    runs = [make_run(f"r{batch}", batch) for batch in (2000, 4000, 8000)]
    runs[2].conventions["facts"]["n_params"]["value"] = 5
    found = trade_offs(Sweep("s", runs), collect(Sweep("s", runs), None), 5.0)
    assert found[0].critical.points == 2
    assert found[0].critical.batch is None


def test_one_batch_size_makes_no_trade_off() -> None:
    sweep = Sweep("s", [make_run("a"), make_run("b")])
    assert trade_offs(sweep, collect(sweep, None), 5.0) == []


def test_runs_of_another_schedule_are_left_out() -> None:
    runs = [make_run(f"r{batch}", batch) for batch in (2000, 4000, 8000, 16000)]
    decayed = make_run("decayed", 8000)
    decayed.axis_meta["lr"]["constant_after_warmup"] = False
    decayed.fits["targets"][0]["tokens"] /= 2  # the best at its batch, but not comparable
    sweep = Sweep("s", [*runs, decayed])
    found = trade_offs(sweep, collect(sweep, None), 5.0)[0]
    assert "decayed" not in {point.cell.run for point in found.used}
    assert found.critical.batch == pytest.approx(B_CRIT, rel=1e-4)


def test_a_far_extrapolation_is_no_point() -> None:
    runs = [make_run("a", 2000), make_run("b", 4000), make_run("far", 8000, 2e5)]
    found = trade_offs(Sweep("s", runs), collect(Sweep("s", runs), None), 5.0)
    assert all(point.cell.run != "far" for entry in found for point in entry.points)


def test_the_interval_is_never_narrower_than_the_points_own_intervals_allow() -> None:
    batches = np.array([1e3, 4e3, 16e3, 64e3])
    exact = fit(batches, 2e6 + 250.0 * batches, np.full(4, 0.1), 0.9)  # on the curve by luck
    wider = fit(batches, 2e6 + 250.0 * batches, np.full(4, 0.2), 0.9)
    assert wider.low < exact.low < exact.batch < exact.high < wider.high
