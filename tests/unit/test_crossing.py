"""Crossings: the reference's first passage, and the local crossing with its interval."""

from __future__ import annotations

import numpy as np
import pytest

from tokenaxis.crossing import (
    dips_below,
    first_passage,
    local_crossing,
    median,
    neighbourhood_curve,
    noise_sd,
    without_single_rows,
)

BATCH = 5e5
Z90 = 1.645


def law(tokens):
    return np.minimum(9.0, 2.0 + 0.6 * np.maximum(tokens / 1e9, 1e-9) ** -0.35)


def tokens_of(loss):
    return (0.6 / (loss - 2.0)) ** (1 / 0.35) * 1e9


def cross(tokens, loss, target):
    return local_crossing(tokens, loss, neighbourhood_curve(tokens, loss), target)


def test_first_passage_interpolates_between_the_two_rows():
    step, tokens = np.array([0.0, 10.0, 20.0]), np.array([0.0, 1e6, 2e6])
    assert first_passage(step, tokens, np.array([4.0, 3.0, 2.0]), 2.5) == (15.0, 1.5e6)


def test_first_passage_takes_row_0_as_it_stands_and_never_reached_is_none():
    step, tokens = np.array([7.0, 10.0]), np.array([7e5, 1e6])
    assert first_passage(step, tokens, np.array([2.0, 1.0]), 2.5) == (7.0, 7e5)
    assert first_passage(step, tokens, np.array([4.0, 3.0]), 2.5) is None


@pytest.mark.parametrize("target", [2.9, 2.6, 2.5])
def test_a_noiseless_curve_is_crossed_within_a_hundredth_of_a_row(target):
    tokens = np.arange(4000) * BATCH
    found = cross(tokens, law(tokens), target)
    assert (
        abs(found.tokens - tokens_of(target)) < BATCH / 100
    )  # the curve's fourth derivative over the narrowest window


def test_the_local_crossing_is_unbiased_and_its_interval_covers():
    tokens = np.arange(20_000) * BATCH
    clean, target = law(tokens), float(law(np.array([5e9]))[0])
    rng = np.random.default_rng(3)
    places, covered = [], 0
    for _ in range(60):
        found = cross(tokens, clean + 0.08 * rng.standard_normal(len(tokens)), target)
        low, high = found.interval(Z90)
        covered += low <= 5e9 <= high
        places.append(found.tokens)
    # 60 runs with a standard deviation of .08B: the mean is known to .01B; four of those
    assert abs(np.mean(places) - 5e9) < 0.04e9
    assert np.std(places) < 0.11e9
    assert covered >= 54  # nominal 90%, and the inflation for drift makes it wide on white noise


def test_a_thinned_log_is_crossed_at_the_same_place():
    tokens = np.arange(0, 4000, 20) * BATCH
    loss = law(tokens) + 0.02 * np.random.default_rng(4).standard_normal(len(tokens))
    found = cross(tokens, loss, 2.6)
    low, high = found.interval(Z90)
    assert low < 1e9 < high and high / low < 1.2


def test_a_dip_of_a_single_row_does_not_cross():
    tokens = np.arange(1500) * BATCH
    loss = law(tokens)
    loss[900] = 1.0
    assert cross(tokens, loss, 1.5) is None
    assert abs(cross(tokens, loss, 2.7).tokens - tokens_of(2.7)) < BATCH
    assert dips_below(loss, 1.5, noise_sd(loss)).tolist() == [900]


def test_rows_of_an_ordinary_noisy_curve_are_no_dips():
    tokens = np.arange(4000) * BATCH
    loss = law(tokens) + 0.05 * np.random.default_rng(5).standard_normal(4000)
    assert len(dips_below(loss, 2.6, noise_sd(loss))) == 0


def test_a_jump_down_in_the_last_row_does_not_count_but_an_ordinary_last_row_does():
    tokens = np.arange(100, 400) * BATCH
    loss = law(tokens)
    assert cross(tokens, loss, float(loss[-1])) is not None
    loss[-1] -= 1.0
    assert cross(tokens, loss, float(loss[-2]) - 0.5) is None
    assert without_single_rows(loss)[-1] == loss[-2]


def test_below_from_the_first_row_on_is_no_crossing_in_this_log():
    tokens = np.arange(1500) * BATCH
    found = cross(tokens, law(tokens), 9.5)
    assert found.below_at_start


def test_a_later_rise_above_the_target_is_reported():
    tokens = np.arange(1, 4000) * BATCH
    loss = law(tokens)
    loss[3000:] += 0.5
    found = cross(tokens, loss, 2.6)
    assert found.crossed_back and abs(found.tokens - 1e9) < BATCH
    assert not cross(tokens, law(tokens), 2.6).crossed_back


@pytest.mark.parametrize("rows", [2, 3, 5, 8])
def test_few_rows_are_interpolated_and_the_interval_is_the_gap(rows):
    tokens = np.geomspace(0.5e9, 2e9, rows)
    found = cross(tokens, law(tokens), 2.6)
    low, high = found.interval(Z90)
    assert low <= 1e9 <= high
    assert found.tokens == pytest.approx(1e9, rel=0.15)  # two rows a factor of four apart: the line in ln T errs by 12%


def test_a_crossing_never_lies_past_the_last_row():
    rng = np.random.default_rng(6)
    tokens = np.arange(1, 2001) * BATCH
    for _ in range(20):
        loss = law(tokens) + 0.03 * rng.standard_normal(2000)
        found = cross(tokens, loss, float(law(tokens[-1:])[0]) + 1e-3)
        assert found is None or found.tokens <= tokens[-1]


def test_noise_is_seen_through_a_trend():
    tokens = np.arange(200, 4000) * BATCH
    loss = law(tokens) + 0.05 * np.random.default_rng(7).standard_normal(len(tokens))
    assert noise_sd(loss) == pytest.approx(0.05, rel=0.06)  # a median of 3,800 values is good to 2-3%


@pytest.mark.parametrize("rows", [1, 2, 7, 10])
def test_the_median_is_numpys(rows):
    values = np.random.default_rng(rows).standard_normal(rows)
    assert median(values) == np.median(values)
