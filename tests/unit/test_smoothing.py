"""Smoothers: the reference's EMA to the last digit, and EMAs whose window is tokens however the log is thinned."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import numpy as np
import pytest

from tokenaxis.smoothing import (
    ema_weight,
    gap_aware_ema,
    token_window_ema,
    token_window_ema_rowwise,
    two_sided_ema,
)


def _loop(values, weight, start):
    out, average = [], start
    for value, share in zip(values, weight, strict=True):
        average = share * value + (1 - share) * average
        out.append(average)
    return np.array(out)


@pytest.fixture(scope="module")
def reference(reference_script: Path):
    spec = importlib.util.spec_from_file_location("reference_target_loss", reference_script)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def _batches(kind: str, rows: int, rng: np.random.Generator) -> np.ndarray:
    if kind == "fixed":
        return np.full(rows, 5e5)
    if kind == "stages":
        return np.repeat([2.5e5, 5e5, 1e6], [rows // 2, rows // 4, rows - rows // 2 - rows // 4])
    if kind == "restless":
        return rng.choice([1e5, 2e5, 3e5], rows)
    return np.full(rows, 3e8)  # larger than the window: no smoothing


@pytest.mark.parametrize("kind", ["fixed", "stages", "restless", "huge"])
@pytest.mark.parametrize("rows", [1, 2, 63, 64, 65, 1000, 5003])
def test_the_ema_is_the_references_over_stage_changes(reference, kind, rows, capsys):
    rng = np.random.default_rng(rows)
    loss, batch = 3 + rng.standard_normal(rows), _batches(kind, rows, rng)
    expected = reference.token_window_ema(loss, batch, 1e8)
    # 1e-12: sums of at most 64 terms in another order
    np.testing.assert_allclose(token_window_ema(loss, batch, 1e8), expected, rtol=1e-12)
    assert (token_window_ema_rowwise(loss, batch, 1e8) == expected).all()  # the same operations: the same bits


def test_the_weight_is_that_of_a_span_in_steps_and_one_below_one_batch():
    np.testing.assert_allclose(ema_weight(np.array([5e5, 1e8, 1e9]), 1e8), [2 / 201, 1.0, 1.0])


def test_a_gap_aware_ema_of_a_dense_log_is_the_references():
    loss = np.random.default_rng(1).standard_normal(3000)
    batch, step = np.full(3000, 5e5), np.arange(3000.0)
    np.testing.assert_allclose(gap_aware_ema(loss, step, batch, 1e8), token_window_ema(loss, batch, 1e8), rtol=1e-12)


def test_thinning_a_log_does_not_widen_the_gap_aware_window():
    step = np.arange(0, 8000.0)
    loss = 2 + np.exp(-step / 2000)
    batch = np.full(len(step), 5e5)
    dense = gap_aware_ema(loss, step, batch, 1e8)
    thin = slice(None, None, 20)
    sparse = gap_aware_ema(loss[thin], step[thin], batch[thin], 1e8)
    by_rows = token_window_ema(loss[thin], batch[thin], 1e8)
    lag = np.abs(sparse - dense[thin])[100:].max()
    # a row stands for the 20 steps before it: half a gap of lag is left, against a window of 20 x 200 steps by rows
    assert lag < 0.006
    assert np.abs(by_rows - dense[thin])[100:].max() > 20 * lag


def test_gap_aware_decay_is_the_power_of_the_gap():
    step, batch = np.array([0.0, 1.0, 4.0, 4.0 + 7]), np.full(4, 1e6)
    loss = np.array([5.0, 4.0, 3.0, 2.0])
    weight = ema_weight(batch, 1e8)
    expected = _loop(loss, 1 - (1 - weight) ** np.array([1, 1, 3, 7]), 5.0)
    np.testing.assert_allclose(gap_aware_ema(loss, step, batch, 1e8), expected, rtol=1e-13)


def test_a_two_sided_ema_is_the_normalised_sum_of_both_sides():
    rng = np.random.default_rng(2)
    step = np.cumsum(rng.integers(1, 4, 40)).astype(float)
    loss, batch = rng.standard_normal(40), np.full(40, 5e6)
    kept = 1 - ema_weight(batch, 1e8)[0]
    weight = kept ** np.abs(step[:, None] - step[None, :])
    expected = weight @ loss / weight.sum(axis=1)
    np.testing.assert_allclose(two_sided_ema(loss, step, batch, 1e8), expected, rtol=1e-11)


def test_a_two_sided_ema_does_not_lag():
    step = np.arange(4000.0)
    loss, batch = 4 - step / 4000, np.full(4000, 5e5)
    smooth = two_sided_ema(loss, step, batch, 1e8)
    middle = slice(1500, 2500)
    assert np.abs(smooth - loss)[middle].max() < 1e-6  # symmetric weights keep a straight line
    assert (token_window_ema(loss, batch, 1e8) - loss)[middle].min() > 0.02  # the causal one lags by half its window


def test_two_rows_of_one_step_do_not_break_the_two_sided_ema():
    step = np.array([0.0, 1.0, 1.0, 2.0])
    smooth = two_sided_ema(np.array([1.0, 2.0, 4.0, 3.0]), step, np.full(4, 1e6), 1e8)
    assert np.isfinite(smooth).all() and smooth.min() >= 1.0 and smooth.max() <= 4.0
