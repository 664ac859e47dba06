"""The robust power law: raw rows, tokens weighted by the learning rate, a prior on the exponent, an honest interval."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from tokenaxis.errors import Notice
from tokenaxis.laws import checks
from tokenaxis.laws.base import TOKEN_UNIT, UNBOUNDED, Fitted, Law, NotFitted, Prediction, planned_end
from tokenaxis.laws.noise import Doubt, doubt_of, reading_error, rows_per_token
from tokenaxis.laws.normal import cumulative, two_sided
from tokenaxis.laws.rate import SPENT, Rate, rate_of
from tokenaxis.laws.robust import RobustFit, robust_fit
from tokenaxis.series import LossSeries

#: nats that a full decay of the learning rate takes off the loss (median over public runs, method.md section 4)
DECAY_DROP = 0.17
#: log-likelihood ratio beyond which plain tokens replace tokens weighted by the learning rate
AXIS_EVIDENCE = 6.0
LN_UNBOUNDED = math.log(UNBOUNDED)
#: rows after the last finite loss from which a run counts as diverged
NONFINITE_ROWS = 3


@dataclass(frozen=True)
class FitRows:
    """Rows of a series that a law is fitted to.

    Attributes:
        first: index of the first row.
        rate: the series' learning rate.
        ln_x: (rows fitted,) ln of the axis in TOKEN_UNIT.
        loss: (rows fitted,).
        offset: tokens minus axis at the last row: the tokens that the warm-up did not count.
    """

    first: int
    rate: Rate
    ln_x: np.ndarray
    loss: np.ndarray
    offset: float


def start_row(series: LossSeries, start_fraction: float) -> int:
    """First row of a fit: the end of warm-up (or the declared start), or `start_fraction` of the tokens if later."""
    tokens = series.tokens
    warm = series.fit_start_step if series.fit_start_step is not None else series.warmup_end_step
    first = 0 if warm is None else int(np.searchsorted(series.step, warm))
    first = max(first, int(np.searchsorted(tokens, start_fraction * tokens[-1])))
    return max(first, int(np.searchsorted(tokens, 0.0, "right")))  # T = 0 is outside the law's domain


def refusal(series: LossSeries, first: int, min_rows: int) -> NotFitted | None:
    """Why this series gets no fit before anything is computed, or None."""
    if series.inside_warmup:
        return NotFitted("inside_warmup", "the log ends inside the learning-rate warm-up: nothing to fit yet")
    if series.nonfinite_tail >= NONFINITE_ROWS:
        reason = f"diverged: the loss is nan or inf in the last {series.nonfinite_tail} rows"
        return NotFitted("diverged", reason)
    rows = len(series.tokens) - first
    step = int(series.step[first]) if rows > 0 else None
    if rows < min_rows:
        reason = f"only {max(rows, 0)} rows with a loss at or after the fit start; a fit needs {min_rows}"
        return NotFitted("too_few_rows", reason, step)
    if series.lr is None and series.fit_start_step is not None:
        warm = float(np.interp(series.fit_start_step, series.step, series.tokens))
        if series.tokens[-1] < 3.0 * warm:
            reason = "no lr column, and less than three times the declared fit start has been logged: not enough data"
            return NotFitted("too_short", reason, step)
    return None


def fit(series: LossSeries, params: dict[str, Any]) -> Fitted | NotFitted:
    """Fit L0 + A X^-alpha to the rows past the fit start (method.md section 2).

    Args:
        series: one loss of one run.
        params: the `fits` section of the parameters.
    """
    first = start_row(series, params["start_fraction"])
    refused = refusal(series, first, params["min_rows"])
    if refused is not None:
        return refused
    rate = rate_of(series)
    step = int(series.step[first])
    shape = checks.shape_of(np.log(series.tokens[first:]), series.loss[first:])
    notice = checks.trouble(shape)
    if notice is not None:
        return NotFitted(notice.code, notice.message, step)
    rows, found = _best_axis(series, rate, first, params)
    notices = _notices(series, rate, found, shape.noise)
    return _Answer(series, rows, found, params).fitted(step, notices)


def _rows(series: LossSeries, rate: Rate, first: int, axis: np.ndarray) -> FitRows:
    ln_x = np.log(axis[first:] / TOKEN_UNIT)
    return FitRows(first, rate, ln_x, series.loss[first:], float(series.tokens[-1] - axis[-1]))


def _best_axis(series: LossSeries, rate: Rate, first: int, params: dict[str, Any]) -> tuple[FitRows, RobustFit]:
    """The fit on tokens weighted by the learning rate, or on plain tokens where the rows say so clearly."""
    rows = _rows(series, rate, first, rate.weighted_tokens)
    found = robust_fit(rows.ln_x, rows.loss, params)
    if rows.offset <= 0.0 or not rate.constant:
        return rows, found
    plain = _rows(series, rate, first, series.tokens)
    gain = found.misfit_on(rows.ln_x) / max(found.misfit_on(plain.ln_x), 1e-300)
    evidence = 0.5 * len(rows.loss) / max(found.inflation, 1.0) * math.log(max(gain, 1e-300))
    if evidence <= AXIS_EVIDENCE:
        return rows, found
    return plain, robust_fit(plain.ln_x, plain.loss, params)


def _notices(series: LossSeries, rate: Rate, found: RobustFit, noise: float) -> list[Notice]:
    """Warnings about the fit as a whole."""
    law, ln_x, weight = found.law, found.bin_ln_x, found.bin_rows
    notices = checks.bound_notices(law)
    fall = float(law.loss(ln_x[:1])[0] - law.loss(ln_x[-1:])[0])
    for notice in (
        checks.plateau(ln_x, found.bin_loss, weight, law, noise),
        checks.misfit(found.bin_loss - law.loss(ln_x), weight, fall),
    ):
        if notice is not None:
            notices.append(notice)
    if found.exponent_sd > 0.9 * found.prior_sd:
        message = "the exponent is not identified by these rows: it rests on the prior"
        notices.append(Notice("exponent_from_prior", message))
    if 0 < series.nonfinite_tail < NONFINITE_ROWS:
        notices.append(Notice("nonfinite_tail", f"the loss is nan or inf in the last {series.nonfinite_tail} rows"))
    return notices + schedule_notices(series, rate)


def schedule_notices(series: LossSeries, rate: Rate, knows_decay: bool = False) -> list[Notice]:
    """Warnings about the learning rate: unknown, changing, or free to change. `knows_decay`: the law models a decay."""
    notices = []
    if rate.state == "unknown":
        message = "no lr column: the learning rate and its schedule are unknown, and taken as constant"
        if series.fit_start_step is None:
            message += "; the end of warm-up cannot be seen"
        notices.append(Notice("lr_unknown", message))
    if rate.state == "scaled_with_batch":
        notices.append(Notice("lr_scaled_with_batch", "the learning rate changes with the batch: taken as constant"))
    if rate.state == "changes" and not knows_decay:
        message = (
            f"the learning rate changes after warm-up (schedule; now {rate.now:.2f} of its peak): a power law "
            "in tokens does not hold through a decay"
        )
        notices.append(Notice("lr_changes", message))
    elif series.lr_schedule is None:
        message = (
            "no lr schedule is declared: the learning rate is taken to stay as it is; a decay would lower the loss by "
            f"typically {DECAY_DROP} nats and bring targets forward"
        )
        notices.append(Notice("schedule_undeclared", message))
    return notices


@dataclass(frozen=True)
class _Answer:
    """Predictions of one robust fit."""

    series: LossSeries
    rows: FitRows
    found: RobustFit
    params: dict[str, Any]

    def fitted(self, step: int, notices: list[Notice]) -> Fitted:
        law = self.found.law
        parameters = {
            "irreducible_loss": law.irreducible_loss,
            "coefficient": law.coefficient,
            "exponent": law.exponent,
            "token_unit": TOKEN_UNIT,
            "token_offset": self.rows.offset if self.rows.rate.constant else None,
            "residual_sd": math.sqrt(self.found.variance),
            "noise_inflation": self.found.inflation,
            "at_bounds": checks.at_bounds(law),
        }
        return Fitted("power", step, parameters, self.predict, self.loss_at, tuple(notices), self.end())

    def loss_at(self, tokens: np.ndarray) -> np.ndarray:
        """Losses if the learning rate stays as it is now."""
        last, now = float(self.series.tokens[-1]), self.rows.rate.now
        axis = np.interp(tokens, self.series.tokens, self.series.tokens - self.rows.offset)
        if not self.rows.rate.constant:
            axis = np.interp(tokens, self.series.tokens, self.rows.rate.weighted_tokens)
        axis = np.where(tokens > last, axis + (tokens - last) * now, axis)
        return self.found.law.loss(np.log(np.maximum(axis, 1.0) / TOKEN_UNIT))

    def predict(self, target: float) -> Prediction:
        """Tokens at which the law reaches `target`, the learning rate staying as it is."""
        law, rate = self.found.law, self.rows.rate
        if rate.now <= SPENT and not rate.constant:
            return Prediction("unreachable", reason="the learning rate has decayed to 0: the run is over")
        gap = target - law.irreducible_loss
        if gap <= 0.0:
            reason = f"the fitted irreducible loss {law.irreducible_loss:.4f} is not below the target"
            return Prediction("unreachable", reason=reason, reached_by_end=self._reached_by_end(target))
        last = float(self.series.tokens[-1])
        ln_x = math.log(law.coefficient / gap) / law.exponent
        limit = math.log(UNBOUNDED * last / TOKEN_UNIT)
        if ln_x > limit:
            reason = f"under this fit the target lies beyond {UNBOUNDED:.0e} times the observed tokens"
            return Prediction("unreachable", reason=reason, reached_by_end=self._reached_by_end(target))
        ahead = (math.exp(ln_x) * TOKEN_UNIT - (last - self.rows.offset)) / rate.now
        return self._interval(target, ln_x, last, ahead)

    def _interval(self, target: float, ln_x: float, last: float, ahead: float) -> Prediction:
        axis = math.exp(ln_x) * TOKEN_UNIT
        tokens = last + ahead
        stretch = axis / (max(tokens, last) * self.rows.rate.now)  # d ln X / d ln T
        fitted = self.found.standard_error(target) * stretch
        slope = self.found.law.exponent * (target - self.found.law.irreducible_loss) / stretch
        sd, density = math.sqrt(self.found.variance), rows_per_token(self.series.tokens)
        reading = reading_error(sd, self.found.inflation, density, max(tokens, last), slope)
        by_end, doubt = self._reached_by_end(target), self._doubt()
        if ahead <= 0.0:
            return self._inside(last, math.hypot(float(doubt.factor) * fitted, reading), tokens, by_end)
        other = max(self._model_sd() * math.log(tokens / last), reading)
        error = max(float(doubt.factor) * fitted, other)

        def interval_at(level: float) -> tuple[float, float | None]:
            half = max(float(doubt.half_width(level, fitted)), two_sided(level) * other)
            return max(tokens * math.exp(-half), last), tokens * math.exp(half) if half < LN_UNBOUNDED else None

        low, high = interval_at(self.params["interval_level"])
        return Prediction(
            "predicted", tokens, low, high, standard_error=error, reached_by_end=by_end, interval_at=interval_at
        )

    def _doubt(self) -> Doubt:
        return doubt_of(len(self.rows.loss), self.found.inflation)

    def _model_sd(self) -> float:
        """Model error in ln(tokens) per ln(horizon)."""
        known = self.series.lr_schedule is not None
        return float(self.params["horizon_sd" if known else "horizon_sd_unplanned"])

    def _inside(self, last: float, noise: float, tokens: float, by_end: float | None) -> Prediction:
        """The law has the target behind it, the log does not: at the edge within the noise, or a contradiction."""
        if tokens <= 0.0 or math.log(last / tokens) > 2.0 * noise + 1e-6:
            reason = "the fit puts this target inside the log, which does not reach it: a misfit or a plateau"
            return Prediction("not_available", reason=reason)
        just_past = last + float(self.series.tokens_per_step[-1])
        notice = Notice("at_the_edge", "the fit has the target at the last row; the smoothed loss is not there yet")

        def interval_at(level: float) -> tuple[float, float]:
            return last, max(just_past * math.exp(min(two_sided(level) * noise, 50.0)), just_past)

        low, high = interval_at(self.params["interval_level"])
        return Prediction(
            "predicted", just_past, low, high, None, noise, (notice,), reached_by_end=by_end, interval_at=interval_at
        )

    def _planned_end(self) -> tuple[float, float, float] | None:
        """(tokens, loss, standard deviation) at the planned end, or None."""
        end, last = self.series.planned_tokens, float(self.series.tokens[-1])
        if end is None or end <= last:
            return None
        axis = last - self.rows.offset + (end - last) * self.rows.rate.now
        ln_x, law = math.log(axis / TOKEN_UNIT), self.found.law
        power = law.coefficient * math.exp(-law.exponent * ln_x)
        gradient = np.array([1.0, power / law.coefficient, -law.exponent * power * ln_x])
        noise = float(self._doubt().factor) * math.sqrt(max(float(gradient @ self.found.covariance @ gradient), 0.0))
        model = self._model_sd() * law.exponent * power * math.log(end / last)
        return end, law.irreducible_loss + power, max(noise, model)

    def _reached_by_end(self, target: float) -> float | None:
        end = self._planned_end()
        return None if end is None else cumulative((target - end[1]) / max(end[2], 1e-12))

    def end(self) -> dict[str, Any] | None:
        """Loss at the planned end with its interval."""
        end = self._planned_end()
        return None if end is None else planned_end(*end, self.params["interval_level"])


LAW = Law(
    name="power",
    formula="L = L0 + A (X / 1e9)^-alpha, X = tokens weighted by lr / peak lr",
    validity="constant learning rate after warm-up, now and until the target; falling loss; enough rows past warm-up",
    citation=(
        "form: Hestness et al. 2017 (arXiv:1712.00409), Kaplan et al. 2020 (arXiv:2001.08361); robust fit, prior and "
        "interval: docs/methods.md"
    ),
    fit=fit,
)
