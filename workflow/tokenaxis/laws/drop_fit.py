"""L0 + A x^-alpha - B D for given D: bounded least squares over a scan of alpha, with priors on alpha and B."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from tokenaxis.crossing import median

#: the scan of the exponent
LN_SCAN = np.linspace(math.log(0.03), math.log(3.0), 80)
#: factor on the long-run variance in both penalties (method.md section 4)
PENALTY = 3.0
#: relative standard deviation of the prior on B, also of B's model error
DROP_SPREAD = 0.3
#: rounds of reweighting, zoom rounds
ROUNDS, ZOOM_ROUNDS = 4, 4


@dataclass(frozen=True)
class Solution:
    """L0, A, B and ln(alpha); the axis is in TOKEN_UNIT."""

    irreducible_loss: float
    coefficient: float
    exponent: float
    drop: float

    def loss(self, ln_x: np.ndarray, arrived: np.ndarray) -> np.ndarray:
        power = self.coefficient * np.exp(-self.exponent * ln_x)
        out: np.ndarray = self.irreducible_loss + power - self.drop * arrived
        return out


@dataclass(frozen=True)
class Prior:
    """Centres and spreads of ln(alpha) and B; `variance` scales both penalties."""

    exponent: float
    exponent_sd: float
    drop: float
    variance: float

    @property
    def drop_sd(self) -> float:
        return DROP_SPREAD * self.drop


@dataclass(frozen=True)
class Points:
    """What is fitted, (points,): ln X, loss, D, weights."""

    ln_x: np.ndarray
    loss: np.ndarray
    arrived: np.ndarray
    weight: np.ndarray


def reweighted(points: Points, prior: Prior, huber: float) -> tuple[Solution, np.ndarray]:
    """Huber's M-estimator: (solution, robust weights)."""
    weight, root = points.weight, np.sqrt(points.weight)
    for _ in range(ROUNDS):
        found = _scan(points, weight, prior, LN_SCAN)[0]
        size = np.abs(points.loss - found.loss(points.ln_x, points.arrived)) * root
        limit = huber * 1.4826 * median(size) + 1e-300
        weight = points.weight * np.minimum(1.0, limit / np.maximum(size, 1e-300))
    found, low, high = _scan(points, weight, prior, LN_SCAN)
    for _ in range(ZOOM_ROUNDS):
        found, low, high = _scan(points, weight, prior, np.linspace(low, high, 12))
    return found, weight


def _scan(points: Points, weight: np.ndarray, prior: Prior, ln_exponents: np.ndarray) -> tuple[Solution, float, float]:
    """Best solution over a grid of ln(alpha), and the grid points on both sides of it."""
    total = weight.sum()
    centre = float(weight @ points.ln_x / total)
    power = np.exp(np.multiply.outer(-np.exp(ln_exponents), points.ln_x - centre))
    solved, value = _non_negative(points, weight, power, prior)
    value = value + PENALTY * prior.variance * ((ln_exponents - math.log(prior.exponent)) / prior.exponent_sd) ** 2
    i = int(value.argmin())
    exponent = float(np.exp(ln_exponents[i]))
    level, slope, drop = (float(v) for v in solved[i])
    found = Solution(level, slope * math.exp(exponent * centre), exponent, drop)
    return found, float(ln_exponents[max(i - 1, 0)]), float(ln_exponents[min(i + 1, len(ln_exponents) - 1)])


