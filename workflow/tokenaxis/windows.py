"""The power law on every window at once (method.md section 3).

A window is a range of points. For alpha on a few panels of Chebyshev nodes, sums over the points between window ends
are taken once; differences of their suffix sums are the sufficient statistics of every window, so the cost is
O(points x nodes) for *all* windows. Scale-free combinations of them are interpolated in ln alpha, and the best alpha is
searched for all windows together.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np

from tokenaxis.laws.projection import COEFFICIENT_MIN
from tokenaxis.laws.window_sums import Order, fill_moments

#: panels of the exponent, and Chebyshev nodes on each (method.md section 3)
EDGES = np.log(np.array([1e-3, 0.03, 0.12, 0.3, 0.7, 1.5, 3.2, 6.0, 10.0]))
NODES = 12
#: points of the first scan on each panel, points of a zoom round (3.5 times narrower each)
SCAN, ZOOM = 10, 8
#: rounds that leave 1e-9 of the sum of squares wherever the optimum lies; enough of them where it is a smooth minimum
EXACT_ROUNDS, FAST_ROUNDS = 9, 2
#: Newton steps to the minimum between the last points
NEWTON = 4
#: panels on which sums are taken of expm1(-alpha u) / alpha; above, of exp(-alpha u), which underflows gracefully
SMALL_PANELS = 3

#: slopes above are no least slope where the least coefficient is 0
NEVER_LEAST = 1e-200

_ANGLE = np.pi * (np.arange(NODES) + 0.5) / NODES
_NODE = -np.cos(_ANGLE)
_ONES = np.ones(NODES)
_BARYCENTRIC = (-1.0) ** np.arange(NODES) * np.sin(_ANGLE)
_MIDDLE, _HALF = 0.5 * (EDGES[:-1] + EDGES[1:]), 0.5 * np.diff(EDGES)
_LN_NODES = _MIDDLE[:, None] + _HALF[:, None] * _NODE
_PANELS = len(_MIDDLE)
_EXPONENTS = np.exp(_LN_NODES).ravel()
_SMALL = SMALL_PANELS * NODES


@dataclass(frozen=True)
class WindowFits:
    """L0 + A x^-alpha of every window; arrays (windows,).

    `squares` is the weighted sum of squares at the optimum, `free_squares` without the penalty on the exponent,
    `points_weight` the sum of weights.
    """

    irreducible_loss: np.ndarray
    coefficient: np.ndarray
    exponent: np.ndarray
    squares: np.ndarray
    free_squares: np.ndarray
    points_weight: np.ndarray


@dataclass(frozen=True)
class Penalty:
    """variance x ((ln alpha - centre) / spread)^2, the variance taken from each window's own residuals.

    Attributes:
        centre, spread: of ln alpha.
        inflation: factor on the variance of a residual.
        within: (windows,) sum of squares that the points themselves hide (rows about the means of their bins).
    """

    centre: float
    spread: float
    inflation: float
    within: np.ndarray


@dataclass(frozen=True)
class _Statistics:
    """Scale-free statistics on the nodes, (3, windows, panels, NODES), and per-window numbers, (windows,).

    The three are covariance / root, (average + 1 / alpha) / root and ln(root alpha), root^2 being the variance of the
    basis, with the basis expm1(-alpha u) / alpha; from exp(-alpha u) come the same numbers.
    """

    nodes: np.ndarray
    weight: np.ndarray
    mean: np.ndarray
    spread: np.ndarray
    upper: np.ndarray
    level: float
    centre: float
    least: float
    stiffness: np.ndarray
    prior: float = 0.0


def every_window(
    ln_x: np.ndarray,
    loss: np.ndarray,
    weight: np.ndarray | None,
    starts: np.ndarray,
    ends: np.ndarray,
    *,
    upper: np.ndarray | None = None,
    penalty: Penalty | None = None,
    least: float = COEFFICIENT_MIN,
    rounds: int = EXACT_ROUNDS,
) -> WindowFits:
    """Least-squares power law of every window [start, end) of the points.

    Args:
        ln_x: (points,) ascending; x in units of 1e9 tokens for the usual bound on the coefficient.
        loss: (points,).
        weight: (points,) or None for 1.
        starts, ends: (windows,) indices; every window holds at least four points.
        upper: (windows,) upper bounds of L0, or None for none.
        penalty: prior on the exponent.
        least: lower bound of the coefficient (the reference's unless another is given).
        rounds: zoom rounds.

    Returns:
        The global optimum of each window over alpha in [1e-3, 10], L0 in [0, upper], A >= least.
    """
    with np.errstate(over="ignore"):  # windows without any spread in ln x: their slopes are beyond all bounds
        statistics = _statistics(ln_x, loss, weight, starts, ends, upper, least)
        return _search(statistics, penalty, rounds)


def _statistics(
    ln_x: np.ndarray,
    loss: np.ndarray,
    weight: np.ndarray | None,
    starts: np.ndarray,
    ends: np.ndarray,
    upper: np.ndarray | None,
    least: float,
) -> _Statistics:
    first, last = int(starts.min()), int(ends.max())
    u, y = ln_x[first:last], loss[first:last]
    centre, level = float(u.mean()), float(y.mean())
    order = Order(last - first, last - starts, last - ends)
    w = order.arranged(np.ones(len(u)) if weight is None else weight[first:last])
    u, y = order.arranged(u - centre), order.arranged(y - level)

    total, sum_y, sum_yy = order.windowed(np.concatenate([w, w * y, w * y * y], axis=1)).T
    mean = sum_y / total
    spread = np.maximum(sum_yy - total * mean * mean, 0.0)
    sums = np.empty((3, len(starts), _PANELS * NODES))
    fill_moments(order, u, y, w, _EXPONENTS, _SMALL, sums)
    _scale_free(sums, total[:, None], mean[:, None])
    nodes = sums.reshape(3, len(starts), _PANELS, NODES)
    bound = np.full(len(starts), np.inf) if upper is None else upper - level
    return _Statistics(nodes, total, mean, spread, bound, level, centre, least, np.zeros(len(starts)))


def _scale_free(sums: np.ndarray, total: np.ndarray, mean: np.ndarray) -> None:
    """Sums of w b y, w b and w b^2 (3, windows, nodes), in place to what is interpolated (see `_Statistics`)."""
    covariance, average, root = sums
    average /= total
    weighted = total * average
    covariance -= weighted * mean
    root -= np.multiply(weighted, average, out=weighted)
    np.maximum(root, 1e-300, out=root)
    np.sqrt(root, out=root)
    covariance /= root
    average[:, :_SMALL] += 1.0 / _EXPONENTS[:_SMALL]
    average /= root
    root[:, :_SMALL] *= _EXPONENTS[:_SMALL]
    np.log(root, out=root)


def _interpolation(position: np.ndarray) -> np.ndarray:
    """Barycentric weights of the Chebyshev nodes for positions in [-1, 1], (..., NODES)."""
    distance = position[..., None] - _NODE
    at_node = np.abs(distance) < 1e-13
    if at_node.any():
        distance[at_node] = 1e-300
    weight = np.divide(_BARYCENTRIC, distance, out=distance)
    weight /= (weight @ _ONES)[..., None]
    return weight


_SCAN_POSITION = np.linspace(-1.0, 1.0, SCAN + 1)[:-1]
_SCAN_WEIGHT = _interpolation(_SCAN_POSITION)
_LN_SCAN = np.append((_MIDDLE[:, None] + _HALF[:, None] * _SCAN_POSITION).ravel(), EDGES[-1])


def _profile(s: _Statistics, values: np.ndarray, ln_exponents: np.ndarray) -> tuple[np.ndarray, ...]:
    """(sum of squares, L0, slope) from statistics `values` (..., windows-broadcastable) in the first axis of size 3."""
    correlation, offset, ln_root = values
    extend = (slice(None),) + (None,) * (correlation.ndim - 1)
    weight, mean, spread, upper = (a[extend] for a in (s.weight, s.mean, s.spread, s.upper))
    level = mean - correlation * offset
    bounded = np.minimum(np.maximum(level, -s.level), upper)
    away = bounded - mean
    slope, held = correlation, bounded != level
    if held.any():
        pull = weight * offset
        slope = np.where(held, (correlation - pull * away) / (1.0 + pull * offset), correlation)
    if s.least > 0.0 or slope.min() < NEVER_LEAST:
        least = np.exp(np.minimum(math.log(max(s.least, 1e-300)) - np.exp(ln_exponents) * s.centre + ln_root, 600.0))
        low = slope <= least
        slope = np.where(low, least, slope)
        bounded = np.where(low, np.minimum(np.maximum(mean - slope * offset, -s.level), upper), bounded)
        away = bounded - mean
    shift = slope * offset
    shift += away
    squares = weight * shift
    squares *= shift
    squares += spread
    squares += slope * (slope - 2.0 * correlation)
    return squares, bounded, slope


def _search(s: _Statistics, penalty: Penalty | None, rounds: int) -> WindowFits:
    dense = (s.nodes.reshape(-1, NODES) @ _SCAN_WEIGHT.T).reshape(3, len(s.weight), -1)
    values = _profile(s, dense, _LN_SCAN[:-1])[0]
    free_squares = np.maximum(values.min(axis=1), 0.0)
    if penalty is not None:
        s = _penalised(s, penalty, free_squares)
        values += _charge(s, _LN_SCAN[:-1])
    best = values.argmin(axis=1)
    low, high = _LN_SCAN[np.maximum(best - 1, 0)], _LN_SCAN[np.minimum(best + 1, len(_LN_SCAN) - 1)]
    candidates = _candidates(s, low, high, rounds)
    at = _at(s, candidates)
    squares, level, slope = _profile(s, at, candidates)
    best, every = (squares + _charge(s, candidates)).argmin(axis=1), np.arange(len(best))
    exponent = np.exp(candidates[every, best])
    ln_coefficient = np.log(slope[every, best]) - at[2][every, best] + exponent * s.centre
    return WindowFits(
        irreducible_loss=level[every, best] + s.level,
        coefficient=np.exp(np.minimum(ln_coefficient, 700.0)),
        exponent=exponent,
        squares=np.maximum(squares[every, best], 0.0),
        free_squares=free_squares,
        points_weight=s.weight,
    )


def _penalised(s: _Statistics, penalty: Penalty, free_squares: np.ndarray) -> _Statistics:
    """The statistics with each window's penalty."""
    variance = (free_squares + penalty.within) / np.maximum(s.weight - 3.0, 1.0) * penalty.inflation
    return replace(s, stiffness=variance / penalty.spread**2, prior=penalty.centre)


def _charge(s: _Statistics, ln_exponents: np.ndarray) -> np.ndarray:
    """The penalty on (..., points) ln exponents, (windows, points)."""
    away = ln_exponents - s.prior
    charge: np.ndarray = s.stiffness[:, None] * (away * away)
    return charge


def _candidates(s: _Statistics, low: np.ndarray, high: np.ndarray, rounds: int) -> np.ndarray:
    """ln exponents between (windows,) `low` and `high` of which the better one is the optimum, (windows, 2)."""
    every, share = np.arange(len(low)), np.linspace(0.0, 1.0, ZOOM)
    for _ in range(rounds):
        points = low[:, None] + (high - low)[:, None] * share
        squares, level, _slope = _profile(s, _at(s, points), points)
        values = squares + _charge(s, points)
        best = values.argmin(axis=1)
        low, high = points[every, np.maximum(best - 1, 0)], points[every, np.minimum(best + 1, ZOOM - 1)]
    out = np.stack([points[every, best], _vertex(points, values, best)], axis=1)
    bounded = (level <= -s.level) | (level >= s.upper[:, None])
    bent = np.flatnonzero(bounded.any(axis=1) & ~bounded.all(axis=1))
    if rounds < EXACT_ROUNDS and len(bent):  # L0 comes to its bound inside the bracket: no smooth minimum there
        out[bent] = _candidates(_some(s, bent), low[bent], high[bent], EXACT_ROUNDS)
    return out


def _some(s: _Statistics, windows: np.ndarray) -> _Statistics:
    """The statistics of some windows, by their indices."""
    names = ("weight", "mean", "spread", "upper", "stiffness")
    return replace(s, nodes=s.nodes[:, windows], **{name: getattr(s, name)[windows] for name in names})


def _at(s: _Statistics, points: np.ndarray) -> np.ndarray:
    """Statistics of each window at its own (windows, points) ln exponents, (3, windows, points)."""
    panel = np.clip(np.searchsorted(EDGES, points, "right") - 1, 0, _PANELS - 1)
    weight = _interpolation((points - _MIDDLE[panel]) / _HALF[panel])
    first = panel[:, 0]
    nodes = s.nodes[:, np.arange(len(points)), first]  # (3, windows, NODES)
    out = np.matmul(nodes.transpose(1, 0, 2), weight.transpose(0, 2, 1)).transpose(1, 0, 2)
    over = np.flatnonzero((panel != first[:, None]).any(axis=1))
    if len(over):  # brackets that reach over an edge of two panels
        own = s.nodes[:, over[:, None], panel[over]]  # (3, over, points, NODES)
        out[:, over] = np.einsum("cwpk,wpk->cwp", own, weight[over])
    return out


def _vertex(points: np.ndarray, values: np.ndarray, best: np.ndarray) -> np.ndarray:
    """Minimum of the quartic through the best point of each window and two on either side, (windows,), by Newton.

    A parabola through points so close that it is accurate would amplify the values' rounding.
    """
    every, middle = np.arange(len(points)), np.clip(best, 2, ZOOM - 3)
    far_left, left, centre, right, far_right = (values[every, middle + shift] for shift in range(-2, 3))
    odd, far_odd = right - left, far_right - far_left
    even, far_even = right + left - 2.0 * centre, far_right + far_left - 2.0 * centre
    first, third = (8.0 * odd - far_odd) / 12.0, (far_odd - 2.0 * odd) / 12.0
    second, fourth = (16.0 * even - far_even) / 24.0, (far_even - 4.0 * even) / 24.0
    start = (best - middle).astype(float)
    place = start.copy()
    for _ in range(NEWTON):
        slope = first + place * (2.0 * second + place * (3.0 * third + place * 4.0 * fourth))
        bend = 2.0 * second + place * (6.0 * third + place * 12.0 * fourth)
        step = np.where(bend > 0, -slope / np.where(bend > 0, bend, 1.0), 0.0)
        place = np.clip(place + step, start - 1.0, start + 1.0)
    return np.clip(points[every, middle] + place * (points[:, 1] - points[:, 0]), EDGES[0], EDGES[-1])
