"""How much noise a fit's residuals carry, once their slow drift is counted."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from tokenaxis.laws.normal import student_two_sided

#: half-width in ln(tokens) over which a crossing is read from noisy rows once the run gets there
READING = 0.12
#: least factor on its standard error: drift between the data of two stretches does not show in either
READING_INFLATION = 1.5
#: rows up to which drift cannot be seen, and the inflation that is assumed there: the typical one of real curves
BLIND_ROWS, BLIND_INFLATION = 50, 2.0


def block_length(rows: int) -> int:
    """Rows per block of `variance_inflation`: max(1, min(max(4, n^0.6), n / 6))."""
    return max(1, min(max(4, int(rows**0.6)), rows // 6))


def variance_inflation(residual: np.ndarray) -> float:
    """Factor by which slow drift inflates the variance of a mean of residuals, at least 1.

    Long batch means: m * var(block means) / var(residuals), blocks of m = n^0.6 rows (method.md section 2). Corrections
    from a first-order autocorrelation miss the slow drift of loss curves. With fewer than three blocks it is 1, and an
    estimate within two of its standard errors of 1 is taken as 1: cut off at 1, white noise would come out as 1.1.
    """
    rows = len(residual)
    length = block_length(rows)
    blocks = rows // length
    if blocks < 3:
        return 1.0
    spread = float(residual.var(ddof=1))
    if spread <= 0.0:
        return 1.0
    means = residual[: blocks * length].reshape(blocks, length).mean(axis=1)
    found = length * float(means.var(ddof=1)) / spread
    return found if found > 1.0 + 2.0 * math.sqrt(2.0 / (blocks - 1)) else 1.0


def long_run_variance(residual: np.ndarray) -> tuple[float, float]:
    """(variance per row of the residuals' sum, its inflation): n / (n - 3) * var * VIF for three fitted parameters."""
    rows = len(residual)
    inflation = variance_inflation(residual)
    return rows / max(rows - 3, 1) * float(residual.var()) * inflation, inflation


@dataclass(frozen=True)
class Doubt:
    """How much a standard error from few rows understates; of one fit, or arrays over many.

    Attributes:
        factor: on the standard error, for drift that so few rows cannot show.
        degrees: degrees of freedom of the noise level, three parameters taken off.
    """

    factor: np.ndarray | float
    degrees: np.ndarray | float

    def half_width(self, level: float, standard_error: float) -> np.ndarray | float:
        """Half of the interval that noise alone gives at a nominal level."""
        return student_two_sided(level, self.degrees) * self.factor * standard_error


def doubt_of(rows: np.ndarray | float, inflation: float) -> Doubt:
    """The doubt about fits of so many rows, whose noise inflation was found to be `inflation`.

    Up to 50 rows the inflation is at least 2; what is assumed beyond what was found fades with the square of the rows.
    """
    assumed = 1.0 + (BLIND_INFLATION - 1.0) * np.minimum(1.0, BLIND_ROWS / np.maximum(rows, 1)) ** 2
    worse = np.maximum(inflation, assumed)
    return Doubt(np.sqrt(worse / inflation), np.maximum(rows / worse - 3.0, 1.0))


def reading_noise(residual_sd: np.ndarray | float, inflation: float, density: float, tokens: np.ndarray) -> np.ndarray:
    """Standard error of the loss that will be read off the log around `tokens` (shape kept).

    A prediction is compared with a crossing that is itself read from noisy rows, about 24% of the tokens there.

    Args:
        residual_sd: of a row. inflation: of the variance of their mean (see `variance_inflation`).
        density: rows per token. tokens: where.
    """
    rows = np.maximum(2.0 * READING * density * tokens, 1.0)
    return np.asarray(max(READING_INFLATION, math.sqrt(inflation)) * residual_sd / np.sqrt(rows))


def rows_per_token(tokens: np.ndarray) -> float:
    """How densely the newest half of (rows,) tokens is logged."""
    middle = len(tokens) // 2
    return (len(tokens) - 1 - middle) / max(float(tokens[-1] - tokens[middle]), 1.0)


def reading_error(residual_sd: float, inflation: float, density: float, tokens: float, slope: float) -> float:
    """`reading_noise` in ln(tokens), where the loss falls by `slope` nats per unit of ln(tokens)."""
    return float(reading_noise(residual_sd, inflation, density, np.array(tokens))) / max(abs(slope), 1e-12)
