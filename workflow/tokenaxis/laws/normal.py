"""The standard normal distribution, without the cost of importing scipy or statistics."""

from __future__ import annotations

import math


def cumulative(value: float) -> float:
    """P(Z <= value)."""
    return 0.5 * math.erfc(-value / math.sqrt(2.0))


def quantile(probability: float) -> float:
    """Inverse of `cumulative`, for 0 < probability < 1, by Newton's method from a logistic start."""
    value = math.log(probability / (1.0 - probability)) / 1.702
    for _ in range(50):
        density = math.exp(-0.5 * value * value) / math.sqrt(2.0 * math.pi)
        change = (cumulative(value) - probability) / density
        value -= max(-1.0, min(1.0, change))
        if abs(change) < 1e-15:
            break
    return value


def two_sided(level: float) -> float:
    """z such that P(|Z| <= z) = level: 1.645 for 0.9."""
    return quantile(0.5 * (1.0 + level))
