"""Throughput and where the time went, from a token axis that holds wall times: arrays in, facts out."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping

    import numpy as np

#: weight of the newest report in the moving average, and reports left out while kernels are compiled and buffers
#: allocated; both as trainmeter 0.0.2 metrics.Ema has them, so that the figures can be compared
EMA_WEIGHT, EMA_WARMUP = 0.1, 3
#: an interval that takes this many times the median step is a pause (evaluation, checkpoint, a stall), not training
PAUSE_FACTOR = 5.0
#: fewest intervals from which a median step says anything
MIN_INTERVALS = 10


@dataclass(frozen=True)
class Pace:
    """How fast a run went.

    Attributes:
        tokens_per_s: over all intervals between rows, pauses included.
        moving_tokens_per_s: exponential moving average at the end (see EMA_WEIGHT), or None for too few rows.
        seconds: wall time from each attempt's start to its last row, summed.
        startup_s: part of it before the attempts' first rows.
        pause_s: part of it beyond the median pace in intervals that are pauses; None for too few rows.
    """

    tokens_per_s: float
    moving_tokens_per_s: float | None
    seconds: float
    startup_s: float
    pause_s: float | None


def measure(columns: Mapping[str, np.ndarray]) -> tuple[Pace | None, str | None]:
    """The pace of a run, or (None, reason).

    Args:
        columns: of a token axis (rows,): `tokens` (consumed before the step), `attempt`, `elapsed_s` (wall time since
            the start of the attempt, NaN where a row has none).
    """
    import numpy as np

    if "elapsed_s" not in columns:
        return None, "the log has no wall time"
    timed = np.isfinite(columns["elapsed_s"])
    elapsed, tokens, attempt = (columns[name][timed] for name in ("elapsed_s", "tokens", "attempt"))
    if elapsed.size < 2:
        return None, "fewer than two rows have a wall time"
    within = np.diff(attempt) == 0  # an interval from one attempt to the next says nothing about pace
    seconds, gained = np.diff(elapsed)[within], np.diff(tokens)[within]
    if not (seconds > 0).any() or (seconds < 0).any():
        return None, "the wall time does not grow from row to row"
    starts = np.flatnonzero(np.r_[True, ~within])
    ends = np.r_[starts[1:] - 1, elapsed.size - 1]
    return (
        Pace(
            tokens_per_s=float(gained.sum() / seconds.sum()),
            moving_tokens_per_s=_moving(seconds, gained),
            seconds=float(elapsed[ends].sum()),
            startup_s=float(elapsed[starts].sum()),
            pause_s=_pauses(seconds, gained),
        ),
        None,
    )


def facts(columns: Mapping[str, np.ndarray]) -> list[dict[str, Any]]:
    """Facts of a token axis' pace, each {key, value, source: "measured", note}; [] where it cannot be measured."""
    pace, _ = measure(columns)
    if pace is None:
        return []
    found: list[tuple[str, Any, str]] = [
        ("tokens_per_s", pace.tokens_per_s, "tokens over wall time between the rows, pauses included"),
        ("elapsed_s", pace.seconds, "start of each attempt to its last row; what an attempt lost is not in the log"),
    ]
    if pace.pause_s is not None and pace.seconds > 0:
        training = pace.seconds - pace.startup_s - pace.pause_s
        found += [
            (
                "goodput",
                training / pace.seconds,
                f"estimate: intervals beyond {PAUSE_FACTOR:g} median steps are pauses",
            ),
            ("time_parts", _parts(pace, training), "estimate from the gaps between rows"),
        ]
    if pace.moving_tokens_per_s is not None:
        found.append(("moving_tokens_per_s", pace.moving_tokens_per_s, f"moving average, weight {EMA_WEIGHT:g}"))
    return [{"key": key, "value": value, "source": "measured", "note": note} for key, value, note in found]


def _parts(pace: Pace, training: float) -> list[dict[str, Any]]:
    reason = "estimated from the gaps between rows"
    return [
        {"name": "startup", "label": "Before the first row", "s": pace.startup_s, "measured": True},
        {"name": "compute", "label": "Steps at the median pace", "s": training, "measured": False, "reason": reason},
        {"name": "pauses", "label": "Pauses", "s": pace.pause_s, "measured": False, "reason": reason},
    ]


def _moving(seconds: np.ndarray, gained: np.ndarray) -> float | None:
    """Moving average of tokens over seconds, closed form: w (1 - w)^i from the newest back, the rest on the first."""
    import numpy as np

    usable = seconds > 0
    rates = (gained[usable] / seconds[usable])[EMA_WARMUP:]
    if rates.size == 0:
        return None
    weights = EMA_WEIGHT * (1 - EMA_WEIGHT) ** np.arange(rates.size - 1, -1, -1, dtype=np.float64)
    weights[0] = (1 - EMA_WEIGHT) ** (rates.size - 1)
    return float(weights @ rates)


def _pauses(seconds: np.ndarray, gained: np.ndarray) -> float | None:
    """Seconds beyond the median pace in intervals that are pauses."""
    import numpy as np

    moved = gained > 0
    if moved.sum() < MIN_INTERVALS:
        return None
    usual = float(np.median(seconds[moved] / gained[moved]))
    excess = seconds - usual * gained
    return float(excess[seconds > PAUSE_FACTOR * usual * gained].sum())
