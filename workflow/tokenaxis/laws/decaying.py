"""Laws for a changing learning rate: L0 + A X^-alpha - B D, with D from the schedule (method.md section 4).

Linear in (L0, A, B) for a given alpha: a scan over alpha with non-negative least squares, Huber weights, a prior on
alpha and one on B. Its interval lives in the loss; the token interval is where the band crosses the target.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from tokenaxis.crossing import median
from tokenaxis.errors import Notice, TokenAxisError
from tokenaxis.laws import checks
from tokenaxis.laws.base import TOKEN_UNIT, Fitted, NotFitted, Prediction, planned_end
from tokenaxis.laws.binning import bins_of
from tokenaxis.laws.drop_fit import DROP_SPREAD, Points, Prior, Solution, covariance_of, gradient, reweighted
from tokenaxis.laws.noise import long_run_variance, reading_noise, rows_per_token
from tokenaxis.laws.normal import cumulative, quantile, two_sided
from tokenaxis.laws.plan import MISMATCH, Plan, plan_of
from tokenaxis.laws.power import refusal, schedule_notices, start_row
from tokenaxis.laws.rate import SPENT, Rate, rate_of
from tokenaxis.laws.response import Response, drop_curve
from tokenaxis.laws.robust import SPIKE
from tokenaxis.laws.timeline import Timeline, timeline_of
from tokenaxis.series import LossSeries

#: the fit starts at this fraction of the observed tokens (method.md section 4)
START_FRACTION = 0.3
#: chance of reaching a target by the planned end below which no tokens are given
LEAST_CHANCE = 0.1


Intervals = Callable[[float], tuple[float | None, float | None]]


def fit_decaying(
    name: str, series: LossSeries, params: dict[str, Any], response: Response, drops_by_kind: dict[str, float]
) -> Fitted | NotFitted:
    """Fit one of the laws of this family.

    Args:
        name: the law's name.
        series: one loss of one run.
        params: the `fits` section.
        response: how drops of the rate arrive in the loss.
        drops_by_kind: centre of the prior on B, by kind of schedule ("cosine" for a rate that falls from the end of
            warm-up on, "plateau" for one that falls after a plateau).
    """
    fraction = min(START_FRACTION, params["start_fraction"])
    first = start_row(series, fraction)
    refused = refusal(series, first, params["min_rows"])
    if refused is not None:
        return refused
    rate = rate_of(series)
    if rate.state == "unknown" and series.lr_schedule is None:
        reason = "no lr column and no declared schedule: this law needs the learning rate"
        return NotFitted("lr_unknown", reason, int(series.step[first]))
    trouble = checks.trouble(checks.shape_of(np.log(series.tokens[first:]), series.loss[first:]))
    if trouble is not None:
        return NotFitted(trouble.code, trouble.message, int(series.step[first]))
    try:
        plan = plan_of(series)
    except TokenAxisError as error:
        return NotFitted("schedule_invalid", str(error), int(series.step[first]))
    timeline = timeline_of(series, rate, plan)
    drops = drop_curve(timeline, response)
    centre = default_drop(timeline, drops_by_kind)
    answer = _solve(series, timeline, drops, first, params, centre)
    return answer.fitted(name, int(series.step[first]), rate, plan)


def default_drop(timeline: Timeline, drops_by_kind: dict[str, float]) -> float:
    """Centre of the prior on B for this schedule."""
    return drops_by_kind["plateau" if _plateau(timeline) else "cosine"]


def _plateau(timeline: Timeline) -> bool:
    """Does the rate stay at its peak for a fifth of the run or more before it falls?"""
    ratio, tokens = timeline.ratio[timeline.warm :], timeline.tokens[timeline.warm :]
    end = tokens[-1] if timeline.ends else timeline.tokens[timeline.past - 1]
    high = tokens[(ratio > 0.98) & (tokens <= end)]
    return len(high) > 0 and float(high[-1] - tokens[0]) > 0.2 * float(end - tokens[0])


def _solve(
    series: LossSeries, timeline: Timeline, drops: np.ndarray, first: int, params: dict[str, Any], centre: float
) -> _Answer:
    tokens, loss = series.tokens[first:], series.loss[first:]
    ln_x = np.log(np.maximum(timeline.at(tokens, timeline.weighted_tokens), 1.0) / TOKEN_UNIT)
    arrived = timeline.at(tokens, drops)
    bins = bins_of(ln_x, params["bins"])
    points = Points(bins.mean(ln_x), bins.mean(loss), bins.mean(arrived), bins.rows)
    exponent, spread = params["prior_exponent"], params["prior_exponent_sd"]
    free = Prior(exponent, spread, centre, 0.0)  # no penalty: residuals of a wrong B must not pass for noise
    rough, _ = reweighted(points, free, params["huber"])
    fitted = rough.loss(ln_x, arrived)
    residual = loss - fitted
    limit = SPIKE * 1.4826 * median(np.abs(residual))
    if limit > 0.0:
        residual = np.clip(residual, -limit, limit)
        points = replace(points, loss=bins.mean(fitted + residual))
    long_run, inflation = long_run_variance(residual)
    prior = Prior(exponent, spread, centre, long_run)
    found, weight = reweighted(points, prior, params["huber"])
    final = residual - (found.loss(ln_x, arrived) - fitted)
    covariance = covariance_of(found, points, weight, prior)
    smooth = found.loss(points.ln_x, points.arrived)
    misfit = checks.misfit(points.loss - smooth, points.weight, float(smooth[0] - smooth[-1]))
    sd = float(final.std())
    return _Answer(series, timeline, drops, found, covariance, prior, sd, inflation, params, misfit)


@dataclass(frozen=True)
class _Answer:
    """Predictions of one fit along its timeline."""

    series: LossSeries
    timeline: Timeline
    drops: np.ndarray
    found: Solution
    covariance: np.ndarray
    prior: Prior
    residual_sd: float
    inflation: float
    params: dict[str, Any]
    misfit: Notice | None

    def fitted(self, name: str, step: int, rate: Rate, plan: Plan | None) -> Fitted:
        found = self.found
        parameters = {
            "irreducible_loss": found.irreducible_loss,
            "coefficient": found.coefficient,
            "exponent": found.exponent,
            "drop": found.drop,
            "token_unit": TOKEN_UNIT,
            "token_offset": None,
            "residual_sd": self.residual_sd,
            "noise_inflation": self.inflation,
            "at_bounds": ["irreducible_loss"] if found.irreducible_loss <= 1e-9 else [],
            "schedule": None if plan is None else plan.kind,
            "schedule_source": None if plan is None else plan.source,
            "planned_tokens": None if plan is None else plan.end_tokens,
        }
        return Fitted(name, step, parameters, self.predict, self.loss_at, tuple(self._notices(rate, plan)), self.end())

    def _notices(self, rate: Rate, plan: Plan | None) -> list[Notice]:
        notices = [] if self.misfit is None else [self.misfit]
        if self.found.irreducible_loss <= 1e-9:
            notices.append(Notice("at_bound", "irreducible_loss is pinned at its bound (0)"))
        seen = math.sqrt(max(float(self.covariance[3, 3]), 0.0))
        if seen > 0.7 * self.prior.drop_sd:
            message = (
                f"the loss drop per unit of learning-rate decay ({self.found.drop:.3f} nats) rests on other runs' "
                "decays: this one has not shown its own yet"
            )
            notices.append(Notice("drop_from_prior", message))
        planned = rate.now if plan is None else plan.at(float(self.series.tokens[-1]))
        if plan is not None and abs(planned - rate.now) > MISMATCH:
            message = (
                f"the declared {plan.kind} schedule has the learning rate at {planned:.2f} of its peak by now, the log "
                f"has {rate.now:.2f}: the rest of the plan is scaled to the log"
            )
            notices.append(Notice("plan_mismatch", message))
        if plan is None:
            notices += schedule_notices(self.series, rate, knows_decay=True)
        elif plan.source != "declared":
            end = f"{plan.end_tokens:,.0f}" if plan.end_tokens is not None else "unknown"
            message = (
                f"schedule read from the lr column: {plan.kind} decay that ends at {end} tokens; declare it if not so"
            )
            notices.append(Notice("schedule_recognised", message))
        return notices

    def _band(self) -> tuple[np.ndarray, np.ndarray]:
        """(loss, standard deviation) at the knots from the last row on, (knots,)."""
        now = self.timeline.past - 1
        ln_x = np.log(self.timeline.weighted_tokens[now:] / TOKEN_UNIT)
        arrived = self.drops[now:]
        derivative = gradient(self.found.coefficient, self.found.exponent, ln_x, arrived)
        noise = np.einsum("ip,ij,jp->p", derivative, self.covariance, derivative)
        power = self.found.exponent * self.found.coefficient * np.exp(-self.found.exponent * ln_x)
        known = self.timeline.ends or self.series.lr_schedule is not None
        horizon = self.params["horizon_sd" if known else "horizon_sd_unplanned"] * power * (ln_x - ln_x[0])
        decay = DROP_SPREAD * self.found.drop * np.abs(arrived - arrived[0])
        density = rows_per_token(self.series.tokens)
        reading = reading_noise(self.residual_sd, self.inflation, density, self.timeline.tokens[now:])
        spread = np.sqrt(np.maximum(noise, 0.0) + horizon**2 + decay**2 + reading**2)
        return self.found.loss(ln_x, arrived), spread

    def loss_at(self, tokens: np.ndarray) -> np.ndarray:
        line = self.timeline
        axis = np.maximum(line.at(tokens, line.weighted_tokens), 1.0)
        return self.found.loss(np.log(axis / TOKEN_UNIT), line.at(tokens, self.drops))

    def end(self) -> dict[str, Any] | None:
        """Loss at the planned end with its interval."""
        if not self.timeline.ends:
            return None
        loss, spread = self._band()
        level = self.params["interval_level"]
        return planned_end(float(self.timeline.tokens[-1]), float(loss[-1]), float(spread[-1]), level)

    def predict(self, target: float) -> Prediction:
        """Where the predicted loss, and the two sides of its band, reach `target` along the plan."""
        if not self.timeline.ends and self.timeline.ratio[self.timeline.past - 1] <= SPENT:
            return Prediction("unreachable", reason="the learning rate has decayed to 0: the run is over")
        loss, spread = self._band()
        tokens = self.timeline.tokens[self.timeline.past - 1 :]
        by_end = None
        if self.timeline.ends:
            by_end = cumulative((target - float(loss[-1])) / max(float(spread[-1]), 1e-12))

        def interval_at(level: float) -> tuple[float | None, float | None]:
            z = two_sided(level)
            return _first(tokens, loss - z * spread, target), _first(tokens, loss + z * spread, target)

        place = _first(tokens, loss, target)
        low, high = interval_at(self.params["interval_level"])
        if place is None and by_end is not None and by_end >= LEAST_CHANCE:
            return self._if_at_all(tokens, loss, spread, target, by_end, interval_at)
        if place is None:
            where = f"by the planned end (loss there {loss[-1]:.4f})" if self.timeline.ends else "at any horizon"
            return Prediction("unreachable", reason=f"not reached {where} under this law", reached_by_end=by_end)
        if place <= tokens[0]:
            return self._inside(target, float(loss[0]), float(spread[0]), by_end, interval_at)
        error = float(np.interp(place, tokens, spread)) / max(_slope(tokens, loss, place), 1e-12)
        return Prediction(
            "predicted", place, low, high, standard_error=error, reached_by_end=by_end, interval_at=interval_at
        )

    def _if_at_all(
        self,
        tokens: np.ndarray,
        loss: np.ndarray,
        spread: np.ndarray,
        target: float,
        by_end: float,
        interval_at: Intervals,
    ) -> Prediction:
        """A target that is more likely missed than reached by the planned end: where, if it is reached at all.

        The median given that it is reached: where the chance of having reached it is half of that at the end.
        """
        place = _first(tokens, loss + quantile(0.5 * by_end) * spread, target)
        assert place is not None  # the band at half the chance lies below the band at the end's own chance
        place = max(place, float(tokens[0]) * (1 + 1e-9))
        message = (
            f"missed by the planned end with probability {1 - by_end:.2f}; the tokens hold if it is reached at all"
        )
        notice = Notice("unlikely_by_end", message)

        def bounded(level: float) -> tuple[float, float | None]:
            low = interval_at(level)[0]
            return place if low is None else min(low, place), None

        low = bounded(self.params["interval_level"])[0]
        return Prediction(
            "predicted", place, low, None, message, None, (notice,), reached_by_end=by_end, interval_at=bounded
        )

    def _inside(
        self, target: float, loss: float, spread: float, by_end: float | None, interval_at: Intervals
    ) -> Prediction:
        """The law is at the target already, the log is not: within the band at its edge, or a contradiction."""
        residual = self.residual_sd * math.sqrt(self.inflation / max(len(self.series.loss) / 20.0, 1.0))
        if target - loss > 2.0 * math.hypot(spread, residual) + 1e-4:
            reason = "the fit puts this target inside the log, which does not reach it: a misfit or a plateau"
            return Prediction("not_available", reason=reason)
        last = float(self.series.tokens[-1])
        just_past = last + float(self.series.tokens_per_step[-1])
        notice = Notice("at_the_edge", "the fit has the target at the last row; the smoothed loss is not there yet")

        def bounded(level: float) -> tuple[float, float | None]:
            high = interval_at(level)[1]
            return last, None if high is None else max(high, just_past)

        low, high = bounded(self.params["interval_level"])
        return Prediction(
            "predicted", just_past, low, high, None, None, (notice,), reached_by_end=by_end, interval_at=bounded
        )


def _first(tokens: np.ndarray, loss: np.ndarray, target: float) -> float | None:
    """First tokens at which `loss` is at or below `target`, linear between knots; None if it never is."""
    below = np.flatnonzero(loss <= target)
    if not len(below):
        return None
    i = int(below[0])
    if i == 0:
        return float(tokens[0])
    share = float((loss[i - 1] - target) / (loss[i - 1] - loss[i]))
    return float(tokens[i - 1] + share * (tokens[i] - tokens[i - 1]))


def _slope(tokens: np.ndarray, loss: np.ndarray, place: float) -> float:
    """|d loss / d ln tokens| around `place`."""
    i = int(np.clip(np.searchsorted(tokens, place), 1, len(tokens) - 1))
    return abs(float(loss[i] - loss[i - 1])) / max(math.log(tokens[i] / tokens[i - 1]), 1e-12)
