"""Losses at equal tokens and at equal compute: which differences between runs are more than noise."""

from __future__ import annotations

import math
from dataclasses import dataclass
from statistics import NormalDist

from tokenaxis.comparison.answers import Answers
from tokenaxis.comparison.curves import Curve, Track
from tokenaxis.comparison.tables import Table

#: shares of the peak learning rate that differ by more than this belong to different phases of a schedule
UNEVEN = 0.1


@dataclass(frozen=True)
class Difference:
    """A run's loss less the baseline's, in nats per token.

    Attributes:
        run: run id. basis: "tokens", or the name of the FLOP convention by which compute is equal.
        run_tokens, baseline_tokens: where on its own token axis each is read: the farthest place that both reach.
        run_loss, baseline_loss: smoothed losses there.
        difference, low, high: with its interval at the comparison's level.
        run_rate, baseline_rate: learning rates there over their peaks; None where they are not logged.
    """

    run: str
    basis: str
    run_tokens: float
    baseline_tokens: float
    run_loss: float
    baseline_loss: float
    difference: float
    low: float
    high: float
    run_rate: float | None = None
    baseline_rate: float | None = None

    @property
    def uneven(self) -> bool:
        """Whether one schedule is further down than the other: then the difference is partly the schedule's."""
        known = self.run_rate is not None and self.baseline_rate is not None
        return known and abs((self.run_rate or 0.0) - (self.baseline_rate or 0.0)) > UNEVEN

    @property
    def verdict(self) -> str:
        """In words: lower, higher, or within noise."""
        return "lower" if self.high < 0 else "higher" if self.low > 0 else "within noise"


def differences(answers: Answers, curves: dict[str, Curve], conventions: Table, level: float) -> list[Difference]:
    """Every run against the baseline at equal tokens, and at equal FLOP where the two cost differently per token.

    Standard errors are those of the smoothed curves. # ASSUME: errors of two runs are independent. They hold the noise
    of the logged losses only: how far two seeds of the same run differ is not in them.
    """
    base = curves.get(answers.baseline or "")
    if base is None or not len(base.smooth.tokens):
        return []
    costs = _costs(conventions)
    found = []
    for run in answers.runs:
        curve = curves[run]
        if run == answers.baseline or not len(curve.smooth.tokens) or curve.loss_name != base.loss_name:
            continue
        pairs = [("tokens", 1.0)]
        for convention, per_token in costs.items():
            if run in per_token and base.run in per_token and per_token[run] != per_token[base.run]:
                pairs.append((convention, per_token[run] / per_token[base.run]))
        found += [entry for basis, cost in pairs if (entry := _difference(curve, base, basis, cost, level)) is not None]
    return found


def _costs(conventions: Table) -> dict[str, dict[str, float]]:
    """Convention -> run -> FLOP per token: the chosen convention, else the first by name."""
    costs: dict[str, dict[str, float]] = {}
    for row in conventions.rows:
        if row["flops_per_token"]:
            costs.setdefault(row["convention"], {})[row["run"]] = row["flops_per_token"]
    chosen = {row["convention"] for row in conventions.rows if row["chosen"]} or set(sorted(costs)[:1])
    return {name: per_token for name, per_token in costs.items() if name in chosen}


def _difference(curve: Curve, base: Curve, basis: str, cost: float, level: float) -> Difference | None:
    """`cost`: the run's FLOP per token over the baseline's, tokens of the baseline that one of the run is worth."""
    tokens = min(float(curve.smooth.tokens[-1]), float(base.smooth.tokens[-1]) / cost)
    here, there = _read(curve.smooth, tokens), _read(base.smooth, tokens * cost)
    if here is None or there is None:
        return None
    half = NormalDist().inv_cdf((1 + level) / 2) * math.hypot(here[1], there[1])
    gap = here[0] - there[0]
    rates = _rate(curve.lr, tokens), _rate(base.lr, tokens * cost)
    return Difference(curve.run, basis, tokens, tokens * cost, here[0], there[0], gap, gap - half, gap + half, *rates)


def _rate(lr: Track | None, tokens: float) -> float | None:
    """The learning rate at `tokens` over its peak."""
    import numpy as np

    if lr is None or not len(lr.value) or lr.value.max() <= 0:
        return None
    return float(np.interp(tokens, lr.tokens, lr.value) / lr.value.max())


def _read(track: Track, tokens: float) -> tuple[float, float] | None:
    """(loss, standard error) at `tokens`; None outside the curve."""
    import numpy as np

    if track.sd is None or not track.tokens[0] <= tokens <= track.tokens[-1] * (1 + 1e-9):
        return None
    place = math.log(tokens)
    axis = np.log(track.tokens)
    return float(np.interp(place, axis, track.value)), float(np.interp(place, axis, track.sd))
