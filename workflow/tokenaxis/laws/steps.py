"""From consumed tokens back to optimizer steps."""

from __future__ import annotations

import math

import numpy as np

from tokenaxis.series import LossSeries


def tokens_to_step(series: LossSeries, tokens: float) -> float:
    """Step at which `tokens` have been consumed (see `tokens_to_steps`)."""
    return float(tokens_to_steps(series, np.array([tokens]))[0])


def tokens_to_steps(series: LossSeries, tokens: np.ndarray) -> np.ndarray:
    """Steps at which (points,) `tokens` have been consumed; NaN stays NaN.

    Inside the log they are interpolated. Past it, steps are counted from the last row at its batch, and at each
    declared stage's batch once its start is reached; steps are whole, so a stage begins with the first step past its
    start.
    Source: the reference script's `tokens_to_step`.
    """
    steps, reached, batches = _stages_ahead(series)
    stage = np.maximum(np.searchsorted(reached, tokens, "left") - 1, 0)
    ahead = steps[stage] + (tokens - reached[stage]) / batches[stage]
    inside = np.interp(tokens, series.tokens, series.step)
    return np.where(tokens <= series.tokens[-1], inside, ahead)


def _stages_ahead(series: LossSeries) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """(first step, tokens before it, batch) of each stage from the last row on."""
    step, tokens, batch = float(series.step[-1]), float(series.tokens[-1]), float(series.tokens_per_step[-1])
    stages = [(step, tokens, batch)]
    for start, next_batch in series.batch_schedule or ():
        if start <= tokens:
            continue
        steps = math.ceil((start - tokens) / batch)
        step, tokens, batch = step + steps, tokens + steps * batch, float(next_batch)
        stages.append((step, tokens, batch))
    first, before, batches = (np.array(values) for values in zip(*stages, strict=True))
    return first, before, batches
