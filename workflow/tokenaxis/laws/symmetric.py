"""Inverses of small symmetric matrices: what a covariance is, without the cost of a decomposition."""

from __future__ import annotations

import numpy as np

#: determinant of a matrix with a unit diagonal from which cofactors are used: they lose rounding over determinant, 1e-7
REGULAR = 1e-9
#: relative size of an eigenvalue that counts as zero
SINGULAR = 1e-13


def inverses(matrices: np.ndarray) -> np.ndarray:
    """Inverses of symmetric, positive (matrices, 3, 3), each scaled to a unit diagonal first; same shape.

    By cofactors (Cramer's rule); where the determinant is all but lost in rounding, the pseudo-inverse.
    """
    scale = 1.0 / np.sqrt(np.maximum(np.einsum("mii->mi", matrices), 1e-300))
    a, b, c = (matrices[:, i, j] * scale[:, i] * scale[:, j] for i, j in ((0, 1), (0, 2), (1, 2)))
    first, second, third = 1.0 - c * c, 1.0 - b * b, 1.0 - a * a
    determinant = third - b * (b - a * c) - c * (c - a * b)
    regular = determinant > REGULAR
    out = np.empty_like(matrices)
    out[:, 0, 0], out[:, 1, 1], out[:, 2, 2] = first, second, third
    out[:, 0, 1] = out[:, 1, 0] = b * c - a
    out[:, 0, 2] = out[:, 2, 0] = a * c - b
    out[:, 1, 2] = out[:, 2, 1] = a * b - c
    out /= np.where(regular, determinant, 1.0)[:, None, None]
    scales = scale[:, :, None] * scale[:, None, :]
    if not regular.all():
        rest = ~regular
        out[rest] = np.linalg.pinv(matrices[rest] * scales[rest], rcond=SINGULAR, hermitian=True)
    out *= scales
    return out
