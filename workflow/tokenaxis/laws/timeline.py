"""The learning rate of a run over its whole life: what the log shows, and what the plan says comes next."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tokenaxis.laws.plan import Plan
from tokenaxis.laws.rate import Rate
from tokenaxis.series import LossSeries

#: knots of the past and of the future: rates are smooth between them
PAST, FUTURE = 160, 160
#: without a planned end, the future is looked at up to this many times the observed tokens
FAR = 1e4


@dataclass(frozen=True)
class Timeline:
    """Knots over tokens, ascending; arrays (knots,).

    Attributes:
        tokens: tokens consumed. ratio: lr / peak. step: optimizer steps.
        weighted_tokens, weighted_steps: integrals of the ratio over tokens and steps.
        past: number of knots up to the last logged row; that knot is the last row itself.
        warm: number of knots inside the warm-up, whose changes do not count as decay.
        ends: the last knot is the planned end.
    """

    tokens: np.ndarray
    ratio: np.ndarray
    step: np.ndarray
    weighted_tokens: np.ndarray
    weighted_steps: np.ndarray
    past: int
    warm: int
    ends: bool

    def at(self, tokens: np.ndarray, values: np.ndarray) -> np.ndarray:
        """(knots,) values interpolated at (points,) tokens."""
        return np.interp(tokens, self.tokens, values)


def timeline_of(series: LossSeries, rate: Rate, plan: Plan | None) -> Timeline:
    """The timeline of a series; without a plan the learning rate stays as it is now."""
    rows = _past_rows(series, rate)
    tokens, ratio, step = series.tokens[rows], rate.ratio[rows], series.step[rows]
    warm = 0 if series.warmup_end_step is None else int(np.searchsorted(step, series.warmup_end_step))
    last = float(tokens[-1])
    ends = plan is not None and plan.end_tokens is not None and plan.end_tokens > last * (1 + 1e-6)
    far = float(plan.end_tokens) if plan is not None and plan.end_tokens is not None and ends else FAR * max(last, 1.0)
    ahead = _future(last, far, ends)
    ratio_ahead = np.full(len(ahead), rate.now) if plan is None else plan.ahead(ahead, last, rate.now)
    if plan is not None and not ends and plan.end_tokens is not None:
        ratio_ahead = np.full(len(ahead), rate.now)  # past its planned end a run can only go on as it is
    batch = float(series.tokens_per_step[-1])
    all_tokens = np.concatenate([tokens, ahead])
    all_ratio = np.concatenate([ratio, ratio_ahead])
    all_steps = np.concatenate([step, step[-1] + (ahead - last) / batch])
    mean = 0.5 * (all_ratio[1:] + all_ratio[:-1])
    weighted = np.concatenate([[0.0], np.cumsum(mean * np.diff(all_tokens))])
    weighted += rate.weighted_tokens[-1] - weighted[len(tokens) - 1]
    weighted[: len(tokens)] = rate.weighted_tokens[rows]
    weighted_steps = np.concatenate([[0.0], np.cumsum(mean * np.diff(all_steps))])
    return Timeline(all_tokens, all_ratio, all_steps, weighted, weighted_steps, len(tokens), warm, ends)


def _past_rows(series: LossSeries, rate: Rate) -> np.ndarray:
    """Rows that stand for the past: evenly over tokens, and more where the rate changes; first and last included."""
    rows = len(series.tokens)
    if rows <= 2 * PAST:
        return np.arange(rows)
    even = np.searchsorted(series.tokens, np.linspace(series.tokens[0], series.tokens[-1], PAST))
    change = np.concatenate([[0.0], np.cumsum(np.abs(np.diff(rate.ratio)))])
    moved = np.searchsorted(change, np.linspace(0.0, change[-1], PAST)) if change[-1] > 0 else even
    chosen = np.unique(np.concatenate([even, moved, np.maximum(moved - 1, 0), [0, rows - 1]]))
    return chosen[chosen < rows]


def _future(last: float, far: float, ends: bool) -> np.ndarray:
    """Knots ahead: even to a planned end, and closer just past the last row; geometric without one."""
    near = last + (far - last) * np.geomspace(1e-5, 1.0, FUTURE // 2)
    if not ends:
        return np.unique(last + (far - last) * np.geomspace(1e-8, 1.0, FUTURE))
    return np.unique(np.concatenate([near, np.linspace(last, far, FUTURE // 2 + 1)[1:]]))
