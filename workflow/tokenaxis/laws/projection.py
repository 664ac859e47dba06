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
EXPONENTS = np.exp(LN_SCAN)
_STEPS = np.arange(float(ZOOM))


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


@dataclass(frozen=True)
class Scan:
    """The basis for every exponent, and its square, (exponents, points) each."""

    exponents: np.ndarray
    rows: np.ndarray
    squares: np.ndarray

    @classmethod
    def of(cls, problem: Problem, exponents: np.ndarray) -> Scan:
        rows = basis(exponents, problem.centred)
        return cls(exponents, rows, rows * rows)


@dataclass(frozen=True)
class Weighted:
    """(Robust) weights of a problem's points, with the sums that need no exponent.

    Attributes:
        weight: (points,). total: their sum. mean: of the loss.
        loss: (points,) weight times (loss minus mean). rest: its sum, a rounding error.
        squares: weighted sum of squares of the loss about its mean.
    """

    weight: np.ndarray
    total: float
    mean: float
    loss: np.ndarray
    rest: float
    squares: float

    @classmethod
    def of(cls, problem: Problem, weight: np.ndarray) -> Weighted:
        total = float(weight.sum())
        mean = float(weight @ problem.loss) / total
        deviation = problem.loss - mean
        loss = weight * deviation
        return cls(weight, total, mean, loss, float(loss.sum()), float(loss @ deviation))


@dataclass(frozen=True)
class Lines:
    """Best bounded L0 and slope for every exponent of a scan, with the moments that they come from, (exponents,) each.

    The model is L0 + slope * (basis + 1 / alpha); slope = A alpha exp(-alpha centre).
    """

    level: np.ndarray
    slope: np.ndarray
    offset: np.ndarray
    variance: np.ndarray
    covariance: np.ndarray


def lines(problem: Problem, scan: Scan, points: Weighted) -> Lines:
    """The linear problem of every exponent.

    The basis is centred already, more or less, so that its variance as a difference of sums keeps its digits.
    """
    exponents, total, mean = scan.exponents, points.total, points.mean
    mean_basis = scan.rows @ points.weight
    mean_basis /= total
    variance = np.maximum(scan.squares @ points.weight - total * mean_basis * mean_basis, 1e-300)
    covariance = scan.rows @ points.loss
    covariance -= mean_basis * points.rest
    offset = mean_basis + 1.0 / exponents
    slope = covariance / variance
    level = mean - slope * offset
    bounded = np.minimum(np.maximum(level, 0.0), problem.upper)
    if (bounded != level).any():
        pull = total * offset
        fixed_level = (covariance - pull * (bounded - mean)) / (variance + pull * offset)
        slope = np.where(bounded == level, slope, fixed_level)
    least = problem.least * exponents * np.exp(np.minimum(-exponents * problem.centre, 600.0)) if problem.least else 0.0
    low = slope < least
    if low.any():
        slope = np.where(low, least, slope)
        bounded = np.where(low, np.minimum(np.maximum(mean - slope * offset, 0.0), problem.upper), bounded)
    return Lines(bounded, slope, offset, variance, covariance)


def profile(problem: Problem, scan: Scan, points: Weighted) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Best bounded (L0, slope) for every exponent: (sum of squares, L0, slope), each (exponents,)."""
    found = lines(problem, scan, points)
    shift = found.level - points.mean + found.slope * found.offset
    squares = points.squares + points.total * shift * shift
    squares += found.slope * (found.slope * found.variance - 2.0 * found.covariance)
    return squares, found.level, found.slope


def optimum(
    problem: Problem,
    penalty: Callable[[np.ndarray], np.ndarray] | None = None,
    rounds: int = 12,
    scan: Scan | None = None,
    weight: np.ndarray | None = None,
) -> PowerLaw:
    """Global optimum over the exponent, for fixed weights.

    Args:
        problem: the data.
        penalty: ln(exponents) -> penalty added to the sum of squares.
        rounds: zoom rounds; each narrows the bracket 5.5 times (12 reach 1e-10 in ln alpha).
        scan: of the exponents exp(LN_SCAN), if the caller has it.
        weight: weights that replace the problem's.
    """
    points = Weighted.of(problem, problem.weight if weight is None else weight)
    value = profile(problem, scan or Scan.of(problem, EXPONENTS), points)[0]
    if penalty is not None:
        value = value + penalty(LN_SCAN)
    best: tuple[float, PowerLaw] | None = None
    for i in dips(value):
        found = _zoom(problem, points, penalty, LN_SCAN[max(i - 1, 0)], LN_SCAN[min(i + 1, SCAN - 1)], rounds)
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
    points: Weighted,
    penalty: Callable[[np.ndarray], np.ndarray] | None,
    low: float,
    high: float,
    rounds: int,
) -> tuple[float, PowerLaw]:
    for _ in range(rounds):
        ln_exponents = low + (high - low) / (ZOOM - 1) * _STEPS
        scan = Scan.of(problem, np.exp(ln_exponents))
        line = lines(problem, scan, points)
        residual = scan.rows
        residual *= line.slope[:, None]
        residual += (line.level + line.slope / scan.exponents)[:, None]
        residual -= problem.loss
        squares = np.square(residual, out=residual) @ points.weight  # the profile's difference of sums loses digits
        value = squares if penalty is None else squares + penalty(ln_exponents)
        i = int(value.argmin())
        low, high = float(ln_exponents[max(i - 1, 0)]), float(ln_exponents[min(i + 1, ZOOM - 1)])
    exponent = float(scan.exponents[i])
    coefficient = float(line.slope[i]) / exponent * float(np.exp(exponent * problem.centre))
    return float(value[i]), PowerLaw(float(line.level[i]), coefficient, exponent, float(squares[i]))
