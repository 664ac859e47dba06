"""The critical batch size: how far a larger batch still saves steps without costing many tokens.

McCandlish et al. 2018, "An Empirical Model of Large-Batch Training" (arXiv:1812.06162), section 2.3, equation 2.11: to
one loss, with S steps of B tokens and E = S·B tokens in all, (S/S_min - 1)(E/E_min - 1) = 1, which is
E = E_min + S_min·B. B_crit = E_min/S_min is the batch that costs twice the fewest tokens and twice the fewest steps.
(Zhang et al. 2024, arXiv:2410.21676, name another number so: the batch at which steps exceed perfect scaling by 20%.)
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from statistics import NormalDist
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np

#: batches farther from the measured ones than this factor are not looked at: there the curve is a straight line
REACH = 1000.0
GRID = 400


@dataclass(frozen=True)
class CriticalBatch:
    """The fitted trade-off at one target.

    Attributes:
        batch: B_crit in tokens per step; None where the batches do not identify it (`reason`).
        low, high: its interval at `level`; an end that the data leave open is None.
        tokens_min: E_min, tokens with a batch near zero. steps_min: S_min, steps with a batch beyond all bounds.
        residual_sd: standard deviation of ln(tokens) about the curve, n - 2 degrees of freedom.
        points: number of batch sizes.
        reason: why there is no number, or what qualifies it.
    """

    batch: float | None
    low: float | None
    high: float | None
    level: float
    tokens_min: float | None
    steps_min: float | None
    residual_sd: float | None
    points: int
    reason: str | None = None


def fit(batch: np.ndarray, tokens: np.ndarray, sd: np.ndarray | None, level: float) -> CriticalBatch:
    """Least squares of ln E on ln(S_min·(B_crit + B)), and the profile interval of B_crit.

    For a given B_crit the best ln S_min is a weighted mean, so the fit is a search over ln B_crit alone: the whole
    range is scanned and the best valley refined. The interval holds every B_crit whose sum of squares is within
    F(1, n - 2) residual variances of the least.

    Args:
        batch: float64 (n,), tokens per step, positive. tokens: float64 (n,), tokens to the target, positive.
        sd: float64 (n,), standard deviation of ln(tokens), or None for equal weights. The scatter about the curve sets
            the scale of the interval, or `sd` where that is wider.
        level: nominal coverage of the interval.
    """
    import numpy as np
    from scipy.special import stdtrit

    points = len(np.unique(batch))
    if points < 3:
        return CriticalBatch(None, None, None, level, None, None, None, points, "needs at least three batch sizes")
    weight = np.ones(len(batch)) if sd is None else 1.0 / sd**2
    log_tokens = np.log(tokens)

    def squares(log_batch: np.ndarray) -> np.ndarray:
        excess = log_tokens - np.log(np.exp(log_batch)[:, None] + batch)
        centre = (excess * weight).sum(axis=1, keepdims=True) / weight.sum()
        return ((excess - centre) ** 2 * weight).sum(axis=1)

    edges = np.log(batch.min() / REACH), np.log(batch.max() * REACH)
    grid = np.linspace(*edges, GRID)
    best = int(np.argmin(squares(grid)))
    if best in (0, GRID - 1):
        return _open_ended(best == 0, batch, tokens, level, points)
    log_batch = _golden(squares, grid[best - 1], grid[best + 1])
    least = float(squares(np.array([log_batch]))[0])
    freedom = len(batch) - 2
    # F(1, n) is the square of Student's t with n degrees of freedom
    slack = least / freedom * float(stdtrit(freedom, (1 + level) / 2)) ** 2
    if sd is not None:  # few points can lie on the curve by luck: never surer than their own intervals allow
        slack = max(slack, NormalDist().inv_cdf((1 + level) / 2) ** 2)
    limit = least + slack
    low = _crossing(squares, limit, log_batch, edges[0])
    high = _crossing(squares, limit, log_batch, edges[1])
    critical = float(np.exp(log_batch))
    steps_min = float(np.exp(((log_tokens - np.log(critical + batch)) * weight).sum() / weight.sum()))
    spread = np.log(tokens / (steps_min * (critical + batch)))
    return CriticalBatch(critical, low, high, level, steps_min * critical, steps_min,
                         float(np.sqrt((spread**2).sum() / freedom)), points, _caution(critical, batch))  # fmt: skip


def _golden(function: Callable[[np.ndarray], np.ndarray], low: float, high: float) -> float:
    """The lowest point between two places that enclose one valley, by golden section."""
    import numpy as np

    shrink = (np.sqrt(5) - 1) / 2
    for _ in range(60):  # 0.618**60 of the bracket: below the precision of a float
        inner = np.array([high - shrink * (high - low), low + shrink * (high - low)])
        left, right = function(inner)
        low, high = (low, inner[1]) if left <= right else (inner[0], high)
    return float((low + high) / 2)


def _crossing(squares: Callable[[np.ndarray], np.ndarray], limit: float, inside: float, outside: float) -> float | None:
    """exp of the place where the sum of squares passes `limit` on the way outwards; None when it never does."""
    import numpy as np

    places = np.linspace(inside, outside, GRID)
    beyond = np.flatnonzero(squares(places) > limit)
    if not len(beyond):
        return None
    near, far = places[max(beyond[0] - 1, 0)], places[beyond[0]]
    for _ in range(50):  # bisection
        middle = (near + far) / 2
        near, far = (middle, far) if squares(np.array([middle]))[0] <= limit else (near, middle)
    return float(np.exp((near + far) / 2))


def _open_ended(at_low: bool, batch: np.ndarray, tokens: np.ndarray, level: float, points: int) -> CriticalBatch:
    reason = (
        "every batch is far beyond the critical one: tokens grow in proportion to the batch"
        if at_low
        else "every batch is far below the critical one: tokens do not grow with the batch"
    )
    return CriticalBatch(None, None, None, level, None, None, None, points, reason)


def _caution(critical: float, batch: np.ndarray) -> str | None:
    if batch.max() < critical / 2:
        return "extrapolated: every batch is below half of it"
    if batch.min() > 2 * critical:
        return "extrapolated: every batch is beyond twice of it"
    return None
