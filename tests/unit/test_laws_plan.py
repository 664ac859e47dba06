"""Planned schedules: every kind that can be declared, and those that the logged rates themselves give away."""

from __future__ import annotations

import numpy as np
import pytest

from tokenaxis.errors import TokenAxisError
from tokenaxis.laws.plan import Clock, declared_plan, plan_of, recognised_plan
from tokenaxis.series import LossSeries

BATCH = 1e6
CLOCK = Clock(np.arange(100.0), np.arange(100.0) * BATCH, np.full(100, BATCH))
END = 1000 * BATCH


def ratio(schedule, *steps, end=END):
    return declared_plan(schedule, CLOCK, end).ratio(np.array(steps, float) * BATCH)


def test_constant_after_a_linear_warmup():
    np.testing.assert_allclose(ratio({"kind": "constant", "warmup_steps": 50}, 0, 25, 50, 5000), [0, 0.5, 1, 1])


def test_cosine_falls_from_the_end_of_warmup_to_the_final_rate():
    schedule = {"kind": "cosine", "warmup_steps": 100, "final": 0.1}
    np.testing.assert_allclose(ratio(schedule, 100, 550, 1000, 2000), [1, 0.55, 0.1, 0.1])


def test_a_final_rate_beside_a_peak_is_absolute():
    schedule = {"kind": "linear", "peak": 6e-4, "final": 6e-5}
    np.testing.assert_allclose(ratio(schedule, 0, 500, 1000), [1, 0.55, 0.1])


@pytest.mark.parametrize(("shape", "half"), [("linear", 0.5), ("cosine", 0.5), ("sqrt", 1 - 0.5**0.5)])
def test_wsd_holds_and_then_decays_in_its_shape(shape, half):
    schedule = {"kind": "wsd", "decay_steps": 200, "shape": shape}
    np.testing.assert_allclose(ratio(schedule, 10, 800, 900, 1000), [1, 1, half, 0], atol=1e-12)
    by_share = {"kind": "wsd", "decay_fraction": 0.2, "shape": shape}
    np.testing.assert_allclose(ratio(by_share, 10, 800, 900, 1000), [1, 1, half, 0], atol=1e-12)


def test_inverse_sqrt_and_table():
    schedule = {"kind": "inverse_sqrt", "warmup_steps": 100}
    np.testing.assert_allclose(ratio(schedule, 50, 100, 400, end=None), [0.5, 1, 0.5])
    table = {"kind": "table", "points": [[0, 0.0], [10, 2e-3], [20, 1e-3]]}
    np.testing.assert_allclose(ratio(table, 5, 10, 15, 99, end=None), [0.5, 1, 0.75, 0.5])


@pytest.mark.parametrize(
    ("schedule", "word"),
    [
        ({"kind": "spiral"}, "spiral"),
        ({"kind": "cosine"}, "no end"),
        ({"kind": "wsd"}, "no end"),
        ({"kind": "inverse_sqrt"}, "warmup_steps"),
        ({"kind": "table", "points": []}, "points"),
        ({"kind": "table", "points": [[10, 1], [0, 1]]}, "ascend"),
        ({"kind": "constant", "warmup_steps": "many"}, "no number"),
        ({"kind": "table", "points": [1, 2]}, "no number"),
    ],
)
def test_a_schedule_that_lacks_something_says_what(schedule, word):
    with pytest.raises(TokenAxisError, match=word):
        declared_plan(schedule, CLOCK, None)
    with pytest.raises(TokenAxisError, match="decay_steps"):
        declared_plan({"kind": "wsd"}, CLOCK, END)
    with pytest.raises(TokenAxisError, match="shape"):
        declared_plan({"kind": "wsd", "decay_steps": 1, "shape": "round"}, CLOCK, END)


def logged(lr, steps=None, **changes) -> LossSeries:
    step = np.arange(float(len(lr))) if steps is None else steps
    return LossSeries("train_loss", step, step * BATCH, np.ones(len(lr)), np.full(len(lr), BATCH), lr, **changes)


@pytest.mark.parametrize("every", [1, 50])
@pytest.mark.parametrize("final", [0.0, 0.1])
@pytest.mark.parametrize("seen", [0.35, 0.6, 1.0])
def test_a_cosine_decay_is_recognised_with_its_end_and_final_rate(every, final, seen):
    step = np.arange(0, seen * 4000, every)
    lr = 3e-4 * np.minimum((step + 1) / 200, final + (1 - final) * 0.5 * (1 + np.cos(np.pi * (step - 200) / 3800)))
    lr[step < 200] = 3e-4 * (step[step < 200] + 1) / 200
    found = recognised_plan(logged(lr, step, warmup_end_step=198))
    assert found.kind == "cosine" and found.source == "lr column"
    assert found.end_tokens == pytest.approx(4000 * BATCH, rel=1e-4)  # exact but for the search's last bracket
    assert found.ratio(np.array([4000 * BATCH]))[0] == pytest.approx(final, abs=1e-3)


def test_a_linear_decay_is_recognised_and_runs_to_zero():
    step = np.arange(2500.0)
    lr = np.clip(np.minimum((step + 1) / 100, (3000 - step) / 1000), 0, 1)
    found = recognised_plan(logged(lr, warmup_end_step=98))
    assert found.kind == "linear" and found.end_tokens == pytest.approx(3000 * BATCH, rel=1e-6)


@pytest.mark.parametrize(
    "lr",
    [
        np.ones(500),
        np.where(np.arange(500) < 300, 1.0, 0.3),  # a single drop
        np.exp(-np.arange(500) / 200),  # exponential
        1 / np.sqrt(1 + np.arange(500) / 50),
    ],
)
def test_what_follows_neither_shape_is_not_recognised(lr):
    assert recognised_plan(logged(lr, warmup_end_step=0)) is None


def test_noise_on_the_rates_is_no_schedule():
    lr = 0.5 * (1 + np.cos(np.pi * np.arange(400) / 800)) + 0.01 * np.random.default_rng(1).standard_normal(400)
    assert recognised_plan(logged(lr, warmup_end_step=0)) is None


def test_a_declared_plan_goes_before_a_recognised_one():
    lr = 0.5 * (1 + np.cos(np.pi * np.arange(400) / 800))
    series = logged(lr, warmup_end_step=0, lr_schedule={"kind": "constant"})
    assert plan_of(series).source == "declared"
