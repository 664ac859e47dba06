"""The planned learning-rate schedule: what the run will do to its learning rate until its planned end."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from tokenaxis.errors import TokenAxisError
from tokenaxis.series import LossSeries

#: kinds of schedule, and what each needs besides `kind`
KINDS = ("constant", "cosine", "linear", "wsd", "inverse_sqrt", "table")
#: ratios at or below this are not scaled to a logged one
SMALLEST = 1e-3
#: a plan whose ratio at the last row differs from the logged one by more than this is not the run's
MISMATCH = 0.05
#: shapes of a wsd decay: share of the decay done -> share of the fall from peak to final
SHAPES: dict[str, Callable[[np.ndarray], np.ndarray]] = {
    "linear": lambda done: done,
    "cosine": lambda done: 0.5 * (1.0 - np.cos(np.pi * done)),
    "sqrt": np.sqrt,  # "1 - sqrt" of Haegele et al. 2024 (arXiv:2405.18392)
}


@dataclass(frozen=True)
class Plan:
    """A schedule over tokens.

    Attributes:
        kind: one of KINDS.
        ratio: (points,) tokens -> (points,) lr / peak lr, warm-up included.
        warmup_tokens: end of the linear warm-up, 0 if there is none.
        end_tokens: planned end of the run, or None.
        source: "declared", or "lr column" where it was recognised in the log.
    """

    kind: str
    ratio: Callable[[np.ndarray], np.ndarray]
    warmup_tokens: float
    end_tokens: float | None
    source: str

    def ahead(self, tokens: np.ndarray, last: float, now: float) -> np.ndarray:
        """Ratios at later (points,) tokens, scaled so that the plan has the ratio `now` at the `last` tokens."""
        planned = self.at(last)
        ratios = self.ratio(tokens)
        return ratios * (now / planned) if planned > SMALLEST else ratios

    def at(self, tokens: float) -> float:
        """The ratio at one point."""
        return float(self.ratio(np.array([tokens]))[0])


@dataclass(frozen=True)
class Clock:
    """Steps to tokens, inside the log and beyond both of its ends."""

    step: np.ndarray
    tokens: np.ndarray
    tokens_per_step: np.ndarray

    def tokens_at(self, step: float) -> float:
        """Tokens consumed before `step`."""
        if step > self.step[-1]:
            return float(self.tokens[-1] + (step - self.step[-1]) * self.tokens_per_step[-1])
        if step < self.step[0]:
            return max(float(self.tokens[0] - (self.step[0] - step) * self.tokens_per_step[0]), 0.0)
        return float(np.interp(step, self.step, self.tokens))


def declared_plan(schedule: dict[str, Any], clock: Clock, end_tokens: float | None) -> Plan:
    """The plan that a declaration describes.

    Args:
        schedule: `lr_schedule` of a declaration: `kind`; `warmup_steps`; `final`, the last learning rate (relative to
            the peak, or absolute where `peak` is given; 0 if not stated); for wsd `decay_steps` or `decay_fraction` and
            `shape` (linear, cosine, sqrt); for table `points`, a list of [step, learning rate].
        clock: steps to tokens.
        end_tokens: planned end of the run.

    Raises:
        TokenAxisError: something is missing or unknown.
    """
    kind = schedule.get("kind")
    if kind not in KINDS:
        raise TokenAxisError(f"lr_schedule has the kind {kind!r}", remedy=f"declare one of: {', '.join(KINDS)}")
    try:
        return _declared(kind, schedule, clock, end_tokens)
    except (TypeError, ValueError, ZeroDivisionError) as error:
        raise TokenAxisError(f"lr_schedule {kind} has a value that is no number: {error}") from None


def _declared(kind: str, schedule: dict[str, Any], clock: Clock, end_tokens: float | None) -> Plan:
    warm = clock.tokens_at(float(schedule.get("warmup_steps", 0))) if schedule.get("warmup_steps") else 0.0
    if kind in ("cosine", "linear", "wsd") and end_tokens is None:
        raise TokenAxisError(f"lr_schedule {kind} has no end", remedy="declare `planned_steps` or `planned_tokens`")
    return Plan(kind, _with_warmup(_ratio(kind, schedule, clock, warm, end_tokens), warm), warm, end_tokens, "declared")


def _with_warmup(ratio: Callable[[np.ndarray], np.ndarray], warm: float) -> Callable[[np.ndarray], np.ndarray]:
    if warm <= 0.0:
        return ratio
    return lambda tokens: np.where(tokens < warm, tokens / warm, ratio(np.maximum(tokens, warm)))


def _ratio(
    kind: str, schedule: dict[str, Any], clock: Clock, warm: float, end: float | None
) -> Callable[[np.ndarray], np.ndarray]:
    if kind == "constant":
        return lambda tokens: np.ones(np.shape(tokens))
    if kind == "table":
        return _table(schedule, clock)
    if kind == "inverse_sqrt":
        if warm <= 0.0:
            raise TokenAxisError("lr_schedule inverse_sqrt needs `warmup_steps`", remedy="declare the warm-up's steps")
        return lambda tokens: np.sqrt(warm / np.maximum(tokens, warm))
    assert end is not None
    final = float(schedule.get("final", 0.0)) / float(schedule.get("peak", 1.0))
    start = _decay_start(schedule, clock, end) if kind == "wsd" else warm
    shape = SHAPES["linear"] if kind == "linear" else SHAPES["cosine"]
    if kind == "wsd":
        name = schedule.get("shape", "linear")
        if name not in SHAPES:
            raise TokenAxisError(f"lr_schedule has the shape {name!r}", remedy=f"declare one of: {', '.join(SHAPES)}")
        shape = SHAPES[name]
    length = max(end - start, 1.0)
    return lambda tokens: 1.0 - (1.0 - final) * shape(np.clip((tokens - start) / length, 0.0, 1.0))


def _decay_start(schedule: dict[str, Any], clock: Clock, end: float) -> float:
    if "decay_steps" in schedule:
        batch = float(clock.tokens_per_step[-1])
        return max(end - float(schedule["decay_steps"]) * batch, 0.0)
    if "decay_fraction" in schedule:
        return end * (1.0 - float(schedule["decay_fraction"]))
    raise TokenAxisError("lr_schedule wsd needs `decay_steps` or `decay_fraction`", remedy="declare the decay's length")


def _table(schedule: dict[str, Any], clock: Clock) -> Callable[[np.ndarray], np.ndarray]:
    points = schedule.get("points")
    if not isinstance(points, list) or len(points) < 2:
        raise TokenAxisError("lr_schedule table needs `points`", remedy="declare a list of [step, learning rate]")
    tokens = np.array([clock.tokens_at(float(step)) for step, _ in points])
    rates = np.array([float(rate) for _, rate in points])
    if (np.diff(tokens) < 0).any() or rates.max() <= 0.0:
        raise TokenAxisError("lr_schedule table must ascend in steps and hold a positive learning rate")
    return lambda at: np.interp(at, tokens, rates / rates.max())


def plan_of(series: LossSeries) -> Plan | None:
    """The plan of a series: declared, else recognised in the lr column, else None.

    Raises:
        TokenAxisError: the declared schedule lacks something.
    """
    clock = Clock(series.step, series.tokens, series.tokens_per_step)
    if series.lr_schedule is not None:
        return declared_plan(series.lr_schedule, clock, series.planned_tokens)
    return recognised_plan(series)


#: largest deviation of a recognised schedule from the logged ratios: rates are computed, not measured
EXACT = 1e-3
#: rows on the decay, and share of the peak that it has taken off, for a schedule to be recognised
DECAY_ROWS, DECAY_SEEN = 12, 0.1


def recognised_plan(series: LossSeries) -> Plan | None:
    """A linear or cosine decay that the logged rates follow to the digit, with the end that it implies; else None."""
    if series.lr is None or series.inside_warmup or not np.isfinite(series.lr).all() or series.lr.max() <= 0.0:
        return None
    ratio = series.lr / series.lr.max()
    begin = len(ratio) - 1 - int(ratio[::-1].argmax())  # the last row at the peak
    tokens, seen = series.tokens[begin + 1 :], ratio[begin + 1 :]
    if len(seen) < DECAY_ROWS or seen[0] - seen[-1] < DECAY_SEEN or (np.diff(seen) > 1e-9).any():
        return None
    thin = max(1, len(seen) // 200)
    found = _linear_decay(tokens[::thin], seen[::thin]) or _cosine_decay(tokens[::thin], seen[::thin])
    if found is None:
        return None
    kind, ratio_at, end = found
    return Plan(kind, ratio_at, 0.0, end if series.planned_tokens is None else series.planned_tokens, "lr column")


Found = tuple[str, Callable[[np.ndarray], np.ndarray], float]


def _linear_decay(tokens: np.ndarray, ratio: np.ndarray) -> Found | None:
    scale = float(tokens[-1])
    slope, level = np.polyfit(tokens / scale, ratio, 1)
    if slope >= 0.0 or np.abs(slope * tokens / scale + level - ratio).max() > EXACT:
        return None
    # ASSUME: a linear decay runs to 0 (its last rate cannot be read from its beginning)
    return "linear", lambda at: np.clip(slope * at / scale + level, 0.0, 1.0), float(-level / slope) * scale


def _cosine_decay(tokens: np.ndarray, ratio: np.ndarray) -> Found | None:
    """Half a cosine: for a given length, level and phase are linear in 1, cos and sin; the length is searched for."""
    span = float(tokens[-1] - tokens[0])
    low, high = 0.9 * span, 10.0 * span
    length = span
    for _ in range(8):
        lengths = np.geomspace(low, high, 24)
        errors = [_cosine_fit(tokens, ratio, length)[0] for length in lengths]
        i = int(np.argmin(errors))
        length = float(lengths[i])
        low, high = float(lengths[max(i - 1, 0)]), float(lengths[min(i + 1, 23)])
    error, (level, cosine, sine) = _cosine_fit(tokens, ratio, length)
    size = float(np.hypot(cosine, sine))
    if error > EXACT or level - size < -0.02 or not 0.9 < level + size < 1.1:
        return None
    start = float(tokens[0]) + float(np.arctan2(sine, cosine)) / np.pi * length
    end = start + length

    def ratio_at(at: np.ndarray) -> np.ndarray:
        return np.maximum(level + size * np.cos(np.pi * np.clip((at - start) / length, 0.0, 1.0)), 0.0)

    return "cosine", ratio_at, end


def _cosine_fit(tokens: np.ndarray, ratio: np.ndarray, length: float) -> tuple[float, np.ndarray]:
    """(largest deviation, coefficients of 1, cos, sin) of the best cosine whose half period is `length` tokens."""
    angle = np.pi * (tokens - tokens[0]) / length
    columns = np.stack([np.ones(len(angle)), np.cos(angle), np.sin(angle)], axis=1)
    found = np.linalg.lstsq(columns, ratio, rcond=None)[0]
    return float(np.abs(columns @ found - ratio).max()), found
