"""The laws for a changing learning rate on growing windows of a series: all windows at once.

The schedule is one for all windows, so the drops D are the same; for each alpha of a grid the sums of every window are
differences of suffix sums, and the small linear problems of all windows and alphas are solved together.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from tokenaxis.laws.base import TOKEN_UNIT
from tokenaxis.laws.decaying import START_FRACTION, default_drop
from tokenaxis.laws.drop_fit import DROP_SPREAD, LN_SCAN, PENALTY, gradient, stabilise, with_floors
from tokenaxis.laws.noise import reading_noise, rows_per_token
from tokenaxis.laws.normal import two_sided
from tokenaxis.laws.plan import plan_of
from tokenaxis.laws.rate import rate_of
from tokenaxis.laws.response import Response, drop_curve
from tokenaxis.laws.timeline import Timeline, timeline_of
from tokenaxis.laws.window_rows import WindowRows, noise_inflation, window_rows
from tokenaxis.series import LossSeries

#: grid of ln(alpha); the parabola through three of its points finds the rest
GRID = LN_SCAN[::2]
#: windows of a sweep under these laws: fewer than of the power law, each costs more
WINDOWS = 60


@dataclass(frozen=True)
class KernelWindows:
    """Laws of the windows, arrays (windows,); the interface of WindowLaws.

    Attributes:
        step, tokens: last step of the window and tokens before it.
        irreducible_loss, coefficient, exponent, drop: the law.
        covariance: (windows, 4, 4) of (L0, A, ln alpha, B). residual_sd: of a row.
        inflation: of the noise by drift. density: rows per token.
        timeline, drops: the schedule and what it has taken off, from the log and the plan.
        model_sd: model error of the power-law part per ln(horizon). z_score: of the interval.
        rate_constant: False; the law knows the schedule.
    """

    step: np.ndarray
    tokens: np.ndarray
    irreducible_loss: np.ndarray
    coefficient: np.ndarray
    exponent: np.ndarray
    drop: np.ndarray
    covariance: np.ndarray
    residual_sd: np.ndarray
    inflation: float
    density: float
    timeline: Timeline
    drops: np.ndarray
    model_sd: float
    z_score: float
    rate_constant: bool = True

    def predict(self, target: float) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """(tokens, low, high) of each window, (windows,); NaN where the planned run does not get there."""
        line, column = self.timeline, (slice(None), None)
        ln_x = np.log(np.maximum(line.weighted_tokens, 1.0) / TOKEN_UNIT)
        ln_now = np.interp(self.tokens, line.tokens, ln_x)
        arrived_now = np.interp(self.tokens, line.tokens, self.drops)
        power = self.coefficient[column] * np.exp(-self.exponent[column] * ln_x)
        loss = self.irreducible_loss[column] + power - self.drop[column] * self.drops
        slope = self.exponent[column] * power
        parts = [
            np.ones_like(power),
            power / self.coefficient[column],
            -slope * ln_x,
            -np.broadcast_to(self.drops, power.shape),
        ]
        derivative = np.stack(parts, axis=1)
        variance = np.einsum("wip,wij,wjp->wp", derivative, self.covariance, derivative)
        variance += (self.model_sd * slope * (ln_x - ln_now[column])) ** 2
        variance += (DROP_SPREAD * self.drop[column] * (self.drops - arrived_now[column])) ** 2
        variance += reading_noise(self.residual_sd[column], self.inflation, self.density, line.tokens) ** 2
        spread = self.z_score * np.sqrt(np.maximum(variance, 0.0))
        later = line.tokens > self.tokens[column]
        tokens, low, high = (
            _first(line.tokens, values, target, later) for values in (loss, loss - spread, loss + spread)
        )
        low = np.where(np.isfinite(low), np.maximum(low, self.tokens), np.nan)
        known = np.isfinite(tokens) & (tokens > self.tokens)  # a target behind the window is no prediction
        tokens, low, high = (np.where(known, values, np.nan) for values in (tokens, low, high))
        return tokens, low, high


def _first(tokens: np.ndarray, loss: np.ndarray, target: float, later: np.ndarray) -> np.ndarray:
    """First tokens among the later knots at which each window's (windows, knots) loss is at the target, else NaN."""
    below = (loss <= target) & later
    index = below.argmax(axis=1)
    every = np.arange(len(loss))
    before = np.maximum(index - 1, 0)
    high, low = loss[every, before], loss[every, index]
    share = np.where(high > low, (high - target) / np.where(high > low, high - low, 1.0), 1.0).clip(0.0, 1.0)
    place = tokens[before] + share * (tokens[index] - tokens[before])
    return np.where(below[every, index], place, np.nan)


