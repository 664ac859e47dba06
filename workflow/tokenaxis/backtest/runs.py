"""Finished runs as they stood at any moment, and what is true of them."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from tokenaxis.columns import LOSSES
from tokenaxis.errors import TokenAxisError
from tokenaxis.laws.rate import CONSTANT, rate_of
from tokenaxis.series import LossSeries
from tokenaxis.targets import choose_loss

#: fewest rows of a stretch of constant rate
FEWEST_ROWS = 30


@dataclass(frozen=True)
class Run:
    """A finished run, and what a user would have fitted at any moment of it.

    Attributes:
        name: of the run. family: group of related runs.
        losses: name of a loss -> its whole series.
        columns: the token axis, canonical name -> (rows,).
        params: the `fits` section; its `loss` "auto" is decided anew at every cut, from what the log held by then.
    """

    name: str
    family: str
    losses: dict[str, LossSeries]
    columns: dict[str, np.ndarray]
    params: dict[str, Any]

    @property
    def longest(self) -> LossSeries:
        """The series with the most rows."""
        return max(self.losses.values(), key=lambda series: len(series.loss))

    @property
    def end(self) -> float:
        """Tokens up to which every loss is known."""
        return min(float(series.tokens[-1]) for series in self.losses.values())

    def at(self, tokens: float, law: str) -> LossSeries:
        """The whole series of the loss that would have been fitted after so many tokens.

        The reference fits the training loss where there is one.
        """
        if law == "seed" and "train_loss" in self.losses:
            return self.losses["train_loss"]
        rows = int(np.searchsorted(self.columns["tokens"], tokens, "right"))
        seen = {name: values[:rows] for name, values in self.columns.items() if name not in LOSSES}
        seen |= {name: self.columns[name][:rows] for name in self.losses}
        try:
            return self.losses[choose_loss(seen, self.params)[0]]
        except TokenAxisError:  # nothing was logged by then: the cut is too early for a trial
            return self.longest


def run_of(series: LossSeries, params: dict[str, Any], name: str = "run", family: str = "") -> Run:
    """A run with a single loss."""
    columns = {"tokens": series.tokens, series.name: series.loss}
    return Run(name, family, {series.name: series}, columns, params)


def cut(series: LossSeries, tokens: float) -> LossSeries:
    """The series as it stood when `tokens` had been consumed."""
    rows = int(np.searchsorted(series.tokens, tokens, "right"))
    names = ("step", "tokens", "loss", "tokens_per_step")
    kept: dict[str, Any] = {name: getattr(series, name)[:rows] for name in names}
    return replace(series, lr=None if series.lr is None else series.lr[:rows], nonfinite_tail=0, **kept)


def true_loss(series: LossSeries, tokens: float, half_width: float) -> float:
    """Loss of the run at `tokens`: a robust line in ln(tokens) over the rows around it."""
    first = int(np.searchsorted(series.tokens, tokens * math.exp(-half_width)))
    last = int(np.searchsorted(series.tokens, tokens * math.exp(half_width), "right"))
    while last - first < 4 and (first > 0 or last < len(series.tokens)):
        first, last = max(first - 1, 0), min(last + 1, len(series.tokens))
    position, loss = np.log(np.maximum(series.tokens[first:last], 1.0) / tokens), series.loss[first:last]
    weight = np.ones(len(loss))
    for _ in range(3):
        slope, level = np.polyfit(position, loss, 1, w=np.sqrt(weight))
        size = np.abs(loss - level - slope * position)
        weight = np.minimum(1.0, 2.0 * 1.4826 * float(np.median(size)) / np.maximum(size, 1e-12))
    return float(level)


def with_plan_of_the_log(series: LossSeries) -> LossSeries:
    """The series with its own logged rates declared as its plan: a user knows the schedule of a run from the start."""
    if series.lr_schedule is not None or series.lr is None:
        return series
    points = [[float(step), float(rate)] for step, rate in zip(series.step, series.lr, strict=True)]
    schedule = {"kind": "table", "points": points}
    return replace(series, lr_schedule=schedule, planned_tokens=series.planned_tokens or float(series.tokens[-1]))


def constant_stretch(run: Run) -> Run | None:
    """The part of a run before its learning rate first changes, planned to stay so; None if too little is left."""
    series = run.longest
    rate = rate_of(series)
    if rate.state == "unknown":
        return None
    warm = 0 if series.warmup_end_step is None else int(np.searchsorted(series.step, series.warmup_end_step))
    moved = np.flatnonzero(np.abs(rate.ratio[warm:] - 1.0) > CONSTANT)
    rows = len(series.tokens) if not len(moved) else warm + int(moved[0])
    if rows < FEWEST_ROWS:
        return None
    warm_steps = (series.lr_schedule or {}).get("warmup_steps")
    schedule = {"kind": "constant"} | ({"warmup_steps": warm_steps} if warm_steps else {})
    end = float(series.tokens[rows - 1])
    cuts = {name: cut(some, end) for name, some in run.losses.items()}
    kept = {name: replace(some, lr_schedule=schedule, planned_tokens=None) for name, some in cuts.items()}
    return replace(run, losses={name: some for name, some in kept.items() if len(some.loss)})
