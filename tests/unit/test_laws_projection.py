"""Variable projection finds the global optimum: planted truths, and never a worse sum of squares than curve_fit."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import curve_fit

from tokenaxis.laws.projection import EXPONENT_BOUNDS, Problem, optimum
from tokenaxis.windows import every_window


def power(x, irreducible_loss, coefficient, exponent):
    return irreducible_loss + coefficient * np.power(x, -exponent)


def planted(number: int) -> tuple[np.ndarray, np.ndarray]:
    """One of many random problems: all scales, exponents out of bounds, flat, rising and straight curves among them."""
    rng = np.random.default_rng([8, number])
    rows, last = int(rng.choice([12, 40, 200, 1500])), 10 ** rng.uniform(-2, 2)
    x = np.sort(rng.uniform(0.01, 1, rows)) * last if number % 3 else np.linspace(0.02, 1, rows) * last
    exponent, coefficient = rng.choice([0.01, 0.1, 0.35, 1.0, 3.0, 9.0, 14.0]), 10 ** rng.uniform(-3, 1)
    fall = coefficient * np.minimum((x / last) ** -exponent, 1e3)
    loss = rng.uniform(0, 3.5) + fall + rng.choice([0, 0.003, 0.05, 0.3]) * rng.standard_normal(rows)
    if number % 11 == 0:
        loss = 3.0 + 1e-3 * rng.standard_normal(rows)
    if number % 13 == 0:
        loss = 1 + x / last + 0.01 * rng.standard_normal(rows)
    if number % 17 == 0:
        loss = 4 - x / last
    return x, np.abs(loss)


def by_curve_fit(x, loss) -> float:
    start = [loss.min() * 0.9, max(loss[0] - loss.min(), 1e-3), 0.3]
    bounds = ([0, 1e-6, 1e-3], [loss.min(), np.inf, 10])
    try:
        found, _ = curve_fit(power, x, loss, p0=start, bounds=bounds, maxfev=20000)
    except RuntimeError:
        return np.inf
    return float(((power(x, *found) - loss) ** 2).sum())


@pytest.mark.filterwarnings("ignore")
def test_the_sum_of_squares_is_never_worse_than_that_of_curve_fit():
    for number in range(150):
        x, loss = planted(number)
        theirs = by_curve_fit(x, loss)
        ours = optimum(Problem.of(np.log(x), loss, np.ones(len(x)), float(loss.min())))
        squares = float(((ours.loss(np.log(x)) - loss) ** 2).sum())
        # below 1e-20 of the total variance both fits are exact to the last bit and their order is rounding
        floor = 1e-20 * float(((loss - loss.mean()) ** 2).sum())
        assert squares <= theirs * (1 + 1e-9) + floor, number


@pytest.mark.filterwarnings("ignore")
def test_the_windows_solver_is_no_worse_either():
    for number in range(150):
        x, loss = planted(number)
        theirs = by_curve_fit(x, loss)
        found = every_window(np.log(x), loss, None, np.array([0]), np.array([len(x)]), upper=np.array([loss.min()]))
        fitted = power(x, found.irreducible_loss[0], found.coefficient[0], found.exponent[0])
        squares = float(((fitted - loss) ** 2).sum())
        # sums of squares by differences: 1e-14 of the total variance is what is left of 16 digits
        floor = 1e-14 * float(((loss - loss.mean()) ** 2).sum())
        assert squares <= theirs * (1 + 1e-9) + floor, number


@pytest.mark.parametrize("exponent", [0.05, 0.35, 1.0, 4.0])
def test_a_noiseless_law_is_recovered(exponent):
    x = np.geomspace(0.3, 20, 500)
    loss = power(x, 2.0, 0.6, exponent)
    found = optimum(Problem.of(np.log(x), loss, np.ones(500), float(loss.min())))
    # the zoom leaves 1e-10 in ln alpha; L0 and A follow it with the conditioning of the problem
    assert found.exponent == pytest.approx(exponent, rel=1e-6)
    assert found.irreducible_loss == pytest.approx(2.0, rel=1e-5)
    assert found.coefficient == pytest.approx(0.6, rel=1e-4)


def test_the_bounds_of_the_reference_hold():
    x = np.geomspace(0.3, 20, 200)
    steep = optimum(Problem.of(np.log(x), power(x, 2.0, 0.6, 14.0), np.ones(200), 9.0))
    rising = optimum(Problem.of(np.log(x), 1 + 0.1 * x, np.ones(200), 1.0))
    below = optimum(Problem.of(np.log(x), 3.0 - np.log(x), np.ones(200), 0.0))
    assert steep.exponent == pytest.approx(EXPONENT_BOUNDS[1])
    assert rising.coefficient >= 1e-6
    assert below.irreducible_loss == 0.0


def test_weights_count_rows():
    x, loss = np.geomspace(0.5, 5, 30), power(np.geomspace(0.5, 5, 30), 2.0, 0.6, 0.5)
    loss = loss + 0.01 * np.random.default_rng(9).standard_normal(30)
    weight = np.random.default_rng(10).integers(1, 5, 30)
    once = optimum(Problem.of(np.log(x), loss, weight.astype(float), 9.0))
    many = optimum(Problem.of(np.log(np.repeat(x, weight)), np.repeat(loss, weight), np.ones(weight.sum()), 9.0))
    assert once.exponent == pytest.approx(many.exponent, rel=1e-6)  # the same problem written out
