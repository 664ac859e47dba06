"""Is there a falling curve to fit at all? Tests of a loss series that need no law, and tests of a fitted one."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from tokenaxis.crossing import NOISE_INFLATION, noise_sd, without_single_rows
from tokenaxis.errors import Notice
from tokenaxis.laws.projection import EXPONENT_BOUNDS, PowerLaw

#: cells of equal width in ln(tokens) in which the shape of the fitted rows is looked at
CELLS = 24
#: standard errors that a rise or fall must exceed to count
SIGNIFICANT = 4.0
#: a tail that has risen by this share of the fall before it has diverged
RISE = 0.25
#: a tail that falls less than this share of what the law says is a plateau
STALL = 0.3
#: slow residuals beyond this share of the fitted fall are a misfit
MISFIT = 0.1


@dataclass(frozen=True)
class Shape:
    """Cell means of the rows to be fitted.

    Attributes:
        loss: (cells,) means. rows: (cells,) rows in each. noise: robust sd of row-to-row noise, drift included.
    """

    loss: np.ndarray
    rows: np.ndarray
    noise: float

    def error(self, i: int, j: int) -> float:
        """Standard error of loss[i] - loss[j]."""
        return self.noise * math.sqrt(1.0 / self.rows[i] + 1.0 / self.rows[j])


def shape_of(ln_x: np.ndarray, loss: np.ndarray) -> Shape:
    """Cell means over equal widths of ln x, single spikes and dips removed; `ln_x` (rows,) ascending."""
    edges = np.linspace(ln_x[0], ln_x[-1], CELLS + 1)[:-1]
    first = np.unique(np.searchsorted(ln_x, edges))
    rows = np.diff(np.append(first, len(loss))).astype(float)
    return Shape(np.add.reduceat(without_single_rows(loss), first) / rows, rows, NOISE_INFLATION * noise_sd(loss))


def trouble(shape: Shape) -> Notice | None:
    """Why no law should be fitted: the loss rises, has diverged, or does not fall. None if it falls."""
    lowest = int(shape.loss.argmin())
    last = len(shape.loss) - 1
    fall = float(shape.loss[: lowest + 1].max() - shape.loss[lowest])
    rise = float(shape.loss[last] - shape.loss[lowest])
    if rise > SIGNIFICANT * shape.error(last, lowest) and rise > RISE * fall and rise > 1e-9:
        return Notice("diverged", f"the loss rises: at the end it is {rise:.4f} nats above its minimum")
    third = max(len(shape.loss) // 3, 1)
    early = float(np.average(shape.loss[:third], weights=shape.rows[:third]))
    late = float(np.average(shape.loss[-third:], weights=shape.rows[-third:]))
    error = shape.noise * math.sqrt(1.0 / shape.rows[:third].sum() + 1.0 / shape.rows[-third:].sum())
    if early - late <= SIGNIFICANT * error or early - late <= 1e-9:
        rows = int(shape.rows.sum())
        message = f"over the {rows:,} rows past the fit start the loss falls by no more than their noise explains"
        return Notice("no_decrease", message)
    return None


def at_bounds(law: PowerLaw) -> list[str]:
    """Names of the parameters that ended at a bound of the fit."""
    names = []
    if law.irreducible_loss <= 1e-9:
        names.append("irreducible_loss")
    if not EXPONENT_BOUNDS[0] * 1.001 < law.exponent < EXPONENT_BOUNDS[1] * 0.999:
        names.append("exponent")
    return names


def bound_notices(law: PowerLaw) -> list[Notice]:
    """A warning per parameter at its bound."""
    value = {
        "irreducible_loss": law.irreducible_loss,
        "exponent": law.exponent,
    }
    return [
        Notice("at_bound", f"{name} is pinned at its bound ({value[name]:.4g}): these rows do not identify the law")
        for name in at_bounds(law)
    ]


def plateau(ln_x: np.ndarray, loss: np.ndarray, weight: np.ndarray, law: PowerLaw, noise: float) -> Notice | None:
    """Does the last quarter of the fitted range (in ln x) stall against the law?

    Args:
        ln_x, loss, weight: (bins,). law: the fitted law. noise: sd of a row, drift included.
    """
    first = int(np.searchsorted(ln_x, ln_x[-1] - 0.25 * (ln_x[-1] - ln_x[0])))
    position, values, rows = ln_x[first:], loss[first:], weight[first:]
    if len(position) < 4:
        return None
    total = rows.sum()
    moved = position - rows @ position / total
    spread = float(rows @ (moved * moved))
    if spread <= 0.0:
        return None
    slope = float((rows * moved) @ values) / spread
    expected = -law.exponent * law.coefficient * math.exp(-law.exponent * float(rows @ position / total))
    if slope > STALL * expected and slope - expected > SIGNIFICANT * noise / math.sqrt(spread):
        share = max(slope / expected, 0.0) if expected < 0 else 0.0
        message = (
            f"plateau: the loss has stalled; the newest quarter falls at {share:.0%} of the pace of the fitted law"
        )
        return Notice("plateau", message)
    return None


def misfit(residual: np.ndarray, weight: np.ndarray, fall: float) -> Notice | None:
    """Are the residuals of (bins,) slow and large against the fitted fall? Then it is not a power law."""
    blocks = min(12, len(residual) // 3)
    if blocks < 4 or fall <= 0.0:
        return None
    first = np.linspace(0, len(residual), blocks + 1).astype(int)[:-1]
    total = np.add.reduceat(weight, first)
    means = np.add.reduceat(weight * residual, first) / total
    noise = float(np.sqrt(np.median(np.add.reduceat(weight * residual**2, first) / total)))
    slow = float(np.sqrt(np.average(means**2, weights=total)))
    if slow > MISFIT * fall and slow > 0.7 * noise:
        return Notice(
            "misfit", f"misfit: slow residuals of {slow:.4f} nats against a fall of {fall:.4f}: not a power law"
        )
    return None
