"""How a drop of the learning rate turns into a drop of the loss, some steps later."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from tokenaxis.laws.timeline import Timeline

#: (weighted steps since the change, steps since the change, ratio after it) -> share of the drop that has arrived
Response = Callable[[np.ndarray, np.ndarray, np.ndarray], np.ndarray]
#: smallest ratio that a response sees: a rate of 0 would divide by zero
LEAST_RATIO = 1e-3


def drop_curve(timeline: Timeline, response: Response) -> np.ndarray:
    """D at every knot, (knots,): sum over changes k of (r_(k-1) - r_k) * response since k; changes in warm-up left out.

    A change between two knots is taken to happen half-way between them.
    """
    ratio, first = timeline.ratio, max(timeline.warm, 0)
    change = ratio[:-1] - ratio[1:]
    change[:first] = 0.0
    moved = np.flatnonzero(np.abs(change) > 1e-12)
    if not len(moved):
        return np.zeros(len(ratio))
    weighted, step = timeline.weighted_steps, timeline.step
    middle = 0.5 * (weighted[moved] + weighted[moved + 1])
    when = 0.5 * (step[moved] + step[moved + 1])
    after = np.maximum(ratio[moved + 1], LEAST_RATIO)
    past = np.maximum(weighted[:, None] - middle, 0.0)
    elapsed = np.maximum(step[:, None] - when, 0.0)
    arrived: np.ndarray = response(past, elapsed, after) @ change[moved]
    return arrived
