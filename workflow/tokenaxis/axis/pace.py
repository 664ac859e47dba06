"""Throughput and where the time went, from a token axis that holds wall times: arrays in, facts out."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

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
        tokens_per_s: over all intervals between rows of an attempt, pauses included.
        moving_tokens_per_s: exponential moving average at the end (see EMA_WEIGHT), or None for too few rows.
        seconds: wall time from each attempt's start to its last row, summed; what attempts lost is part of it.
        startup_s: part of it before the attempts' first rows.
        lost_s: part of it spent on steps that a later attempt did again.
        pause_s: part of it beyond the median pace in intervals that are pauses; None for too few rows.
    """

    tokens_per_s: float
    moving_tokens_per_s: float | None
    seconds: float
    startup_s: float
    lost_s: float
    pause_s: float | None


def measure(
    columns: Mapping[str, np.ndarray], attempts: Sequence[Mapping[str, Any]] = ()
) -> tuple[Pace | None, str | None]:
    """The pace of a run, or (None, reason).

    Args:
        columns: of a token axis (rows,): `tokens` (consumed before the step), `attempt`, `elapsed_s` (wall time, NaN
            where a row has none).
        attempts: of its metadata; `superseded_s` of each is used.
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
    lost = {number: float(entry.get("superseded_s") or 0.0) for number, entry in enumerate(attempts)}
    joints = np.flatnonzero(~within)
    startup, between = float(elapsed[0]), 0.0
    for joint in joints:
        before, first = float(elapsed[joint]), float(elapsed[joint + 1])
        started, trained = _across(before, before + lost.get(int(attempt[joint]), 0.0), first)
        startup, between = startup + started, between + trained
    lost_s = sum(lost.values())
    return (
        Pace(
            tokens_per_s=float(gained.sum() / seconds.sum()),
            moving_tokens_per_s=_moving(seconds, gained),
            seconds=startup + between + float(seconds.sum()) + lost_s,
            startup_s=startup,
            lost_s=lost_s,
            pause_s=_pauses(seconds, gained),
        ),
        None,
    )


def _across(before: float, end: float, first: float) -> tuple[float, float]:
    """(seconds of start-up, seconds of training) between two attempts, by which clock the log keeps.

    Args:
        before: wall time of the last row that counts.
        end: wall time of the same attempt's very last row.
        first: wall time of the next attempt's first row.
    """
    if first >= end > before or (first >= before and end == before):
        return first - end, 0.0  # one clock all along: the time between the attempts is in it
    if first >= before:
        return 0.0, first - before  # the clock came out of the checkpoint and goes on
    return first, 0.0  # it began at 0 again


def facts(columns: Mapping[str, np.ndarray], attempts: Sequence[Mapping[str, Any]] = ()) -> list[dict[str, Any]]:
    """Facts of a token axis' pace, each {key, value, source: "measured", note}; [] where it cannot be measured."""
    pace, _ = measure(columns, attempts)
    if pace is None:
        return []
    unknown = any(entry.get("superseded_rows") and entry.get("superseded_s") is None for entry in attempts)
    whole = "what a later attempt did again " + ("is not in the log" if unknown else "is part of it")
    found: list[tuple[str, Any, str]] = [
        ("tokens_per_s", pace.tokens_per_s, "tokens over wall time between the rows, pauses included"),
        ("elapsed_s", pace.seconds, f"start of each attempt to its last row; {whole}"),
    ]
    if pace.pause_s is not None and pace.seconds > 0:
        training = pace.seconds - pace.startup_s - pace.lost_s - pace.pause_s
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
    parts: list[dict[str, Any]] = [
        {"name": "startup", "label": "Before the first row", "s": pace.startup_s, "measured": True},
        {"name": "compute", "label": "Steps at the median pace", "s": training, "measured": False, "reason": reason},
        {"name": "pauses", "label": "Pauses", "s": pace.pause_s, "measured": False, "reason": reason},
    ]
    if pace.lost_s > 0:
        label = "Steps that a later attempt did again"
        parts.append({"name": "superseded", "label": label, "s": pace.lost_s, "measured": True})
    return parts


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
