"""`law: seed`: the reference script's fit, to the last digit that scipy gives.

Causal token-window EMA, then `scipy.optimize.curve_fit` of L0 + A x^-alpha on the smoothed rows past the warm-up. Kept
for comparison with earlier results; docs/methods.md says why it is not the default.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from tokenaxis.errors import Notice
from tokenaxis.laws.base import TOKEN_UNIT, Fitted, Law, NotFitted, Prediction
from tokenaxis.series import LossSeries
from tokenaxis.smoothing import token_window_ema_rowwise

#: share of the first stage's highest learning rate from which the warm-up counts as over
WARMUP_SHARE = 0.99
#: most function evaluations of curve_fit
MAX_EVALUATIONS = 20000


@dataclass(frozen=True)
class SeedFit:
    """(L0, A, alpha) with x in units of TOKEN_UNIT tokens, or why there is none."""

    irreducible_loss: float = math.nan
    coefficient: float = math.nan
    exponent: float = math.nan
    reason: str | None = None


@dataclass(frozen=True)
class SeedAnswer:
    """Tokens at which a seed fit reaches a target, or the reason why not, in the reference's words."""

    fit: SeedFit
    tokens: float | None = None
    reason: str | None = None


def batch_stages(tokens_per_step: np.ndarray) -> list[tuple[int, int, float]]:
    """Maximal runs of rows with equal batch: [(first row, last row, batch), ...]."""
    starts = np.flatnonzero(np.concatenate([[True], tokens_per_step[1:] != tokens_per_step[:-1]]))
    ends = np.append(starts[1:] - 1, len(tokens_per_step) - 1)
    return [(int(first), int(last), float(tokens_per_step[first])) for first, last in zip(starts, ends, strict=True)]


def warmup_end(step: np.ndarray, lr: np.ndarray, last_row: int) -> int:
    """First step of the first batch stage (rows 0..last_row) with lr >= 0.99 of that stage's highest; 0 if none.

    Only the first stage counts: a rate that is scaled with the batch reaches its maximum long after the warm-up.
    """
    first = lr[: last_row + 1]
    if not np.isfinite(first).any():
        return 0
    past = np.flatnonzero(first >= WARMUP_SHARE * np.nanmax(first))
    return int(step[past[0]]) if len(past) else 0


def curve(x: np.ndarray, irreducible_loss: float, coefficient: float, exponent: float) -> np.ndarray:
    """L0 + A x^-alpha."""
    return irreducible_loss + coefficient * np.power(x, -exponent)


def fit_smoothed(tokens: np.ndarray, smoothed: np.ndarray) -> SeedFit:
    """curve_fit with the reference's start, bounds and budget; its failure is the `reason`.

    Rows at T = 0, at which the reference breaks, are outside the law's domain and left out.
    """
    from scipy.optimize import curve_fit

    if (tokens == 0.0).any():
        tokens, smoothed = tokens[tokens != 0.0], smoothed[tokens != 0.0]
    lowest = smoothed.min()
    start = [lowest * 0.9, max(smoothed[0] - lowest, 1e-3), 0.3]
    bounds = ([0, 1e-6, 1e-3], [lowest, np.inf, 10])
    try:
        with np.errstate(divide="ignore", over="ignore", invalid="ignore"):
            found, _ = curve_fit(curve, tokens / TOKEN_UNIT, smoothed, p0=start, bounds=bounds, maxfev=MAX_EVALUATIONS)
    except RuntimeError as error:
        return SeedFit(reason=f"fit failed to converge: {error}")
    except ValueError as error:
        return SeedFit(reason=f"fit failed: {error}")
    return SeedFit(float(found[0]), float(found[1]), float(found[2]))


def solve(fit: SeedFit, target: float) -> SeedAnswer:
    """Tokens at which `fit` reaches `target`."""
    if fit.reason is not None:
        return SeedAnswer(fit, reason=fit.reason)
    if target <= fit.irreducible_loss:
        reason = f"unreachable under this fit -- asymptote L0={fit.irreducible_loss:.4f} >= target {target}"
        return SeedAnswer(fit, reason=reason)
    gap = target - fit.irreducible_loss
    try:
        tokens = (fit.coefficient / gap) ** (1.0 / fit.exponent) * TOKEN_UNIT
    except OverflowError:
        tokens = math.inf
    return SeedAnswer(fit, tokens=tokens)


def smoothed_loss(series: LossSeries, params: dict[str, Any]) -> np.ndarray:
    """The reference's EMA of a series, (rows,)."""
    return token_window_ema_rowwise(series.loss, series.tokens_per_step, params["seed"]["ema_token_window"])


def fit_start(series: LossSeries) -> int:
    """First step of the fit: declared, or the end of warm-up as the reference sees it."""
    if series.fit_start_step is not None:
        return series.fit_start_step
    if series.lr is None:
        return 0
    return warmup_end(series.step, series.lr, batch_stages(series.tokens_per_step)[0][1])


def fit(series: LossSeries, params: dict[str, Any]) -> Fitted | NotFitted:
    """The reference's fit of one series; `params` is the `fits` section."""
    start = fit_start(series)
    mask = series.step >= start
    rows = int(mask.sum())
    if rows < params["seed"]["min_rows"]:
        return NotFitted("too_few_rows", f"only {rows} logged rows at or after fit start step {start}", start)
    found = fit_smoothed(series.tokens[mask], smoothed_loss(series, params)[mask])
    if found.reason is not None:
        return NotFitted("fit_failed", found.reason, start)
    notices = [
        Notice("no_interval", "the seed law has no interval, and answers with a biased EMA: see docs/methods.md")
    ]
    if series.lr is None and series.fit_start_step is None:
        notices.append(Notice("lr_unknown", "no lr column: the end of warm-up is unknown, the fit starts at step 0"))
    parameters = {
        "irreducible_loss": found.irreducible_loss,
        "coefficient": found.coefficient,
        "exponent": found.exponent,
        "token_unit": TOKEN_UNIT,
        "token_offset": 0.0,
        "residual_sd": None,
        "noise_inflation": None,
        "at_bounds": _at_bounds(found),
    }

    def predict(target: float) -> Prediction:
        answer = solve(found, target)
        if answer.tokens is None or not math.isfinite(answer.tokens):
            return Prediction("unreachable", reason=answer.reason or "beyond every finite number of tokens")
        last = float(series.tokens[-1])
        if answer.tokens <= last:
            notice = Notice("inside_log", "the fit puts this target inside the log, which does not reach it")
            return Prediction("not_available", reason=notice.message, warnings=(notice,))
        return Prediction("predicted", answer.tokens)

    def loss_at(tokens: np.ndarray) -> np.ndarray:
        x = np.maximum(tokens, 1.0) / TOKEN_UNIT
        return curve(x, found.irreducible_loss, found.coefficient, found.exponent)

    return Fitted("seed", start, parameters, predict, loss_at, tuple(notices))


def _at_bounds(found: SeedFit) -> list[str]:
    """Parameters within a millionth of a bound (a trust-region fit never sits on it)."""
    names = []
    if found.irreducible_loss < 1e-6:
        names.append("irreducible_loss")
    if found.coefficient < 1.001e-6:
        names.append("coefficient")
    if not 1.001e-3 < found.exponent < 9.999:
        names.append("exponent")
    return names


LAW = Law(
    name="seed",
    formula="L = L0 + A (T / 1e9)^-alpha on the causal token-window EMA",
    validity="to reproduce earlier results of the reference script; biased by the EMA's lag, and without an interval",
    citation="the reference script of the project's user; scipy.optimize.curve_fit",
    fit=fit,
)
