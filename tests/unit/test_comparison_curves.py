"""Curves for drawing: nothing between two pixels is lost, smoothing does not shift, clocks are joined."""

from __future__ import annotations

import numpy as np
import pytest

from tests.unit.test_comparison_fake_sweep import L0, make_run, planted_loss
from tokenaxis.comparison.curves import RAW_POINTS, Shares, hours_to, read_curve, read_windows
from tokenaxis.comparison.thinning import Track, extremes, smoothed

#: of a sweep of one run
ONE = Shares.among(1)


def test_a_spike_of_one_row_survives_thinning_on_both_axes() -> None:
    rng = np.random.default_rng(3)
    tokens = np.arange(1, 100_001) * 500.0
    loss = planted_loss(tokens, 500.0) + 0.02 * rng.standard_normal(len(tokens))
    spikes = {7: 9.0, 50_003: 8.0, 99_998: 0.1}
    for row, value in spikes.items():
        loss[row] = value
    kept = extremes(tokens, loss, 100)
    assert len(kept) <= 4 * 100 + 2
    assert set(spikes) <= set(kept.tolist())
    assert {0, len(tokens) - 1} <= set(kept.tolist())


@pytest.mark.parametrize("axis", [np.log, np.asarray])
def test_each_pixel_column_keeps_its_lowest_and_its_highest_value(axis) -> None:
    rng = np.random.default_rng(4)
    tokens = np.cumsum(rng.uniform(1, 1000, 5000))
    loss = rng.standard_normal(5000)
    kept = extremes(tokens, loss, 50)
    place = axis(tokens)
    column = np.searchsorted(np.linspace(place[0], place[-1], 51)[1:-1], place, side="right")
    for number in np.unique(column):
        rows = np.flatnonzero(column == number)
        drawn = np.intersect1d(rows, kept)
        assert loss[drawn].min() == loss[rows].min()
        assert loss[drawn].max() == loss[rows].max()


@pytest.mark.parametrize("rows", [0, 1, 2, 7])
def test_a_short_series_is_kept_whole(rows: int) -> None:
    assert extremes(np.arange(rows) * 10.0, np.zeros(rows), 20).tolist() == list(range(rows))


def test_smoothing_follows_a_curve_without_lag() -> None:
    rng = np.random.default_rng(5)
    tokens = np.arange(1, 6001) * 1000.0
    truth = planted_loss(tokens, 1000.0)
    shown = smoothed(tokens, tokens / 1000, truth + 0.05 * rng.standard_normal(6000), 0.1)
    late = shown.tokens > 1e6
    error = shown.value[late] - planted_loss(shown.tokens[late], 1000.0)
    # windows hold 200 rows or more: noise 0.05/sqrt(200) = 0.0035, three of them at the edges of the window's slope
    assert np.abs(error).max() < 0.02
    assert abs(error.mean()) < 0.002  # a lag would show as a mean of one sign


def test_smoothing_reproduces_a_straight_line_in_ln_tokens() -> None:
    tokens = np.geomspace(1e3, 1e6, 500)
    shown = smoothed(tokens, np.arange(500.0), 5 - 0.3 * np.log(tokens), 0.1)
    # a local line is exact on a line; what is left is rounding of prefix sums
    assert shown.value == pytest.approx(5 - 0.3 * np.log(shown.tokens), abs=1e-9)


@pytest.mark.parametrize("rows", [0, 1, 2, 5])
def test_smoothing_takes_a_handful_of_rows(rows: int) -> None:
    tokens = np.arange(rows) * 4000.0
    shown = smoothed(tokens, np.arange(float(rows)), np.full(rows, 2.5), 0.1)
    assert np.all(shown.value == 2.5)


def test_the_curve_is_the_loss_that_targets_refer_to() -> None:
    run = make_run("a", every=10)
    assert read_curve(run, ONE, 0.1).loss_name == "train_loss"
    run.fits["loss"] = "val_loss"
    curve = read_curve(run, ONE, 0.1)
    assert curve.loss_name == "val_loss"
    assert set(curve.raw.step.tolist()) <= set(range(0, 10_000, 50))
    assert curve.last["val_loss"] > L0 and curve.last["train_loss"] > L0


def test_a_run_without_any_loss_has_an_empty_curve() -> None:
    run = make_run("a")
    columns = {name: values for name, values in run.columns().items() if not name.endswith("_loss")}
    curve = read_curve(type(run)(**{**vars(run), "columns": lambda: columns}), ONE, 0.1)
    assert curve.loss_name is None
    assert len(curve.raw.tokens) == len(curve.smooth.tokens) == 0
    assert curve.last == {}


def test_points_of_all_runs_together_are_bounded() -> None:
    curve = read_curve(make_run("a", batch=500.0), Shares.among(200), 0.1)
    assert len(curve.raw.tokens) <= RAW_POINTS / 200 + 2


def test_wall_time_goes_on_where_the_attempt_before_ended() -> None:
    whole, resumed = read_curve(make_run("a"), ONE, 0.1), read_curve(make_run("b", resumed=True), ONE, 0.1)
    assert len(resumed.attempt_starts) == 1
    assert np.all(np.diff(resumed.hours.value) > 0)
    # the second attempt's clock starts at 1 s again: its second and the 0.02 s of one step are the difference
    assert resumed.hours.value[-1] * 3600 == pytest.approx(whole.hours.value[-1] * 3600 + 1 - 0.02, abs=1e-6)


def test_wall_time_past_the_log_goes_on_at_the_last_pace() -> None:
    curve = read_curve(make_run("a"), ONE, 0.1)
    end = curve.hours.tokens[-1]
    # 0.02 s for each step of 4000 tokens, one second to start: linear, so exact
    assert hours_to(curve, 2 * end) * 3600 == pytest.approx(1 + 0.02 * 2 * end / 4000, rel=1e-6)
    assert hours_to(curve, None) is None


def test_windows_keep_the_newest_one() -> None:
    run = make_run("a")
    windows = read_windows(run, ONE)
    assert [entry.target for entry in windows] == [1.4, 1.6, 1.8, 2.0]
    assert windows[0].window_tokens[-1] == run.stability_table()["window_tokens"].max()
    assert np.all(np.diff(windows[0].window_tokens) > 0)


def test_batch_changes_are_kept_whatever_the_number_of_rows() -> None:
    curve = read_curve(make_run("a", grows_to=16000), ONE, 0.1)
    assert isinstance(curve.batch, Track)
    assert set(curve.batch.value.tolist()) == {4000.0, 16000.0}
