"""The robust power law on growing windows of a series, with the interval that each would have given at its time."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from tokenaxis.laws.base import TOKEN_UNIT, UNBOUNDED
from tokenaxis.laws.noise import doubt_of, reading_noise, rows_per_token
from tokenaxis.laws.normal import two_sided
from tokenaxis.laws.rate import rate_of
from tokenaxis.laws.symmetric import inverses
from tokenaxis.laws.window_rows import noise_inflation, window_rows
from tokenaxis.series import LossSeries
from tokenaxis.windows import FAST_ROUNDS, Penalty, WindowFits, every_window

#: parts of each window that its curvature is summed over (standard errors to a thousandth), if there are so many points
PARTS, MANY = 64, 480


@dataclass(frozen=True)
class WindowLaws:
    """Laws of the windows, arrays (windows,); x = (tokens - offset) / TOKEN_UNIT for later tokens at the present rate.

    Attributes:
        step, tokens: last step of the window and tokens before it.
        axis: tokens weighted by the learning rate at the window's end. now: the rate's ratio to its peak there.
        irreducible_loss, coefficient, exponent: the law.
        covariance: (windows, 3, 3) of (L0, A, ln alpha). residual_sd: of a row.
        inflation: of the noise by drift. density: rows per token.
        model_sd: model error in ln(tokens) per ln(horizon). z_score: of the interval.
        noise_score: (windows,) the same for the standard error, more where a window has few rows.
        rate_constant: the learning rate does not change after warm-up.
    """

    step: np.ndarray
    tokens: np.ndarray
    axis: np.ndarray
    now: np.ndarray
    irreducible_loss: np.ndarray
    coefficient: np.ndarray
    exponent: np.ndarray
    covariance: np.ndarray
    residual_sd: np.ndarray
    inflation: float
    density: float
    model_sd: float
    z_score: float
    noise_score: np.ndarray
    rate_constant: bool

    def predict(self, target: float) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """(tokens, low, high) of each window, (windows,); NaN where it calls the target unreachable or behind it.

        `high` is NaN where the interval is unbounded.
        """
        gap = target - self.irreducible_loss
        with np.errstate(all="ignore"):
            ln_x = np.log(self.coefficient / gap) / self.exponent
            axis = np.exp(np.minimum(ln_x, 700.0)) * TOKEN_UNIT
            ahead = (axis - self.axis) / np.maximum(self.now, 1e-12)
            tokens = self.tokens + ahead
            gradient = np.stack([1.0 / (self.exponent * gap), 1.0 / (self.exponent * self.coefficient), -ln_x], axis=1)
            noise = np.maximum(np.einsum("wi,wij,wj->w", gradient, self.covariance, gradient), 0.0)
            stretch = axis / (tokens * np.maximum(self.now, 1e-12))  # d ln X / d ln T
            reading = reading_noise(self.residual_sd, self.inflation, self.density, tokens)
            reading *= stretch / (self.exponent * gap)
            other = np.maximum(self.model_sd * np.log(tokens / self.tokens), reading)
            half = np.maximum(self.noise_score * np.sqrt(noise) * stretch, self.z_score * other)
            known = (gap > 0) & (ahead > 0) & (tokens < UNBOUNDED * self.tokens)
            low = np.maximum(tokens * np.exp(-half), self.tokens)
            high = np.where(half < math.log(UNBOUNDED), tokens * np.exp(half), np.nan)
        return tuple(np.where(known, values, np.nan) for values in (tokens, low, high))  # type: ignore[return-value]


def window_laws(
    series: LossSeries, params: dict[str, Any], fit_params: dict[str, Any], fits: dict[str, Any]
) -> WindowLaws | None:
    """Fit every window as the whole log is fitted: its own start, the prior, the noise; None if no window has the rows.

    What differs from the whole log's fit: spikes are clipped around a local level, bins are not reweighted, and the
    noise inflation is the whole log's.

    Args:
        series: the series. params: the `stability` section. fit_params: the `fits` section.
        fits: the fits artifact; its `fit.token_offset` says which axis was chosen.
    """
    if series.inside_warmup:
        return None
    rate = rate_of(series)
    axis = series.tokens if _plain(fits) else rate.weighted_tokens
    rows = window_rows(series, axis, params["windows"], fit_params["start_fraction"], params, fit_params)
    if rows is None:
        return None
    penalty = Penalty(
        centre=math.log(fit_params["prior_exponent"]),
        spread=fit_params["prior_exponent_sd"],
        inflation=noise_inflation(fits),
        within=rows.within,
    )
    weight = rows.bins.rows
    found = every_window(
        rows.ln_x, rows.loss, weight, rows.begin, rows.end, penalty=penalty, least=0.0, rounds=FAST_ROUNDS
    )
    variance = (found.free_squares + penalty.within) / np.maximum(found.points_weight - 3.0, 1.0)
    parts = _parts(rows.ln_x, weight, rows.begin, rows.end)
    doubt = doubt_of(found.points_weight, penalty.inflation)
    planned = "horizon_sd" if series.lr_schedule is not None else "horizon_sd_unplanned"
    return WindowLaws(
        step=series.step[rows.last],
        tokens=series.tokens[rows.last],
        axis=axis[rows.last],
        now=rate.ratio[rows.last],
        irreducible_loss=found.irreducible_loss,
        coefficient=found.coefficient,
        exponent=found.exponent,
        covariance=_covariances(found, *parts, variance * penalty.inflation, penalty.spread),
        residual_sd=np.sqrt(variance),
        inflation=penalty.inflation,
        density=rows_per_token(series.tokens),
        model_sd=fit_params[planned],
        z_score=two_sided(fit_params["interval_level"]),
        noise_score=np.asarray(doubt.half_width(fit_params["interval_level"], 1.0)),
        rate_constant=rate.constant,
    )


def _plain(fits: dict[str, Any]) -> bool:
    """Did the whole log's fit choose plain tokens for its axis?"""
    return fits["fit"] is not None and fits["fit"].get("token_offset") == 0.0