def _non_negative(points: Points, weight: np.ndarray, power: np.ndarray, prior: Prior) -> tuple[np.ndarray, np.ndarray]:
    """Non-negative (L0, slope, B) for every exponent, by trying each set of parameters at 0: (solutions, objective).

    `power` is (exponents, points). Where D says nothing about B, a tiny ridge keeps it at its prior's centre.
    """
    grid = len(power)
    level = float(points.loss.mean())
    loss = points.loss - level  # centred, so that the sums keep their digits; L0 >= 0 becomes L0 >= -level
    stiff = PENALTY * prior.variance / max(prior.drop_sd, 1e-12) ** 2
    drop = -points.arrived
    ones = np.ones_like(drop)
    matrix = np.empty((grid, 3, 3))
    right = np.empty((grid, 3))
    weighted_power = power * weight
    matrix[:, 0, 0] = weight.sum()
    matrix[:, 0, 1] = matrix[:, 1, 0] = weighted_power @ ones
    matrix[:, 0, 2] = matrix[:, 2, 0] = weight @ drop
    matrix[:, 1, 1] = np.einsum("gp,gp->g", weighted_power, power)
    matrix[:, 1, 2] = matrix[:, 2, 1] = weighted_power @ drop
    ridge = 1e-12 * weight.sum()
    matrix[:, 2, 2] = weight @ (drop * drop) + stiff + ridge
    right[:, 0] = weight @ loss
    right[:, 1] = weighted_power @ loss
    right[:, 2] = weight @ (drop * loss) + stiff * prior.drop + ridge * prior.drop
    stabilise(matrix)
    best, objective = np.zeros((grid, 3)), np.full(grid, np.inf)
    for floor_level in (False, True):
        for floor_drop in (False, True):
            solved, value, feasible = with_floors(matrix, right, level, floor_level, floor_drop)
            better = feasible & (value < objective)
            best[better], objective[better] = solved[better], value[better]
    best[:, 0] += level
    return best, objective


def stabilise(matrix: np.ndarray) -> None:
    """Raise the diagonals of (..., 3, 3) normal equations by a rounding error, in place: none is singular then."""
    for i in range(3):
        matrix[..., i, i] = matrix[..., i, i] * (1.0 + 1e-12) + 1e-300


def with_floors(
    matrix: np.ndarray, right: np.ndarray, level: float, floor_level: bool, floor_drop: bool
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Least squares with L0 held at 0 (centred: -level) and / or B at 0: (solutions, objective, feasible)."""
    free = [i for i, held in enumerate((floor_level, False, floor_drop)) if not held]
    base = np.array([-level if floor_level else 0.0, 0.0, 0.0])
    solved = np.broadcast_to(base, right.shape).copy()
    reduced = right - matrix @ base
    solved[:, free] = np.linalg.solve(matrix[np.ix_(range(len(matrix)), free, free)], reduced[:, free, None])[..., 0]
    value = np.einsum("gi,gij,gj->g", solved, matrix, solved) - 2.0 * np.einsum("gi,gi->g", right, solved)
    feasible = (solved[:, 0] >= -level - 1e-12) & (solved[:, 1] > 0.0) & (solved[:, 2] >= 0.0)
    return solved, value, feasible


def covariance_of(found: Solution, points: Points, weight: np.ndarray, prior: Prior) -> np.ndarray:
    """Inverse of J'WJ / sigma^2 + diag(0, 0, 1 / sd^2, 1 / (.3 B0)^2) in (L0, A, ln alpha, B), (4, 4)."""
    jacobian = gradient(found.coefficient, found.exponent, points.ln_x, points.arrived)
    hessian = (jacobian * weight) @ jacobian.T / max(prior.variance, 1e-300)
    hessian[2, 2] += 1.0 / prior.exponent_sd**2
    hessian[3, 3] += 1.0 / max(prior.drop_sd, 1e-12) ** 2
    scale = 1.0 / np.sqrt(np.diag(hessian))
    scales = np.multiply.outer(scale, scale)
    out: np.ndarray = np.linalg.pinv(hessian * scales, hermitian=True) * scales
    return out


def gradient(coefficient: float, exponent: float, ln_x: np.ndarray, arrived: np.ndarray) -> np.ndarray:
    """d loss / d (L0, A, ln alpha, B) at each point, (4, points)."""
    power = np.exp(-exponent * ln_x)
    slope = -coefficient * exponent * power * ln_x
    return np.stack([np.ones_like(power), power, slope, -arrived])
