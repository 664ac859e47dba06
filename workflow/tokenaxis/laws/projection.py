"""Variable projection: least squares of L0 + A x^-alpha with bounds, as a search over alpha alone.

For a given alpha the two others are a bounded linear problem with a closed solution, so a dense scan over alpha and a
zoom around every dip find the global optimum (Golub and Pereyra 1973, for the idea; the basis is our own).
With u = ln x - mean, the basis expm1(-alpha u) / alpha tends to -u as alpha -> 0 and is never singular.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

#: bounds of the exponent, and least coefficient (x in units of 1e9 tokens): those of the reference script
EXPONENT_BOUNDS = (1e-3, 10.0)
COEFFICIENT_MIN = 1e-6
#: exponents of the scan
SCAN = 96
#: points of a zoom round
ZOOM = 12
LN_SCAN = np.linspace(np.log(EXPONENT_BOUNDS[0]), np.log(EXPONENT_BOUNDS[1]), SCAN)


@dataclass(frozen=True)
class PowerLaw:
    """L0 + A x^-alpha: irreducible loss, coefficient, exponent, and the weighted sum of squares it leaves."""

    irreducible_loss: float
    coefficient: float
    exponent: float
    sum_of_squares: float

    def loss(self, ln_x: np.ndarray) -> np.ndarray:
        return self.irreducible_loss + self.coefficient * np.exp(-self.exponent * ln_x)


@dataclass(frozen=True)
class Problem:
    """One weighted least-squares problem.

    Attributes:
        centred: (points,) ln x minus `centre`.
        centre: weighted mean of ln x.
        loss: (points,).
        weight: (points,).
        upper: upper bound of the irreducible loss (the lower one is 0).
        least: lower bound of the coefficient. The reference's is in units of 1e9 tokens, and would bind small runs.
    """

    centred: np.ndarray
    centre: float
    loss: np.ndarray
    weight: np.ndarray
    upper: float
    least: float = COEFFICIENT_MIN

    @classmethod
    def of(
        cls, ln_x: np.ndarray, loss: np.ndarray, weight: np.ndarray, upper: float, least: float = COEFFICIENT_MIN
    ) -> Problem:
        centre = float(weight @ ln_x / weight.sum())
        return cls(ln_x - centre, centre, loss, weight, upper, least)


def basis(exponents: np.ndarray, centred: np.ndarray) -> np.ndarray:
    """expm1(-alpha u) / alpha for every exponent, (exponents, points)."""
    out = np.multiply.outer(-exponents, centred)
    np.expm1(out, out=out)
    out /= exponents[:, None]
    return out


def profile(
    problem: Problem, exponents: np.ndarray, rows: np.ndarray, weight: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Best bounded (L0, slope) for every exponent: (sum of squares, L0, slope), each (exponents,).

    The model is L0 + slope * (basis + 1 / alpha); slope = A alpha exp(-alpha centre).
    `rows` is `basis(exponents, problem.centred)`, `weight` the (robust) weights.
    """
    total = weight.sum()
    mean = weight @ problem.loss / total
    deviation = problem.loss - mean
    weighted = weight * deviation
    mean_basis = rows @ weight / total
    moved = rows - mean_basis[:, None]
    variance = np.maximum((moved * moved) @ weight, 1e-300)
    covariance = moved @ weighted
    offset = mean_basis + 1.0 / exponents
    slope = covariance / variance
    level = mean - slope * offset
    bounded = np.minimum(np.maximum(level, 0.0), problem.upper)
    away = bounded - mean
    fixed_level = (covariance - total * offset * away) / (variance + total * offset * offset)
    slope = np.where(bounded == level, slope, fixed_level)
    least = problem.least * exponents * np.exp(np.minimum(-exponents * problem.centre, 600.0))
    low = slope < least
    if low.any():
        slope = np.where(low, least, slope)
        bounded = np.where(low, np.minimum(np.maximum(mean - slope * offset, 0.0), problem.upper), bounded)
        away = bounded - mean
    shift = away + slope * offset
    squares = weighted @ deviation + total * shift * shift - 2.0 * slope * covariance + slope * slope * variance
    return squares, bounded, slope


def optimum(
    problem: Problem,
    penalty: Callable[[np.ndarray], np.ndarray] | None = None,
    rounds: int = 12,
    scan: np.ndarray | None = None,
    weight: np.ndarray | None = None,
) -> PowerLaw:
    """Global optimum over the exponent, for fixed weights.

    Args:
        problem: the data.
        penalty: ln(exponents) -> penalty added to the sum of squares.
        rounds: zoom rounds; each narrows the bracket 5.5 times (12 reach 1e-10 in ln alpha).
        scan: `basis(exp(scan exponents), centred)` if the caller has it.
        weight: weights that replace the problem's.
    """
    weight = problem.weight if weight is None else weight
    rows = basis(np.exp(LN_SCAN), problem.centred) if scan is None else scan
    value = profile(problem, np.exp(LN_SCAN), rows, weight)[0]
    if penalty is not None:
        value = value + penalty(LN_SCAN)
    best: tuple[float, PowerLaw] | None = None
    for i in dips(value):
        found = _zoom(problem, weight, penalty, LN_SCAN[max(i - 1, 0)], LN_SCAN[min(i + 1, SCAN - 1)], rounds)
        if best is None or found[0] < best[0]:
            best = found
    assert best is not None  # the smallest scanned value always is a dip
    return best[1]


def dips(value: np.ndarray, factor: float = 4.0) -> list[int]:
    """Local minima of a scan that may hide the global one: within `factor` of the least value's rise, best first."""
    low = value <= np.append(np.inf, value[:-1])
    low &= value <= np.append(value[1:], np.inf)
    indices = np.flatnonzero(low)
    order = indices[np.argsort(value[indices], kind="stable")]
    limit = value[order[0]] * factor + 1e-300
    return [int(i) for i in order if value[i] <= limit][:4]


def _zoom(
    problem: Problem,
    weight: np.ndarray,
    penalty: Callable[[np.ndarray], np.ndarray] | None,
    low: float,
    high: float,
    rounds: int,
) -> tuple[float, PowerLaw]:
    for _ in range(rounds):
        points = np.linspace(low, high, ZOOM)
        exponents = np.exp(points)
        rows = basis(exponents, problem.centred)
        level, slope = profile(problem, exponents, rows, weight)[1:]
        rows += 1.0 / exponents[:, None]
        residual = problem.loss - level[:, None] - slope[:, None] * rows
        squares = (residual * residual) @ weight  # from residuals: the profile's difference of sums loses digits
        value = squares if penalty is None else squares + penalty(points)
        i = int(value.argmin())
        low, high = float(points[max(i - 1, 0)]), float(points[min(i + 1, ZOOM - 1)])
    exponent = float(exponents[i])
    coefficient = float(slope[i]) / exponent * float(np.exp(exponent * problem.centre))
    return float(value[i]), PowerLaw(float(level[i]), coefficient, exponent, float(squares[i]))
