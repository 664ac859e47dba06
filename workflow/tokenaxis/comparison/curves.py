"""Curves small enough to draw: one run's table in, a few hundred points out, nothing between two pixels lost."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from tokenaxis.columns import LOSSES
from tokenaxis.comparison.model import RunResult

if TYPE_CHECKING:
    import numpy as np

#: rows of the smoother's window at least, where the log has as many
FEWEST_ROWS = 6
#: losses of neighbouring rows go together (slow drifts): real logs' standard errors are this many times those of
#: independent rows (measured on public logs)
NOISE_INFLATION = 2.2
#: points of a smoothed curve: at most (finer than a figure can show) and at least, and those of all runs together
MOST_SMOOTH, FEWEST_SMOOTH, ALL_SMOOTH = 240, 60, 30_000
#: points of all raw curves of a page together: bounds the page's size, whatever the number of runs
RAW_POINTS = 50_000
#: windows that are kept per run and target: at most, at least, and for one target of all runs together
MOST_WINDOWS, FEWEST_WINDOWS, ALL_WINDOWS = 150, 30, 6_000
#: knots of a clock, as many: between them time is a straight line of tokens
MOST_KNOTS, FEWEST_KNOTS, ALL_KNOTS = 60, 12, 12_000


@dataclass(frozen=True)
class Track:
    """A thinned series: float64 arrays of equal length, ascending in step; `sd` is the standard error of `value`."""

    tokens: np.ndarray
    step: np.ndarray
    value: np.ndarray
    sd: np.ndarray | None = None


@dataclass(frozen=True)
class Curve:
    """What is drawn of one run.

    Attributes:
        run: run id.
        loss_name: the loss that targets refer to ("train_loss" or "val_loss"), or None when the run has no loss.
        raw: that loss as logged, in nats per token, thinned to the extremes of each pixel column.
        smooth: the same, smoothed (`smoothed`).
        lr: learning rate, thinned; None where it is not logged.
        batch: tokens per step where it changes.
        attempt_starts: tokens at which a later attempt begins.
        hours: wall time in hours since the start, thinned, attempts joined; None where it is not logged.
        last: column -> last finite value, for train_loss and val_loss.
        rows: rows of the table.
    """

    run: str
    loss_name: str | None
    raw: Track
    smooth: Track
    lr: Track | None = None
    batch: Track | None = None
    attempt_starts: tuple[float, ...] = ()
    hours: Track | None = None
    last: dict[str, float] = field(default_factory=dict)
    rows: int = 0


@dataclass(frozen=True)
class Windows:
    """Stability of one run and target, windows ascending: float64 arrays of tokens, NaN where there is no answer."""

    run: str
    target: float
    window_tokens: np.ndarray
    predicted: np.ndarray
    low: np.ndarray
    high: np.ndarray

    def thinned(self, stride: int) -> Windows:
        """Every `stride`-th window, counted from the newest."""
        rows = slice(None, None, -stride)
        fields = (self.window_tokens, self.predicted, self.low, self.high)
        return Windows(self.run, self.target, *(values[rows][::-1] for values in fields))


def read_curve(run: RunResult, runs: int, half_width: float) -> Curve:
    """Load a run's token axis and keep what is drawn.

    Args:
        runs: number of runs that share RAW_POINTS.
        half_width: of the smoother's window, in ln(tokens).
    """
    import numpy as np

    columns = run.columns()
    step, tokens = columns["step"].astype(np.float64), columns["tokens"]
    pixels = max(20, min(600, RAW_POINTS // (4 * max(runs, 1))))
    points = _share(runs, FEWEST_SMOOTH, MOST_SMOOTH, ALL_SMOOTH)
    knots = _share(runs, FEWEST_KNOTS, MOST_KNOTS, ALL_KNOTS)
    name = _loss_name(run, columns)
    value = columns[name] if name else np.full(len(step), np.nan)
    kept = np.isfinite(value)
    raw = _track(tokens[kept], step[kept], value[kept], pixels)
    return Curve(
        run=run.id,
        loss_name=name,
        raw=raw,
        smooth=smoothed(tokens[kept], step[kept], value[kept], half_width, points),
        lr=_optional(tokens, step, columns.get("lr"), max(10, pixels // 8)),
        batch=_changes(tokens, step, columns["tokens_per_step"]),
        attempt_starts=_attempt_starts(tokens, columns["attempt"]),
        hours=_hours(tokens, step, columns.get("elapsed_s"), columns["attempt"], knots),
        last={key: last for key in LOSSES if (last := _last(columns.get(key))) is not None},
        rows=len(step),
    )


def read_windows(run: RunResult, runs: int) -> list[Windows]:
    """The run's stability sweep, a `Windows` per target, evenly thinned; `runs` as in `read_curve`."""
    import numpy as np

    table = run.stability_table()
    if not table or not len(table.get("target", ())):
        return []
    most = _share(runs, FEWEST_WINDOWS, MOST_WINDOWS, ALL_WINDOWS)
    fields = ("window_tokens", "predicted_tokens", "low", "high")
    found = []
    for target in np.unique(table["target"]):
        rows = table["target"] == target
        order = np.argsort(table["window_tokens"][rows], kind="stable")
        order = order[:: -max(1, -(-len(order) // most))][::-1]  # counted from the newest
        found.append(Windows(run.id, float(target), *(table[name][rows][order] for name in fields)))
    return found


def _share(runs: int, least: int, most: int, everything: int) -> int:
    """One of `runs` runs' share of `everything`, between `least` and `most`."""
    return max(least, min(most, everything // max(runs, 1)))


def hours_to(curve: Curve, tokens: float | None) -> float | None:
    """Wall time in hours until the run has consumed `tokens`; past the log at the mean pace of its second half."""
    import numpy as np

    if curve.hours is None or tokens is None or len(curve.hours.tokens) < 2:
        return None
    known, hours = curve.hours.tokens, curve.hours.value
    if tokens <= known[-1]:
        return float(np.interp(tokens, known, hours))
    half = len(known) // 2
    if known[-1] <= known[half]:
        return None
    return float(hours[-1] + (tokens - known[-1]) * (hours[-1] - hours[half]) / (known[-1] - known[half]))


def _loss_name(run: RunResult, columns: dict[str, np.ndarray]) -> str | None:
    import numpy as np

    fitted = run.fits.get("loss")
    if fitted in columns:
        return fitted
    logged = (name for name in LOSSES if name in columns and np.isfinite(columns[name]).any())
    return next(logged, None)


def _last(values: np.ndarray | None) -> float | None:
    import numpy as np

    if values is None or not (kept := np.isfinite(values)).any():
        return None
    return float(values[kept][-1])


def _track(tokens: np.ndarray, step: np.ndarray, value: np.ndarray, pixels: int) -> Track:
    rows = extremes(tokens, value, pixels)
    return Track(tokens[rows], step[rows], value[rows])


def _optional(tokens: np.ndarray, step: np.ndarray, value: np.ndarray | None, pixels: int) -> Track | None:
    import numpy as np

    if value is None or not (kept := np.isfinite(value)).any():
        return None
    return _track(tokens[kept], step[kept], value[kept], pixels)


def extremes(tokens: np.ndarray, value: np.ndarray, pixels: int) -> np.ndarray:
    """Ascending row numbers (at most 4 x pixels + 2) that draw the same picture as all rows do.

    The lowest and the highest value of each of `pixels` columns are kept, with columns even in ln(tokens) and again
    with columns even in tokens, so that neither a logarithmic nor a linear axis hides a spike; also the ends.
    """
    import numpy as np

    rows = len(tokens)
    if rows <= 4 * pixels:
        return np.arange(rows)
    positive = np.maximum(tokens, max(tokens[-1] * 1e-6, 1e-300))  # a first row at 0 tokens has no logarithm
    chosen = [np.array([0, rows - 1])]
    for axis in (np.log(positive), tokens):
        edges = np.linspace(axis[0], axis[-1], pixels + 1)[1:-1]
        column = np.searchsorted(edges, axis, side="right")
        order = np.lexsort((value, column))  # within a column ascending in value
        ends = np.flatnonzero(np.diff(column[order])) if rows else np.array([], int)
        chosen += [order[np.concatenate(([0], ends + 1))], order[np.concatenate((ends, [rows - 1]))]]
    return np.unique(np.concatenate(chosen))


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

    def window_sum(terms: np.ndarray) -> np.ndarray:
        total = np.concatenate(([0.0], np.cumsum(terms)))
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


def _changes(tokens: np.ndarray, step: np.ndarray, value: np.ndarray) -> Track:
    """The rows at which a piecewise constant value changes, and the last row; at most 400 of them."""
    import numpy as np

    if not len(value):
        return Track(tokens, step, value)
    rows = np.unique(np.concatenate(([0], np.flatnonzero(np.diff(value)) + 1, [len(value) - 1])))
    if len(rows) > 400:
        rows = rows[extremes(tokens[rows], value[rows], 100)]
    return Track(tokens[rows], step[rows], value[rows])


def _attempt_starts(tokens: np.ndarray, attempt: np.ndarray) -> tuple[float, ...]:
    import numpy as np

    return tuple(float(tokens[row]) for row in np.flatnonzero(np.diff(attempt)) + 1)


def _hours(
    tokens: np.ndarray, step: np.ndarray, elapsed: np.ndarray | None, attempt: np.ndarray, knots: int
) -> Track | None:
    """Wall time from the run's start in hours; each attempt's clock goes on where the previous attempt's kept rows end.

    Time that superseded rows took is not in it: it is the time of the steps that count.
    """
    import numpy as np

    if elapsed is None or not (kept := np.isfinite(elapsed)).any():
        return None
    seconds, tokens, step, attempt = elapsed[kept].copy(), tokens[kept], step[kept], attempt[kept]
    for row in np.flatnonzero(np.diff(attempt)) + 1:
        if seconds[row] < seconds[row - 1]:  # the clock started anew; a clock that goes on needs nothing
            seconds[row:] += seconds[row - 1]
    rows = np.unique(np.linspace(0, len(seconds) - 1, min(len(seconds), knots)).astype(int))
    return Track(tokens[rows], step[rows], seconds[rows] / 3600.0)
