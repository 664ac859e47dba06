"""The power law on every window at once (method.md section 3).

A window is a range of points. For alpha on a few panels of Chebyshev nodes, sums over the points between window ends
are taken once; differences of their suffix sums are the sufficient statistics of every window, so the cost is
O(points x nodes) for *all* windows. Scale-free combinations of them are interpolated in ln alpha, and the best alpha is
searched for all windows together.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from tokenaxis.laws.projection import COEFFICIENT_MIN

#: panels of the exponent, and Chebyshev nodes on each (method.md section 3)
EDGES = np.log(np.array([1e-3, 0.03, 0.12, 0.3, 0.7, 1.5, 3.2, 6.0, 10.0]))
NODES = 12
#: points of the first scan on each panel, points of a zoom round (3.5 times narrower each)
SCAN, ZOOM = 10, 8
#: rounds that leave 1e-9 of the sum of squares; for intervals, a few thousandths of ln alpha are plenty
EXACT_ROUNDS, FAST_ROUNDS = 9, 3
#: panels on which sums are taken of expm1(-alpha u) / alpha; above, of exp(-alpha u), which underflows gracefully
SMALL_PANELS = 3

#: values of a basis that are worked on at a time: what a core's cache holds, and a bound on the memory
CACHED = 400_000
#: largest ln of a basis value: its square still is a number
LARGEST_POWER = 300.0

_ANGLE = np.pi * (np.arange(NODES) + 0.5) / NODES
_NODE = -np.cos(_ANGLE)
_BARYCENTRIC = (-1.0) ** np.arange(NODES) * np.sin(_ANGLE)
_MIDDLE, _HALF = 0.5 * (EDGES[:-1] + EDGES[1:]), 0.5 * np.diff(EDGES)
_LN_NODES = _MIDDLE[:, None] + _HALF[:, None] * _NODE
_PANELS = len(_MIDDLE)


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
    """Scale-free statistics on the nodes, (panels, windows, 3, NODES), and per-window numbers, (windows,)."""

    nodes: np.ndarray
    weight: np.ndarray
    mean: np.ndarray
    spread: np.ndarray
    upper: np.ndarray
    level: float
    centre: float
    least: float


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
    cuts = np.unique(np.concatenate([starts, ends]))
    first, last = int(cuts[0]), int(cuts[-1])
    cells = cuts[:-1] - first
    begin, end = np.searchsorted(cuts, starts), np.searchsorted(cuts, ends)
    u, y = ln_x[first:last], loss[first:last]
    centre, level = float(u.mean()), float(y.mean())
    u, y = u - centre, y - level
    w = np.ones(len(u)) if weight is None else weight[first:last]

    def windowed(values: np.ndarray) -> np.ndarray:
        """Sum over each window of (..., points) values: differences of suffix sums.

        From the end backward, because exp(-alpha u) is largest at the start: later points cannot drown a window.
        """
        suffix = np.zeros((*values.shape[:-1], len(cuts)))
        suffix[..., :-1] = np.cumsum(np.add.reduceat(values, cells, axis=-1)[..., ::-1], axis=-1)[..., ::-1]
        return suffix[..., begin] - suffix[..., end]

    total = windowed(w)
    mean = windowed(w * y) / total
    spread = np.maximum(windowed(w * y * y) - total * mean * mean, 0.0)
    nodes = np.empty((_PANELS, 3, NODES, len(starts)))
    for panel, at, exponents, values in _bases(u):
        weighted = w * values
        average = windowed(weighted) / total
        variance = np.maximum(windowed(weighted * values) - total * average * average, 1e-300)
        covariance = windowed(weighted * y) - total * average * mean
        root = np.sqrt(variance)
        alpha = exponents[:, None]
        small = panel < SMALL_PANELS
        nodes[panel, 0, at] = covariance / root
        nodes[panel, 1, at] = (average + 1.0 / alpha) / root if small else average / root
        nodes[panel, 2, at] = np.log(root * alpha) if small else np.log(root)
    bound = np.full(len(starts), np.inf) if upper is None else upper - level
    return _Statistics(
        np.ascontiguousarray(nodes.transpose(0, 3, 1, 2)), total, mean, spread, bound, level, centre, least
    )


def _bases(u: np.ndarray) -> Iterator[tuple[int, slice, np.ndarray, np.ndarray]]:
    """(panel, nodes of it, exponents, basis values (exponents, points)), few enough at a time to bound the memory."""
    at_once = max(1, min(NODES, CACHED // max(len(u), 1)))
    for panel in range(_PANELS):
        for start in range(0, NODES, at_once):
            at = slice(start, start + at_once)
            exponents = np.exp(_LN_NODES[panel, at])
            values = np.minimum(np.multiply.outer(-exponents, u), LARGEST_POWER)
            if panel < SMALL_PANELS:
                np.expm1(values, out=values)
                values /= exponents[:, None]
            else:
                np.exp(values, out=values)
            yield panel, at, exponents, values


def _interpolation(position: np.ndarray) -> np.ndarray:
    """Barycentric weights of the Chebyshev nodes for positions in [-1, 1], (..., NODES)."""
    distance = position[..., None] - _NODE
    distance[np.abs(distance) < 1e-13] = 1e-300
    weight = _BARYCENTRIC / distance
    return weight / weight.sum(axis=-1, keepdims=True)


_SCAN_POSITION = np.linspace(-1.0, 1.0, SCAN + 1)[:-1]
_SCAN_WEIGHT = _interpolation(_SCAN_POSITION)
_LN_SCAN = np.append((_MIDDLE[:, None] + _HALF[:, None] * _SCAN_POSITION).ravel(), EDGES[-1])


def _profile(s: _Statistics, values: np.ndarray, ln_exponents: np.ndarray) -> tuple[np.ndarray, ...]:
    """(sum of squares, L0, slope) from statistics `values` (..., windows-broadcastable) in the first axis of size 3."""
    correlation, offset, ln_root = values
    extend = (slice(None),) + (None,) * (correlation.ndim - 1)
    weight, mean, spread, upper = (a[extend] for a in (s.weight, s.mean, s.spread, s.upper))
    least = np.exp(np.minimum(math.log(max(s.least, 1e-300)) - np.exp(ln_exponents) * s.centre + ln_root, 600.0))
    level = mean - correlation * offset
    bounded = np.minimum(np.maximum(level, -s.level), upper)
    away = bounded - mean
    fixed = (correlation - weight * offset * away) / (1.0 + weight * offset * offset)
    slope = np.where(bounded == level, correlation, fixed)
    low = slope <= least
    if low.any():
        slope = np.where(low, least, slope)
        bounded = np.where(low, np.minimum(np.maximum(mean - slope * offset, -s.level), upper), bounded)
        away = bounded - mean
    shift = away + slope * offset
    return spread + weight * shift * shift - 2.0 * slope * correlation + slope * slope, bounded, slope


def _search(s: _Statistics, penalty: Penalty | None, rounds: int) -> WindowFits:
    windows = len(s.weight)
    dense = np.matmul(s.nodes, _SCAN_WEIGHT.T)  # (panels, windows, 3, SCAN)
    dense = dense.transpose(2, 1, 0, 3).reshape(3, windows, -1)
    free = _profile(s, dense, _LN_SCAN[:-1])[0]
    free_squares = np.maximum(free.min(axis=1), 0.0)

    def charge(ln_exponents: np.ndarray) -> np.ndarray | float:
        if penalty is None:
            return 0.0
        rows = np.maximum(s.weight - 3.0, 1.0)
        variance = (free_squares + penalty.within) / rows * penalty.inflation
        return variance[:, None] * ((ln_exponents - penalty.centre) / penalty.spread) ** 2

    best = (free + charge(_LN_SCAN[:-1])).argmin(axis=1)
    low, high = _LN_SCAN[np.maximum(best - 1, 0)], _LN_SCAN[np.minimum(best + 1, len(_LN_SCAN) - 1)]
    every, share = np.arange(windows), np.linspace(0.0, 1.0, ZOOM)
    for _ in range(rounds):
        points = low[:, None] + (high - low)[:, None] * share
        values = _profile(s, _at(s, points), points)[0] + charge(points)
        i = values.argmin(axis=1)
        low, high = points[every, np.maximum(i - 1, 0)], points[every, np.minimum(i + 1, ZOOM - 1)]
    vertex = _vertex(points, values, i)
    candidates = np.stack([points[every, i], vertex], axis=1)
    at = _at(s, candidates)
    squares, level, slope = _profile(s, at, candidates)
    i = (squares + charge(candidates)).argmin(axis=1)
    exponent = np.exp(candidates[every, i])
    ln_coefficient = np.log(slope[every, i]) - at[2][every, i] + exponent * s.centre
    return WindowFits(
        irreducible_loss=level[every, i] + s.level,
        coefficient=np.exp(np.minimum(ln_coefficient, 700.0)),
        exponent=exponent,
        squares=np.maximum(squares[every, i], 0.0),
        free_squares=free_squares,
        points_weight=s.weight,
    )


def _at(s: _Statistics, points: np.ndarray) -> np.ndarray:
    """Statistics of each window at its own (windows, points) ln exponents, (3, windows, points)."""
    panel = np.clip(np.searchsorted(EDGES, points, "right") - 1, 0, _PANELS - 1)
    weight = _interpolation((points - _MIDDLE[panel]) / _HALF[panel])
    every = np.arange(len(points))
    first = panel[:, 0]
    out = np.matmul(s.nodes[first, every], weight.transpose(0, 2, 1))  # (windows, 3, points)
    crossing = np.flatnonzero((panel != first[:, None]).any(axis=1))
    if len(crossing):  # brackets that reach over an edge of two panels
        own = s.nodes[panel[crossing], crossing[:, None]]  # (crossing, points, 3, NODES)
        out[crossing] = np.matmul(own, weight[crossing][..., None])[..., 0].transpose(0, 2, 1)
    return out.transpose(1, 0, 2)


def _vertex(points: np.ndarray, values: np.ndarray, best: np.ndarray) -> np.ndarray:
    """Vertex of the parabola through the best point of each window and its neighbours, (windows,)."""
    every, middle = np.arange(len(points)), np.clip(best, 1, ZOOM - 2)
    left, centre, right = (values[every, middle + shift] for shift in (-1, 0, 1))
    bend = left - 2.0 * centre + right
    step = np.where(bend > 0, 0.5 * (left - right) / np.where(bend > 0, bend, 1.0), 0.0).clip(-1.0, 1.0)
    return np.clip(points[every, middle] + step * (points[:, 1] - points[:, 0]), EDGES[0], EDGES[-1])
