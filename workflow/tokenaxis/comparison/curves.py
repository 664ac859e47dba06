"""Curves small enough to draw: one run's table in, a few hundred points out, nothing between two pixels lost."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from tokenaxis.columns import LOSSES
from tokenaxis.comparison.model import RunResult
from tokenaxis.comparison.thinning import MOST_SMOOTH, Track, changes, extremes, smoothed

if TYPE_CHECKING:
    import numpy as np

#: points of a smoothed curve at least, and those of all runs together
FEWEST_SMOOTH, ALL_SMOOTH = 60, 30_000
#: points of all raw curves of a page together: bounds the page's size, whatever the number of runs
RAW_POINTS = 50_000
#: windows that are kept per run and target: at most, at least, and for one target of all runs together
MOST_WINDOWS, FEWEST_WINDOWS, ALL_WINDOWS = 150, 30, 6_000
#: knots of a clock, as many: between them time is a straight line of tokens
MOST_KNOTS, FEWEST_KNOTS, ALL_KNOTS = 60, 12, 12_000


@dataclass(frozen=True)
class Shares:
    """One run's share of what all runs of a comparison draw together.

    Attributes:
        pixels: columns of a raw curve. points: of a smoothed one. knots: of a clock. windows: per target.
    """

    pixels: int
    points: int
    knots: int
    windows: int

    @classmethod
    def among(cls, runs: int) -> Shares:
        """The share of one of `runs` runs."""
        return cls(
            pixels=max(20, min(600, RAW_POINTS // (4 * max(runs, 1)))),
            points=_share(runs, FEWEST_SMOOTH, MOST_SMOOTH, ALL_SMOOTH),
            knots=_share(runs, FEWEST_KNOTS, MOST_KNOTS, ALL_KNOTS),
            windows=_share(runs, FEWEST_WINDOWS, MOST_WINDOWS, ALL_WINDOWS),
        )


@dataclass(frozen=True)
class Curve:
    """What is drawn of one run.

    Attributes:
        run: run id.
        loss_name: the loss that targets refer to ("train_loss" or "val_loss"), or None when the run has no loss.
        raw: that loss as logged, in nats per token, thinned to the extremes of each pixel column; None where it is
            not at hand.
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
    raw: Track | None
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


def read_curve(run: RunResult, shares: Shares, half_width: float) -> Curve:
    """Load a run's token axis and keep what is drawn.

    Args:
        shares: how many points are kept.
        half_width: of the smoother's window, in ln(tokens).
    """
    import numpy as np

    columns = run.columns()
    step, tokens = columns["step"].astype(np.float64), columns["tokens"]
    name = _loss_name(run, columns)
    series = _finite(columns[name] if name else np.full(len(step), np.nan), tokens, step)
    return Curve(
        run=run.id,
        loss_name=name,
        raw=_track(*series, shares.pixels),
        smooth=smoothed(*series, half_width, shares.points),
        lr=_optional(tokens, step, columns.get("lr"), max(10, shares.pixels // 8)),
        batch=changes(tokens, step, columns["tokens_per_step"]),
        attempt_starts=_attempt_starts(tokens, columns["attempt"]),
        hours=_hours(tokens, step, columns.get("elapsed_s"), columns["attempt"], shares.knots),
        last={key: last for key in LOSSES if (last := _last(columns.get(key))) is not None},
        rows=len(step),
    )


def read_windows(run: RunResult, shares: Shares) -> list[Windows]:
    """The run's stability sweep, a `Windows` per target, evenly thinned."""
    import numpy as np

    table = run.stability_table()
    if not table or not len(table.get("target", ())):
        return []
    most = shares.windows
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
    series = None if value is None else _finite(value, tokens, step)
    return None if series is None or not len(series[0]) else _track(*series, pixels)


def _finite(value: np.ndarray, tokens: np.ndarray, step: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """(tokens, step, value) of the rows that have a value."""
    import numpy as np

    kept = np.isfinite(value)
    return (tokens, step, value) if kept.all() else (tokens[kept], step[kept], value[kept])


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