def _parts(
    position: np.ndarray, weight: np.ndarray, begin: np.ndarray, end: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """(mean position, weight) of the same number of parts of every window, each (windows, parts): all of its points.

    A curvature does not need every one of many points. A part that gets none has the weight 0.
    """
    parts = PARTS if len(position) >= MANY else int((end - begin).max())
    cuts = begin[:, None] + (end - begin)[:, None] * np.arange(parts + 1) // parts
    weights, moments = (np.append(0.0, np.cumsum(values)) for values in (weight, weight * position))
    rows = np.diff(weights.take(cuts), axis=1)
    return np.diff(moments.take(cuts), axis=1) / np.maximum(rows, 1e-300), rows


def _covariances(
    found: WindowFits, position: np.ndarray, rows: np.ndarray, variance: np.ndarray, spread: float
) -> np.ndarray:
    """Inverse of J'WJ / sigma^2 + prior for each window in (L0, A, ln alpha), (windows, 3, 3).

    Args:
        position, rows: (windows, parts) points of each window and their weights. variance: (windows,) sigma^2.
        spread: of the prior on ln alpha.
    """
    power = np.exp(np.minimum(-found.exponent[:, None] * position, 300.0))
    slope = (-found.coefficient * found.exponent)[:, None] * power * position
    rows_power = rows * power
    hessian = np.empty((len(rows), 3, 3))
    hessian[:, 0, 0] = rows.sum(axis=1)
    hessian[:, 0, 1] = hessian[:, 1, 0] = rows_power.sum(axis=1)
    hessian[:, 0, 2] = hessian[:, 2, 0] = np.einsum("wp,wp->w", rows, slope)
    hessian[:, 1, 1] = np.einsum("wp,wp->w", rows_power, power)
    hessian[:, 1, 2] = hessian[:, 2, 1] = np.einsum("wp,wp->w", rows_power, slope)
    hessian[:, 2, 2] = np.einsum("wp,wp,wp->w", rows, slope, slope)
    hessian /= np.maximum(variance, 1e-200)[:, None, None]
    hessian[:, 2, 2] += 1.0 / spread**2
    return inverses(hessian)
