"""Variable projection finds the global optimum: planted truths, and never a worse sum of squares than curve_fit."""

from __future__ import annotations

import numpy as np
import pytest

from tokenaxis.laws import planted
from tokenaxis.laws.projection import EXPONENT_BOUNDS, Problem, optimum
from tokenaxis.windows import every_window


def power(x, irreducible_loss, coefficient, exponent):
    return irreducible_loss + coefficient * np.power(x, -exponent)


@pytest.mark.filterwarnings("ignore")
def test_the_sum_of_squares_is_never_worse_than_that_of_curve_fit():
    for number in range(150):
        x, loss = planted.problem(number)
        theirs = planted.curve_fit_squares(x, loss)
        ours = optimum(Problem.of(np.log(x), loss, np.ones(len(x)), float(loss.min())))
        squares = float(((ours.loss(np.log(x)) - loss) ** 2).sum())
        # below 1e-20 of the total variance both fits are exact to the last bit and their order is rounding
        floor = 1e-20 * float(((loss - loss.mean()) ** 2).sum())
        assert squares <= theirs * (1 + 1e-9) + floor, number


@pytest.mark.filterwarnings("ignore")
def test_the_windows_solver_is_no_worse_either():
    for number in range(150):
        x, loss = planted.problem(number)
        theirs = planted.curve_fit_squares(x, loss)
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
