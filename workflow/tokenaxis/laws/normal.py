"""The standard normal distribution, without the cost of importing scipy or statistics."""

from __future__ import annotations

import functools
import math

import numpy as np


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


@functools.cache  # a few levels, asked for by every interval
def two_sided(level: float) -> float:
    """z such that P(|Z| <= z) = level: 1.645 for 0.9."""
    return quantile(0.5 * (1.0 + level))


def student_two_sided(level: float, degrees: np.ndarray | float) -> np.ndarray | float:
    """t such that P(|T| <= t) = level for Student's t with that many degrees of freedom (at least 1), shape kept.

    Cornish-Fisher expansion about the normal quantile (Abramowitz and Stegun 1964, 26.7.5): within 2% from 3 degrees on
    at 90%.
    """
    z, degrees = two_sided(level), np.maximum(degrees, 1.0)
    second = (5.0 * z**5 + 16.0 * z**3 + 3.0 * z) / 96.0
    out: np.ndarray | float = z + (z**3 + z) / (4.0 * degrees) + second / degrees**2
    return out
