"""How much noise a fit's residuals carry, once their slow drift is counted."""

from __future__ import annotations

import numpy as np


def block_length(rows: int) -> int:
    """Rows per block of `variance_inflation`: max(1, min(max(4, n^0.6), n / 6))."""
    return max(1, min(max(4, int(rows**0.6)), rows // 6))


def variance_inflation(residual: np.ndarray) -> float:
    """Factor by which slow drift inflates the variance of a mean of residuals, at least 1.

    Long batch means: m * var(block means) / var(residuals), blocks of m = n^0.6 rows (method.md section 2). Corrections
    from a first-order autocorrelation miss the slow drift of loss curves. With fewer than three blocks it is 1.
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
    return max(1.0, length * float(means.var(ddof=1)) / spread)


def long_run_variance(residual: np.ndarray) -> tuple[float, float]:
    """(variance per row of the residuals' sum, its inflation): n / (n - 3) * var * VIF for three fitted parameters."""
    rows = len(residual)
    inflation = variance_inflation(residual)
    return rows / max(rows - 3, 1) * float(residual.var()) * inflation, inflation