def kernel_windows(
    series: LossSeries,
    params: dict[str, Any],
    fit_params: dict[str, Any],
    fits: dict[str, Any],
    response: Response,
    drops_by_kind: dict[str, float],
) -> KernelWindows | None:
    """Fit every window of a series under one of the laws for a changing learning rate; None if none has the rows."""
    if series.inside_warmup:
        return None
    rate, plan = rate_of(series), plan_of(series)
    timeline = timeline_of(series, rate, plan)
    drops = drop_curve(timeline, response)
    fraction = min(START_FRACTION, fit_params["start_fraction"])
    windows = min(params["windows"], WINDOWS)
    rows = window_rows(series, rate.weighted_tokens, windows, fraction, params, fit_params)
    if rows is None:
        return None
    arrived = rows.bins.mean(timeline.at(series.tokens[rows.first :], drops))
    solved = _solve(rows, arrived, default_drop(timeline, drops_by_kind), noise_inflation(fits), fit_params)
    known = timeline.ends or series.lr_schedule is not None
    return KernelWindows(
        step=series.step[rows.last],
        tokens=series.tokens[rows.last],
        irreducible_loss=solved["irreducible_loss"],
        coefficient=solved["coefficient"],
        exponent=solved["exponent"],
        drop=solved["drop"],
        covariance=solved["covariance"],
        residual_sd=solved["residual_sd"],
        inflation=noise_inflation(fits),
        density=rows_per_token(series.tokens),
        timeline=timeline,
        drops=drops,
        model_sd=fit_params["horizon_sd" if known else "horizon_sd_unplanned"],
        z_score=two_sided(fit_params["interval_level"]),
    )


def _solve(
    rows: WindowRows, arrived: np.ndarray, centre: float, inflation: float, fit_params: dict[str, Any]
) -> dict[str, np.ndarray]:
    """The laws of all windows: alpha from the grid with its neighbours' parabola, then one solution each."""
    exponent, spread = fit_params["prior_exponent"], fit_params["prior_exponent_sd"]
    weight, level = rows.bins.rows, float(rows.loss.mean())
    total = np.array([weight[b:e].sum() for b, e in zip(rows.begin, rows.end, strict=True)])
    free = np.maximum(total - 3.0, 1.0)
    sums = _sums(rows, arrived, level)
    rough = _objective(sums, level, np.zeros(len(total)), centre)[1].min(axis=1)  # free of the priors
    variance = (np.maximum(rough, 0.0) + rows.within) / free
    stiff = PENALTY * variance * inflation
    objective = _objective(sums, level, stiff / (DROP_SPREAD * centre) ** 2, centre)[1]
    objective = objective + stiff[:, None] * ((GRID - math.log(exponent)) / spread) ** 2
    return _final(rows, arrived, _best(objective), stiff, variance * inflation, centre, spread, level) | {
        "residual_sd": np.sqrt(variance)
    }


def _sums(rows: WindowRows, arrived: np.ndarray, level: float) -> dict[str, np.ndarray]:
    """Sums over each window: of the powers (windows, exponents), of the rest (windows, 1)."""
    weight, loss = rows.bins.rows, rows.loss - level
    power = np.exp(np.multiply.outer(-np.exp(GRID), rows.ln_x - rows.ln_x.mean()))

    def windowed(values: np.ndarray) -> np.ndarray:
        suffix = np.zeros((*values.shape[:-1], values.shape[-1] + 1))
        suffix[..., :-1] = np.cumsum(values[..., ::-1], axis=-1)[..., ::-1]
        return np.atleast_2d(suffix[..., rows.begin] - suffix[..., rows.end]).T

    weighted = power * weight
    return {
        "1": windowed(weight),
        "z": windowed(weighted),
        "d": windowed(-weight * arrived),
        "zz": windowed(weighted * power),
        "zd": windowed(-weighted * arrived),
        "dd": windowed(weight * arrived**2),
        "y": windowed(weight * loss),
        "zy": windowed(weighted * loss),
        "dy": windowed(-weight * arrived * loss),
        "yy": windowed(weight * loss**2),
    }


