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
from tokenaxis.laws.window_rows import noise_inflation, window_rows
from tokenaxis.series import LossSeries
from tokenaxis.windows import FAST_ROUNDS, Penalty, WindowFits, every_window

#: groups of points that a curvature is summed over
COARSE = 240
#: windows whose (windows, points) matrices are made at a time: bounds the memory
AT_ONCE = 400


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
    coarse = _coarse(rows.ln_x, weight, rows.begin, rows.end)
    planned = "horizon_sd" if series.lr_schedule is not None else "horizon_sd_unplanned"
    return WindowLaws(
        step=series.step[rows.last],
        tokens=series.tokens[rows.last],
        axis=axis[rows.last],
        now=rate.ratio[rows.last],
        irreducible_loss=found.irreducible_loss,
        coefficient=found.coefficient,
        exponent=found.exponent,
        covariance=_covariances(found, *coarse, variance * penalty.inflation, penalty.spread),
        residual_sd=np.sqrt(variance),
        inflation=noise_inflation(fits),
        density=rows_per_token(series.tokens),
        model_sd=fit_params[planned],
        z_score=two_sided(fit_params["interval_level"]),
        noise_score=_noise_scores(found.points_weight, noise_inflation(fits), fit_params["interval_level"]),
        rate_constant=rate.constant,
    )


def _noise_scores(rows: np.ndarray, inflation: float, level: float) -> np.ndarray:
    """Factor from a standard error to half of an interval for windows of (windows,) rows."""
    known: dict[int, float] = {}
    counts = rows.astype(int).tolist()
    for count in counts:
        if count not in known:
            known[count] = doubt_of(count, inflation).half_width(level, 1.0)
    return np.array([known[count] for count in counts])


def _plain(fits: dict[str, Any]) -> bool:
    """Did the whole log's fit choose plain tokens for its axis?"""
    return fits["fit"] is not None and fits["fit"].get("token_offset") == 0.0


def _coarse(
    position: np.ndarray, weight: np.ndarray, begin: np.ndarray, end: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """The points in groups, with the windows' ranges of groups: a curvature does not need every bin."""
    first = np.arange(0, len(position), max(1, len(position) // COARSE))
    rows = np.add.reduceat(weight, first)
    group = np.searchsorted(first, np.stack([begin, end]))
    return np.add.reduceat(weight * position, first) / rows, rows, group[0], group[1]


def _covariances(
    found: WindowFits,
    position: np.ndarray,
    weight: np.ndarray,
    begin: np.ndarray,
    end: np.ndarray,
    variance: np.ndarray,
    spread: float,
) -> np.ndarray:
    """Inverse of J'WJ / sigma^2 + prior for each window in (L0, A, ln alpha), (windows, 3, 3)."""
    out = np.empty((len(begin), 3, 3))
    index = np.arange(len(position))
    for first in range(0, len(begin), AT_ONCE):
        some = slice(first, first + AT_ONCE)
        inside = (index >= begin[some, None]) & (index < end[some, None])
        exponent = found.exponent[some, None]
        power = np.where(inside, np.exp(np.minimum(-exponent * position, 300.0)), 0.0)
        slope = -found.coefficient[some, None] * exponent * power * position
        weighted_power, weighted_slope = weight * power, weight * slope
        hessian = np.empty((len(power), 3, 3))
        hessian[:, 0, 0] = found.points_weight[some]
        hessian[:, 0, 1] = hessian[:, 1, 0] = weighted_power.sum(axis=1)
        hessian[:, 0, 2] = hessian[:, 2, 0] = weighted_slope.sum(axis=1)
        hessian[:, 1, 1] = np.einsum("wp,wp->w", weighted_power, power)
        hessian[:, 1, 2] = hessian[:, 2, 1] = np.einsum("wp,wp->w", weighted_power, slope)
        hessian[:, 2, 2] = np.einsum("wp,wp->w", weighted_slope, slope)
        hessian /= np.maximum(variance[some], 1e-300)[:, None, None]
        hessian[:, 2, 2] += 1.0 / spread**2
        scale = 1.0 / np.sqrt(np.maximum(np.einsum("wii->wi", hessian), 1e-300))
        scales = scale[:, :, None] * scale[:, None, :]
        out[some] = np.linalg.pinv(hessian * scales, rcond=1e-13, hermitian=True) * scales
    return out
