"""Where a loss curve crosses a target inside the log: the reference's first passage, and an unbiased local crossing."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

#: half-widths in ln(tokens) of the local quadratic, narrowest first: the widest that agrees with the narrower ones wins
HALF_WIDTHS = (0.03, 0.06, 0.12, 0.25)
#: widest half-width where the learning rate changes (method.md section 1)
HALF_WIDTH_DECAY = 0.10
#: relative half-width of the neighbourhood smoother
NEIGHBOURHOOD = 0.05
#: fewest rows of a local fit; below it the two rows around the crossing are interpolated
FEWEST_ROWS = 7
#: factor on a local standard error for noise that is correlated from row to row (method.md section 1)
NOISE_INFLATION = 2.2
#: Huber's constant: residuals beyond it count linearly (95% efficiency on Gaussian noise)
HUBER = 1.345
#: residuals of a wider local fit may exceed those of the narrower ones by this factor
LARGER = 1.5
#: which power's sum stands where in the normal equations of a quadratic
HANKEL = np.add.outer(np.arange(3), np.arange(3))
#: a row is a dip when it lies this many robust standard deviations below its neighbourhood
DIP = 6.0


@dataclass(frozen=True)
class Crossing:
    """Where a target is crossed.

    Attributes:
        tokens: tokens consumed at the crossing.
        standard_error: of ln(tokens), noise inflation included; 0 where two rows were interpolated.
        low, high: outer bounds from the logging interval where two rows were interpolated, else None.
        crossed_back: the smoothed curve lies above the target again later.
        below_at_start: the curve is below the target from the first row on; tokens is then the first row's.
    """

    tokens: float
    standard_error: float = 0.0
    low: float | None = None
    high: float | None = None
    crossed_back: bool = False
    below_at_start: bool = False

    def interval(self, z_score: float) -> tuple[float, float]:
        """(low, high) in tokens for a two-sided normal quantile `z_score`."""
        spread = math.exp(z_score * min(self.standard_error, 50.0))
        low = self.tokens / spread if self.low is None else self.low
        high = self.tokens * spread if self.high is None else self.high
        return low, high


def first_passage(
    step: np.ndarray, tokens: np.ndarray, smoothed: np.ndarray, target: float
) -> tuple[float, float] | None:
    """(step, tokens) where `smoothed` first is at or below `target`, linear between two rows; None if it never is.

    The reference's rule (`interpolated_crossing`): warm-up included, and row 0 as it stands.
    """
    below = np.flatnonzero(smoothed <= target)
    if not len(below):
        return None
    i = int(below[0])
    if i == 0:
        return float(step[0]), float(tokens[0])
    before, after = smoothed[i - 1], smoothed[i]
    share = 1.0 if before == after else (before - target) / (before - after)
    return (
        float(step[i - 1] + share * (step[i] - step[i - 1])),
        float(tokens[i - 1] + share * (tokens[i] - tokens[i - 1])),
    )


def without_single_rows(loss: np.ndarray) -> np.ndarray:
    """Running median of three, (rows,): a dip or spike of one row disappears, a falling curve stays as it is.

    The last row stands unless it jumps by more than six typical steps of the rows before it: a curve may reach a target
    in its very last row, but not by a jump.
    """
    if len(loss) < 3:
        return loss.copy()
    left, middle, right = loss[:-2], loss[1:-1], loss[2:]
    out = loss.copy()
    out[1:-1] = np.maximum(np.minimum(left, middle), np.minimum(np.maximum(left, middle), right))
    typical = median(np.abs(np.diff(loss[-22:-1]))) if len(loss) > 3 else math.inf
    if abs(loss[-1] - loss[-2]) > DIP * typical + 1e-12 * abs(loss[-2]):
        out[-1] = out[-2]
    return out


def neighbourhood_curve(tokens: np.ndarray, loss: np.ndarray) -> np.ndarray:
    """Local linear regression of `loss` (single rows removed) over +-5% in tokens, (rows,); no lag, also at the ends.

    Prefix sums make it O(rows). A row with fewer than four neighbours keeps its (median-of-three) value.
    """
    clean = without_single_rows(loss)
    scale = float(tokens[-1]) or 1.0
    position = tokens / scale
    level = float(clean[-1])
    values = clean - level
    sums = np.zeros((4, len(loss) + 1))
    np.cumsum(position, out=sums[0, 1:])
    np.cumsum(position * position, out=sums[1, 1:])
    np.cumsum(values, out=sums[2, 1:])
    np.cumsum(position * values, out=sums[3, 1:])
    first = np.searchsorted(tokens, tokens * (1 - NEIGHBOURHOOD), "left")
    last = np.searchsorted(tokens, tokens * (1 + NEIGHBOURHOOD), "right")
    count = (last - first).astype(float)
    mean_x, mean_xx, mean_y, mean_xy = ((row.take(last) - row.take(first)) / count for row in sums)
    variance = mean_xx - mean_x * mean_x
    usable = (count >= 5) & (variance > 1e-12 * mean_xx)
    slope = np.where(usable, (mean_xy - mean_x * mean_y) / np.where(usable, variance, 1.0), 0.0)
    return np.where(usable, mean_y + slope * (position - mean_x) + level, clean)


def noise_sd(loss: np.ndarray) -> float:
    """Robust standard deviation of row-to-row noise from second differences (blind to any straight trend)."""
    if len(loss) < 5:
        return 0.0
    second = loss[2:] - 2.0 * loss[1:-1] + loss[:-2]
    return 1.4826 * median(np.abs(second, out=second)) / math.sqrt(6.0)


def median(values: np.ndarray) -> float:
    """np.median of (values,) without NaN, in half of its time."""
    middle = len(values) // 2
    parted = np.partition(values, middle)
    above = float(parted[middle])
    return above if len(values) % 2 else 0.5 * (float(parted[:middle].max()) + above)


def dips_below(loss: np.ndarray, target: float, noise: float) -> np.ndarray:
    """Indices of single rows at or below `target` that lie far below both neighbours, which are above it, (dips,)."""
    low = np.flatnonzero(loss <= target)
    if not len(low):
        return low
    clean = without_single_rows(loss)[low]
    depth = clean - loss[low]
    return low[(clean > target) & (depth > DIP * noise) & (depth > 1e-9)]


def local_crossing(
    tokens: np.ndarray,
    loss: np.ndarray,
    curve: np.ndarray,
    target: float,
    widest: float = HALF_WIDTHS[-1],
    noise: float | None = None,
) -> Crossing | None:
    """First sustained crossing of `target`; None if the curve never gets there.

    `curve` (see `neighbourhood_curve`) finds the place; a robust quadratic of the raw losses in ln(tokens) around it
    gives the answer and its standard error. Its width is chosen among HALF_WIDTHS by Lepski's rule: the widest whose
    answer agrees with those of all narrower ones, so that a noiseless curve is read almost at the point and a noisy one
    is averaged.

    Args:
        tokens: (rows,) non-decreasing.
        loss: (rows,) raw losses.
        curve: (rows,) smoothed losses.
        target: loss in nats per token.
        widest: widest half-width in ln(tokens) to use.
        noise: `noise_sd(loss)` if the caller has it.
    """
    below = curve <= target
    index = int(below.argmax())
    if not below[index]:
        return None
    if index == 0:
        return Crossing(tokens=float(tokens[0]), below_at_start=True)
    noise = noise_sd(loss) if noise is None else noise
    centre, last = _settled(tokens, curve, below, index, target)
    margin = NOISE_INFLATION * noise / math.sqrt(5.0)
    later = int(np.searchsorted(tokens, centre * math.exp(widest)))
    crossed_back = bool(later < len(curve) and (curve[later:] > target + margin).any())
    end = float(tokens[-1])
    found = _widest_agreeing(tokens, loss, target, centre, widest, noise)
    if found is None:
        low, high = float(tokens[index - 1]), float(tokens[last])
        return Crossing(min(max(centre, low), high), 0.0, low, high, crossed_back)
    place, error = found
    return Crossing(min(max(place, float(tokens[0])), end), error, None, None, crossed_back)


def _settled(tokens: np.ndarray, curve: np.ndarray, below: np.ndarray, index: int, target: float) -> tuple[float, int]:
    """(middle between the first crossing and the last one near it, row of the last): a noisy curve crosses often."""
    near = int(np.searchsorted(tokens, tokens[index] * (1 + 2 * NEIGHBOURHOOD), "right"))
    again = np.flatnonzero(below[index + 1 : near] & ~below[index : near - 1])
    last = index + 1 + int(again[-1]) if len(again) else index
    places = []
    for i in (index, last):
        drop = curve[i - 1] - curve[i]
        share = (curve[i - 1] - target) / drop if drop > 0 else 1.0
        before, after = float(tokens[i - 1]), float(tokens[i])
        # a power law is much straighter in ln T than in T, which matters where rows are far apart
        places.append(before * (after / before) ** share if before > 0 else before + share * (after - before))
    return float(0.5 * (places[0] + places[1])), last


def _widest_agreeing(
    tokens: np.ndarray, loss: np.ndarray, target: float, centre: float, widest: float, noise: float
) -> tuple[float, float] | None:
    """(tokens, standard error of ln tokens) of the widest local fit that agrees with the narrower ones, or None.

    It agrees when its answer is within the standard errors of theirs and its residuals are no larger than theirs or
    than the noise between neighbouring rows.
    """
    chosen: tuple[float, float] | None = None
    low, high, scatter = -math.inf, math.inf, noise
    for half_width in HALF_WIDTHS:
        half_width = min(half_width, widest)
        answer = _local_quadratic(tokens, loss, target, centre, half_width)
        if answer is not None:
            place, error = math.log(answer[0]), answer[1]
            low, high = max(low, place - error), min(high, place + error)
            if chosen is not None and (low > high or answer[2] > LARGER * scatter):
                break
            scatter = max(scatter, answer[2])
            chosen = answer[:2]
        if half_width == widest:
            break
    return chosen


def _local_quadratic(
    tokens: np.ndarray, loss: np.ndarray, target: float, centre: float, half_width: float
) -> tuple[float, float, float] | None:
    """Robust quadratic of `loss` in ln(tokens / centre) solved for `target`, or None.

    Returns (tokens, standard error of ln tokens, standard deviation of the residuals).
    """
    spread = math.exp(half_width)
    first = int(np.searchsorted(tokens, centre / spread))
    last = int(np.searchsorted(tokens, centre * spread, "right"))
    rows = last - first
    if rows < FEWEST_ROWS:
        return None
    position = np.log(tokens[first:last] / centre) / half_width
    values = loss[first:last]
    powers = np.empty((5, rows))
    powers[0], powers[1] = 1.0, position
    for power in range(2, 5):
        np.multiply(powers[power - 1], position, out=powers[power])
    weight = powers[0]
    for _ in range(4):
        try:
            inverse = np.linalg.inv((powers @ weight)[HANKEL])
        except np.linalg.LinAlgError:
            return None
        found = inverse @ (powers[:3] @ (weight * values))
        size = np.abs(values - found @ powers[:3])
        scale = 1.4826 * median(size)
        limit = HUBER * scale
        if scale < 1e-12 or float(size.max()) <= limit:
            break
        weight = np.minimum(1.0, limit / np.maximum(size, 1e-300))
    level, slope, bend = found.tolist()
    root = 0.0
    for _ in range(8):
        gradient = slope + 2 * bend * root
        if gradient >= 0.0:
            return None
        root -= (level + root * (slope + root * bend) - target) / gradient
        if not abs(root) <= 1.0:
            return None
    gradient = slope + 2 * bend * root
    if gradient >= 0.0:
        return None
    variance = float(np.sum(np.minimum(size, limit if scale > 0 else size) ** 2)) / (rows - 3)
    at = np.array([1.0, root, root * root])
    error = math.sqrt(max(variance * float(at @ inverse @ at), 0.0)) / abs(gradient)
    return centre * math.exp(root * half_width), NOISE_INFLATION * error * half_width, math.sqrt(variance)
