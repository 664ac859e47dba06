"""Long series made short enough to draw: what a picture needs of them, and nothing between two pixels lost."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np

#: rows of the smoother's window at least, where the log has as many
FEWEST_ROWS = 6
#: losses of neighbouring rows go together (slow drifts): real logs' standard errors are this many times those of
#: independent rows (measured on public logs)
NOISE_INFLATION = 2.2
#: points of a smoothed curve at most: finer than a figure can show
MOST_SMOOTH = 240


@dataclass(frozen=True)
class Track:
    """A thinned series: float64 arrays of equal length, ascending in step; `sd` is the standard error of `value`."""

    tokens: np.ndarray
    step: np.ndarray
    value: np.ndarray
    sd: np.ndarray | None = None


def extremes(tokens: np.ndarray, value: np.ndarray, pixels: int) -> np.ndarray:
    """Ascending row numbers (at most 4 x pixels + 2) that draw the same picture as all rows do.

    The lowest and the highest value of each of `pixels` columns are kept, with columns even in ln(tokens) and again
    with columns even in tokens, so that neither a logarithmic nor a linear axis hides a spike; also the ends.

    Args:
        tokens: float64 (rows,), non-decreasing. value: float64 (rows,), finite.
    """
    import numpy as np

    rows = len(tokens)
    if rows <= 4 * pixels:
        return np.arange(rows)
    least = max(float(tokens[-1]) * 1e-6, 1e-300)  # a first row at 0 tokens has no logarithm
    low, high = np.log(max(float(tokens[0]), least)), np.log(max(float(tokens[-1]), least))
    chosen = [np.array([0, rows - 1])]
    for edges in (np.exp(np.linspace(low, high, pixels + 1)), np.linspace(tokens[0], tokens[-1], pixels + 1)):
        starts = np.unique(np.concatenate(([0], np.searchsorted(tokens, edges[1:-1], side="left"))))
        chosen += _ends_of_columns(value, starts[starts < rows])
    return np.unique(np.concatenate(chosen))


def _ends_of_columns(value: np.ndarray, starts: np.ndarray) -> list[np.ndarray]:
    """Rows of the lowest (the first of equals) and of the highest value (the last of equals) of each column."""
    import numpy as np

    sizes = np.diff(starts, append=len(value))
    lowest = np.flatnonzero(value == np.repeat(np.minimum.reduceat(value, starts), sizes))
    highest = np.flatnonzero(value == np.repeat(np.maximum.reduceat(value, starts), sizes))
    ends = np.append(starts[1:], len(value))
    return [lowest[np.searchsorted(lowest, starts)], highest[np.searchsorted(highest, ends) - 1]]


def smoothed(
    tokens: np.ndarray, step: np.ndarray, value: np.ndarray, half_width: float, points: int = MOST_SMOOTH
) -> Track:
    """A straight line in ln(tokens) fitted to the rows within ±`half_width`, at `points` even places.

    Local linear regression with a flat window (Cleveland 1979 without robustness): no start-up bias and no lag, unlike
    an exponential average. For the eye and for losses at equal tokens; crossings come from the fits stage.

    Args:
        tokens: float64 (rows,), non-decreasing. step: float64 (rows,). value: float64 (rows,), finite.
    """
    import numpy as np

    positive = tokens > 0
    tokens, step, value = tokens[positive], step[positive], value[positive]
    if len(tokens) < 2 or tokens[-1] <= tokens[0]:
        return Track(tokens, step, value)
    axis = np.log(tokens)
    centres = np.linspace(axis[0], axis[-1], points) if len(axis) > points else axis
    first = np.searchsorted(axis, centres - half_width, side="left")
    last = np.searchsorted(axis, centres + half_width, side="right")
    nearest = np.searchsorted(axis, centres)  # where rows are far apart the window widens to FEWEST_ROWS of them
    first = np.maximum(0, np.minimum(first, nearest - FEWEST_ROWS // 2))
    last = np.minimum(len(axis), np.maximum(last, first + FEWEST_ROWS))
    origin = axis.mean()  # sums of squares about a far origin would cancel
    offset = axis - origin

    total = np.zeros(len(axis) + 1)

    def window_sum(terms: np.ndarray) -> np.ndarray:
        np.cumsum(terms, out=total[1:])
        return total[last] - total[first]

    rows = (last - first).astype(np.float64)
    mean_axis, mean_value = window_sum(offset) / rows, window_sum(value) / rows
    spread = window_sum(offset**2) / rows - mean_axis**2
    covariance = window_sum(offset * value) / rows - mean_axis * mean_value
    wide = spread > 1e-8  # narrower than that (all rows at one place), the mean is all there is
    slope = np.where(wide, covariance / np.where(wide, spread, 1.0), 0.0)
    shown = mean_value + slope * (centres - origin - mean_axis)
    squares = window_sum(value**2) / rows - mean_value**2 - slope * covariance
    noise = np.maximum(squares, 0.0) * rows / np.maximum(rows - 2, 1)
    leverage = 1 / rows + np.where(
        wide, (centres - origin - mean_axis) ** 2 / (rows * np.where(wide, spread, 1.0)), 0.0
    )
    sd = NOISE_INFLATION * np.sqrt(noise * leverage)
    return Track(np.exp(centres), np.interp(centres, axis, step), shown, sd)


def changes(tokens: np.ndarray, step: np.ndarray, value: np.ndarray) -> Track:
    """The rows at which a piecewise constant value changes, and the last row; at most 400 of them."""
    import numpy as np

    if not len(value):
        return Track(tokens, step, value)
    rows = np.unique(np.concatenate(([0], np.flatnonzero(np.diff(value)) + 1, [len(value) - 1])))
    if len(rows) > 400:
        rows = rows[extremes(tokens[rows], value[rows], 100)]
    return Track(tokens[rows], step[rows], value[rows])