def _objective(
    sums: dict[str, np.ndarray], level: float, stiff: np.ndarray, centre: float
) -> tuple[np.ndarray, np.ndarray]:
    """(solutions (windows, exponents, 3), sum of squares with B's penalty (windows, exponents))."""
    shape = sums["z"].shape
    held = stiff[:, None] + 1e-12 * sums["1"]
    entries = (("1", "z", "d"), ("z", "zz", "zd"), ("d", "zd", "dd"))
    matrix = np.stack(
        [np.stack([np.broadcast_to(sums[name], shape) for name in line], axis=-1) for line in entries], axis=-2
    ).reshape(-1, 3, 3).copy()  # fmt: skip
    right = np.stack([np.broadcast_to(sums[name], shape) for name in ("y", "zy", "dy")], axis=-1).reshape(-1, 3).copy()
    extra = np.broadcast_to(held, shape).reshape(-1)
    matrix[:, 2, 2] += extra
    right[:, 2] += extra * centre
    stabilise(matrix)
    best, value = np.zeros_like(right), np.full(len(right), np.inf)
    for floor_level in (False, True):
        for floor_drop in (False, True):
            solved, found, feasible = with_floors(matrix, right, level, floor_level, floor_drop)
            better = feasible & (found < value)
            best[better], value[better] = solved[better], found[better]
    value = value.reshape(shape) + sums["yy"] + held * centre**2
    return best.reshape(*shape, 3), value


def _best(objective: np.ndarray) -> np.ndarray:
    """ln(alpha) at the vertex of the parabola through each window's best grid point and its neighbours, (windows,)."""
    every, last = np.arange(len(objective)), len(GRID) - 1
    best = objective.argmin(axis=1)
    middle = np.clip(best, 1, last - 1)
    left, centre, right = (objective[every, middle + shift] for shift in (-1, 0, 1))
    bend = left - 2.0 * centre + right
    usable = (bend > 0) & np.isfinite(bend) & (best == middle)
    step = np.where(usable, 0.5 * (left - right) / np.where(usable, bend, 1.0), 0.0).clip(-1.0, 1.0)
    return GRID[best] + step * (GRID[1] - GRID[0])


def _final(
    rows: WindowRows,
    arrived: np.ndarray,
    ln_exponent: np.ndarray,
    stiff: np.ndarray,
    variance: np.ndarray,
    centre: float,
    spread: float,
    level: float,
) -> dict[str, np.ndarray]:
    """Solution and covariance of each window at its own alpha."""
    windows = len(ln_exponent)
    out: dict[str, np.ndarray] = {
        name: np.empty(windows) for name in ("irreducible_loss", "coefficient", "exponent", "drop")
    }
    out["covariance"] = np.empty((windows, 4, 4))
    for i, (begin, end) in enumerate(zip(rows.begin.tolist(), rows.end.tolist(), strict=True)):
        some = slice(begin, end)
        ln_x, weight, drop = rows.ln_x[some], rows.bins.rows[some], arrived[some]
        exponent = float(np.exp(ln_exponent[i]))
        middle = float(weight @ ln_x / weight.sum())
        columns = np.stack([np.ones(len(ln_x)), np.exp(-exponent * (ln_x - middle)), -drop])
        matrix = (columns * weight) @ columns.T
        right = columns @ (weight * (rows.loss[some] - level))
        held = stiff[i] / (DROP_SPREAD * centre) ** 2 + 1e-12 * weight.sum()
        matrix[2, 2] += held
        right[2] += held * centre
        stabilise(matrix)
        best, least = np.array([0.0, 1e-9, centre]), math.inf
        for floor_level in (False, True):
            for floor_drop in (False, True):
                solved, value, feasible = with_floors(matrix[None], right[None], level, floor_level, floor_drop)
                if feasible[0] and value[0] < least:
                    best, least = solved[0], float(value[0])
        coefficient = float(best[1]) * math.exp(exponent * middle)
        out["irreducible_loss"][i], out["coefficient"][i] = best[0] + level, coefficient
        out["exponent"][i], out["drop"][i] = exponent, best[2]
        jacobian = gradient(coefficient, exponent, ln_x, drop)
        hessian = (jacobian * weight) @ jacobian.T / max(variance[i], 1e-300)
        hessian[2, 2] += 1.0 / spread**2
        hessian[3, 3] += 1.0 / (DROP_SPREAD * centre) ** 2
        scale = 1.0 / np.sqrt(np.diag(hessian))
        scales = np.multiply.outer(scale, scale)
        out["covariance"][i] = np.linalg.pinv(hessian * scales, hermitian=True) * scales
    return out
