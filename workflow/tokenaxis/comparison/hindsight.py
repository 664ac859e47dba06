"""What earlier fits of this sweep had predicted for the targets that were reached since: the sweep's own back-test."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from tokenaxis.comparison.answers import Answers
from tokenaxis.comparison.curves import Windows

#: a window counts for a horizon when its own is within this of it in ln: windows never end exactly there
NEAR = 0.08


#: horizon -> rows of (true tokens, predicted, low, high)
Judged = dict[float, list[tuple[float, float, float, float]]]


@dataclass(frozen=True)
class Hindsight:
    """Predictions at one horizon, at most one per run and target.

    Attributes:
        horizon: tokens at the crossing over tokens seen by then.
        predictions: number of predictions.
        unanswered: windows that had no answer although the target was reached later.
        median_error, high_error: median and 90% quantile of |ln(predicted / true tokens)|; None without predictions.
        held, intervals: how many of the intervals hold the crossing, and how many there are.
    """

    horizon: float
    predictions: int
    unanswered: int
    median_error: float | None
    high_error: float | None
    held: int
    intervals: int


def judged(answers: Answers, windows: Sequence[Windows], horizons: Sequence[float]) -> Judged:
    """Horizon (tokens to the target over tokens seen) -> what every run and target that can be asked about it said.

    NaN where there was no answer, or no bound. The crossing itself is taken as the truth, which has an interval of its
    own: small errors are partly its.
    """
    found: Judged = {horizon: [] for horizon in horizons}
    for entry in windows:
        cell = answers.cells.get((entry.run, entry.target))
        if cell is None or cell.status != "reached" or not cell.tokens:
            continue
        for horizon in horizons:
            row = _row_at(entry, cell.tokens, horizon)
            if row is not None:
                answer = (float(entry.predicted[row]), float(entry.low[row]), float(entry.high[row]))
                found[horizon].append((cell.tokens, *answer))
    return found


def summarised(found: Judged) -> list[Hindsight]:
    """A row for each horizon that there is anything about."""
    return [_summarised(horizon, rows) for horizon, rows in found.items() if rows]


def _row_at(entry: Windows, tokens: float, horizon: float) -> int | None:
    import numpy as np

    seen = entry.window_tokens > 0
    if not seen.any():
        return None
    distance = np.full(len(seen), np.inf)
    distance[seen] = np.abs(np.log(tokens / entry.window_tokens[seen] / horizon))
    row = int(np.argmin(distance))
    return row if distance[row] <= NEAR else None


def _summarised(horizon: float, rows: list[tuple[float, float, float, float]]) -> Hindsight:
    import numpy as np

    answered = [row for row in rows if math.isfinite(row[1]) and row[1] > 0]
    errors = np.array([abs(math.log(predicted / tokens)) for tokens, predicted, _, _ in answered])
    bounded = [row for row in answered if math.isfinite(row[2])]  # no upper end: unbounded, which holds anything above
    held = sum(low <= tokens and not tokens > high for tokens, _, low, high in bounded)
    return Hindsight(
        horizon=horizon,
        predictions=len(answered),
        unanswered=len(rows) - len(answered),
        median_error=float(np.median(errors)) if answered else None,
        high_error=float(np.quantile(errors, 0.9)) if answered else None,
        held=held,
        intervals=len(bounded),
    )
