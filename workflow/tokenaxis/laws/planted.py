"""Curves with a known answer, for the checks of the laws: planted power laws under four kinds of noise."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from tokenaxis.series import LossSeries

#: kinds of noise
NOISES = ("white", "ar", "heavy", "spiky")
#: standard deviation of the noise, nats
NOISE_SD = 0.05
#: tokens of a planted run, and the horizons of its target
TOKENS = 4e9
HORIZONS = (1.25, 1.5, 2.0)


@dataclass(frozen=True)
class Planted:
    """A series, a target that it has not reached, and the tokens at which its law does."""

    series: LossSeries
    target: float
    tokens: float


def noise(kind: str, rows: int, rng: np.random.Generator) -> np.ndarray:
    """(rows,) noise of standard deviation NOISE_SD (spikes apart).

    ar: white with an autoregressive part (0.9, a fifth of the variance); heavy: Student's t with 3 degrees of freedom;
    spiky: white with an exponential spike of a mean height of 1 nat in 1% of the rows.
    """
    white = rng.standard_normal(rows)
    if kind == "ar":
        steps = math.sqrt(1 - 0.9**2) * rng.standard_normal(rows)
        slow, state = np.empty(rows), rng.standard_normal()
        for i, step in enumerate(steps.tolist()):
            state = 0.9 * state + step
            slow[i] = state
        return NOISE_SD * (math.sqrt(0.8) * white + math.sqrt(0.2) * slow)
    if kind == "heavy":
        return NOISE_SD * rng.standard_t(3, rows) / math.sqrt(3.0)
    if kind == "spiky":
        return NOISE_SD * white + np.where(rng.random(rows) < 0.01, rng.exponential(1.0, rows), 0.0)
    return NOISE_SD * white


def run(kind: str, rng: np.random.Generator, exponent: float, exponent_sd: float) -> Planted:
    """A planted run at constant learning rate; ln(alpha) is drawn from N(ln exponent, exponent_sd)."""
    rows = int(rng.choice([2000, 6000]))
    batch = TOKENS / rows
    alpha = exponent * math.exp(exponent_sd * rng.standard_normal())
    coefficient, irreducible = rng.uniform(0.4, 1.0), rng.uniform(1.8, 3.0)
    tokens = np.arange(1, rows) * batch
    loss = irreducible + coefficient * (tokens / 1e9) ** -alpha + noise(kind, rows - 1, rng)
    truth = float(rng.choice(HORIZONS)) * float(tokens[-1])
    step, batches, lr = np.arange(1.0, rows), np.full(rows - 1, batch), np.ones(rows - 1)
    plan = {"kind": "constant"}
    series = LossSeries("train_loss", step, tokens, loss, batches, lr, warmup_end_step=0, lr_schedule=plan)
    return Planted(series, irreducible + coefficient * (truth / 1e9) ** -alpha, truth)


def problem(number: int) -> tuple[np.ndarray, np.ndarray]:
    """(x, loss) of one of many random fits: all scales, exponents out of bounds, flat, rising and straight curves."""
    rng = np.random.default_rng([8, number])
    rows, last = int(rng.choice([12, 40, 200, 1500])), 10 ** rng.uniform(-2, 2)
    x = np.sort(rng.uniform(0.01, 1, rows)) * last if number % 3 else np.linspace(0.02, 1, rows) * last
    exponent, coefficient = rng.choice([0.01, 0.1, 0.35, 1.0, 3.0, 9.0, 14.0]), 10 ** rng.uniform(-3, 1)
    fall = coefficient * np.minimum((x / last) ** -exponent, 1e3)
    loss = rng.uniform(0, 3.5) + fall + rng.choice([0, 0.003, 0.05, 0.3]) * rng.standard_normal(rows)
    if number % 11 == 0:
        loss = 3.0 + 1e-3 * rng.standard_normal(rows)
    if number % 13 == 0:
        loss = 1 + x / last + 0.01 * rng.standard_normal(rows)
    if number % 17 == 0:
        loss = 4 - x / last
    return x, np.abs(loss)


def curve_fit_squares(x: np.ndarray, loss: np.ndarray) -> float:
    """Sum of squares that the reference's curve_fit leaves, infinite where it fails."""
    from scipy.optimize import curve_fit

    start = [loss.min() * 0.9, max(loss[0] - loss.min(), 1e-3), 0.3]
    bounds = ([0, 1e-6, 1e-3], [loss.min(), np.inf, 10])
    try:
        found, _ = curve_fit(_power, x, loss, p0=start, bounds=bounds, maxfev=20000)
    except RuntimeError:
        return math.inf
    return float(((_power(x, *found) - loss) ** 2).sum())


def _power(x: np.ndarray, irreducible: float, coefficient: float, exponent: float) -> np.ndarray:
    return irreducible + coefficient * np.power(x, -exponent)
