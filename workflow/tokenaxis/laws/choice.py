"""`law: auto`: which law answers, and why."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from tokenaxis import laws
from tokenaxis.errors import TokenAxisError
from tokenaxis.laws.base import Fitted, NotFitted, Prediction
from tokenaxis.laws.plan import Plan, plan_of
from tokenaxis.laws.rate import CONSTANT, rate_of
from tokenaxis.series import LossSeries


def fit_law(series: LossSeries, params: dict[str, Any]) -> tuple[Fitted | NotFitted, str, str]:
    """(the fitted law, its name, why it) of a series; `params` is the `fits` section.

    `auto`: the power law while the learning rate stays as it is, the kernel law once it changes, in the log or by the
    plan. Where the plan still holds the rate for a while, targets before its decay are answered by the power law.
    """
    name = params["law"]
    if name != "auto":
        return laws.get(name).fit(series, params), name, "asked for"
    rate = rate_of(series)
    try:
        plan = plan_of(series)
    except TokenAxisError as error:
        return NotFitted("schedule_invalid", str(error)), "power", "the declared schedule cannot be used"
    if rate.state == "changes":
        return _kernel(series, params, "the learning rate has changed since the warm-up")
    if plan is None or not _changes_ahead(series, plan, rate.now):
        why = "the learning rate is constant" if rate.state != "unknown" else "the learning rate is unknown"
        return laws.get("power").fit(series, params), "power", why + (" by the plan" if plan is not None else "")
    fitted, name, reason = _kernel(series, params, f"the planned {plan.kind} schedule changes the learning rate")
    constant = laws.get("power").fit(series, params)
    if isinstance(fitted, Fitted) and isinstance(constant, Fitted):
        fitted = replace(fitted, predict=_Either(constant, fitted, plan, rate.now))
        reason += "; targets reached before that are answered by the power law"
    return fitted, name, reason


def _kernel(series: LossSeries, params: dict[str, Any], reason: str) -> tuple[Fitted | NotFitted, str, str]:
    return laws.get("kernel").fit(series, params), "kernel", reason


def _changes_ahead(series: LossSeries, plan: Plan, now: float) -> bool:
    last = float(series.tokens[-1])
    end = plan.end_tokens if plan.end_tokens is not None else 100.0 * last
    if end <= last:
        return False
    ahead = plan.ahead(np.linspace(last, end, 64), last, now)
    return bool(np.abs(ahead - now).max() > CONSTANT)


class _Either:
    """The power law up to the first change of the learning rate, the other law beyond it."""

    def __init__(self, constant: Fitted, changing: Fitted, plan: Plan, now: float):
        self.constant, self.changing, self.plan, self.now = constant, changing, plan, now

    def __call__(self, target: float) -> Prediction:
        found = self.constant.predict(target)
        if found.status == "predicted" and found.tokens is not None:
            ratio = float(self.plan.ratio(np.array([found.tokens]))[0])
            if abs(ratio - self.now) <= CONSTANT:
                by_end = self.changing.predict(target).reached_by_end
                return replace(found, law=self.constant.law, reached_by_end=by_end)
        return self.changing.predict(target)
