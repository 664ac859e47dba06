"""The learning rate as the laws see it: its ratio to the peak, and tokens weighted by it."""

from __future__ import annotations

import weakref
from dataclasses import dataclass

import numpy as np

from tokenaxis.series import LossSeries

#: a ratio that stays within this of its start counts as constant (method.md section 4)
CONSTANT = 0.02
#: at or below this ratio of the peak the run cannot go on learning
SPENT = 0.02


@dataclass(frozen=True)
class Rate:
    """The learning rate of one series.

    Attributes:
        state: "unknown" (not logged), "constant" after warm-up, "scaled_with_batch" (changes only where the batch does:
            treated as constant), or "changes".
        ratio: (rows,) lr / peak; 1 from the end of warm-up on unless state is "changes".
        weighted_tokens: (rows,) X = integral of the ratio over tokens; tokens themselves where lr is unknown.
        now: ratio at the last row.
    """

    state: str
    ratio: np.ndarray
    weighted_tokens: np.ndarray
    now: float

    @property
    def constant(self) -> bool:
        return self.state != "changes"


_latest: tuple[weakref.ref[LossSeries], Rate] | None = None


def rate_of(series: LossSeries) -> Rate:
    """The learning rate of a series; a log without one (or with zeros only) is at constant rate, state "unknown".

    The latest answer is remembered, as several parts of one fit ask for it.
    """
    global _latest
    if _latest is None or _latest[0]() is not series:
        _latest = weakref.ref(series), _rate_of(series)
    return _latest[1]


def _rate_of(series: LossSeries) -> Rate:
    rows = len(series.tokens)
    if series.lr is None or not (np.isfinite(series.lr) & (series.lr > 0.0)).any():
        return Rate("unknown", np.ones(rows), series.tokens, 1.0)
    lr = _filled(series.step, series.lr)
    past = 0 if series.warmup_end_step is None else int(np.searchsorted(series.step, series.warmup_end_step))
    if past >= rows:
        past = 0
    state, ratio = _relative(lr, series.tokens_per_step, past)
    return Rate(state, ratio, _weighted_tokens(series, ratio, past), float(ratio[-1]))


def _filled(step: np.ndarray, lr: np.ndarray) -> np.ndarray:
    known = np.isfinite(lr)
    return lr if known.all() else np.interp(step, step[known], lr[known])


def _relative(lr: np.ndarray, batch: np.ndarray, past: int) -> tuple[str, np.ndarray]:
    """(state, ratio to the peak) where `past` is the first row past the warm-up.

    The peak is that of the batch stage in which the warm-up ends: a rate that grows with the batch reaches its overall
    maximum only in the last stage.
    """
    after, batches = lr[past:], batch[past:]
    cuts = np.concatenate([[0], np.flatnonzero(batches[1:] != batches[:-1]) + 1])
    highest = np.maximum.reduceat(after, cuts)
    lowest = np.minimum.reduceat(after, cuts)
    peak = float(highest[0])
    if peak <= 0.0:
        return "changes", np.zeros(len(lr))
    ratio = lr / peak
    if highest.max() - lowest.min() <= CONSTANT * peak:
        ratio[past:] = 1.0
        return "constant", ratio
    if len(cuts) > 1 and len(cuts) < len(after) // 4 and (highest - lowest <= CONSTANT * highest).all():
        stage_batch = batches[cuts]
        if (np.sign(np.diff(highest)) * np.sign(np.diff(stage_batch)) >= 0).all():
            ratio[past:] = 1.0
            return "scaled_with_batch", ratio
    return "changes", ratio


def _weighted_tokens(series: LossSeries, ratio: np.ndarray, past: int) -> np.ndarray:
    """X = integral of the ratio over tokens by the trapezoidal rule, (rows,).

    The end of warm-up is a knot of its own, so that a sparse log does not smear the ramp over the first long gap.
    Before the first row: a ramp from 0 if the log starts inside the warm-up; if it starts past it, full rate, less half
    of the warm-up where its length is declared.
    """
    tokens = series.tokens
    knots, values, end = tokens, ratio, None
    if series.warmup_end_step is not None and 0 < past < len(tokens):
        share = series.warmup_end_step - series.step[past - 1]
        end = float(tokens[past - 1] + share * series.tokens_per_step[past - 1])
        if tokens[past - 1] < end < tokens[past]:
            knots, values = np.insert(tokens, past, end), np.insert(ratio, past, 1.0)
    start = float(tokens[0]) * (0.5 * float(ratio[0]) if ratio[0] < 0.98 and past > 0 else 1.0)
    if past == 0:
        warm_steps = (series.lr_schedule or {}).get("warmup_steps", 0)
        if isinstance(warm_steps, int | float):
            start -= 0.5 * min(float(warm_steps) * float(series.tokens_per_step[0]), start)
    steps = 0.5 * (values[1:] + values[:-1]) * np.diff(knots)
    total = np.concatenate([[start], start + np.cumsum(steps)])
    return total if len(total) == len(tokens) else np.delete(total, past)
