"""A robust fit of the power law to rows: bins, clipped spikes, Huber weights, noise level, prior on the exponent."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from tokenaxis.crossing import median
from tokenaxis.laws.binning import Bins, bins_of
from tokenaxis.laws.noise import long_run_variance
from tokenaxis.laws.projection import EXPONENTS, PowerLaw, Problem, Scan, Weighted, optimum, profile
from tokenaxis.laws.symmetric import inverses

#: rows beyond this many robust standard deviations are spikes and are clipped before binning
SPIKE = 4.0
#: rounds of reweighting: the bins' order does not change after a few
ROUNDS = 6
#: zoom rounds: 5.5 times narrower each, 6 reach 1e-5 in ln alpha, far below any statistical error
ZOOM_ROUNDS = 6


@dataclass(frozen=True)
class RobustFit:
    """A fitted power law with what its interval needs.

    Attributes:
        law: the fit, exponent penalised by the prior.
        variance: of a row's residual. inflation: of the variance of their mean by slow drift.
        covariance: (3, 3) of (L0, A, ln alpha), prior included.
        prior_sd: standard deviation of the prior on ln alpha.
            bin_ln_x, bin_loss, bin_rows: (bins,) what was fitted; bin_weight: (bins,) robust weights; bins: their rows.
        within: sum of squares of the (clipped) rows about the means of their bins.
    """

    law: PowerLaw
    variance: float
    inflation: float
    covariance: np.ndarray
    prior_sd: float
    bin_ln_x: np.ndarray
    bin_loss: np.ndarray
    bin_rows: np.ndarray
    bin_weight: np.ndarray
    bins: Bins
    within: float

    @property
    def exponent_sd(self) -> float:
        """Standard deviation of ln(exponent)."""
        return math.sqrt(max(float(self.covariance[2, 2]), 0.0))

    def misfit_on(self, ln_x: np.ndarray) -> float:
        """Least sum of squares of the same losses on another axis, (rows,) ln x, rows about their bins included."""
        problem = Problem.of(self.bins.mean(ln_x), self.bin_loss, self.bin_weight, math.inf, 0.0)
        return optimum(problem, None, ZOOM_ROUNDS).sum_of_squares + self.within

    def standard_error(self, target: float) -> float:
        """Of ln X at which the law reaches `target` (delta method): g' H^-1 g of method.md section 2."""
        law = self.law
        gap = target - law.irreducible_loss
        ln_x = math.log(law.coefficient / gap) / law.exponent
        gradient = np.array([1.0 / (law.exponent * gap), 1.0 / (law.exponent * law.coefficient), -ln_x])
        return math.sqrt(max(float(gradient @ self.covariance @ gradient), 0.0))


def robust_fit(ln_x: np.ndarray, loss: np.ndarray, params: dict[str, Any]) -> RobustFit:
    """Fit rows (rows,) in ascending ln x; `params` is the `fits` section.

    Spikes are clipped at four robust standard deviations around a first fit, the rest is binned, bins are
    Huber-weighted (loss curves have a kurtosis of 6 to 32), and the exponent is drawn towards the prior by as much as
    the noise allows.
    """
    bins = bins_of(ln_x, params["bins"])
    position = bins.mean(ln_x)
    first = _reweighted(_problem(position, bins.mean(loss), bins), params["huber"])
    clipped = _clip(loss, first.law.loss(ln_x))
    problem = _problem(position, bins.mean(clipped), bins)
    found = _reweighted(problem, params["huber"], first.scan)
    residual = clipped - found.law.loss(ln_x)
    long_run, inflation = long_run_variance(residual)
    prior = _Prior(params["prior_exponent"], params["prior_exponent_sd"], long_run)
    law = optimum(problem, prior, ZOOM_ROUNDS, found.scan, found.weight)
    covariance = _covariance(law, position, found.weight, long_run, prior.spread)
    total = float(residual @ residual)
    return RobustFit(
        law=law,
        variance=float(residual.var()),
        inflation=inflation,
        covariance=covariance,
        prior_sd=prior.spread,
        bin_ln_x=position,
        bin_loss=problem.loss,
        bin_rows=bins.rows,
        bin_weight=found.weight,
        bins=bins,
        within=max(total - float(bins.rows @ np.square(problem.loss - found.law.loss(position))), 0.0),
    )


@dataclass(frozen=True)
class _Prior:
    """Penalty on ln alpha: long-run variance x (ln(alpha / centre) / spread)^2."""

    centre: float
    spread: float
    variance: float

    def __call__(self, ln_exponents: np.ndarray) -> np.ndarray:
        return self.variance * ((ln_exponents - math.log(self.centre)) / self.spread) ** 2


@dataclass(frozen=True)
class _Reweighted:
    law: PowerLaw
    weight: np.ndarray
    scan: Scan


def _problem(position: np.ndarray, loss: np.ndarray, bins: Bins) -> Problem:
    # no upper bound on L0: one low bin must not push it down, and A > 0 keeps it below the fitted losses
    return Problem.of(position, loss, bins.rows, upper=math.inf, least=0.0)


def _reweighted(problem: Problem, huber: float, scan: Scan | None = None) -> _Reweighted:
    """Huber's M-estimator on the bins; the exponent only on the scan's grid until the weights have settled."""
    scan = scan or Scan.of(problem, EXPONENTS)
    root = np.sqrt(problem.weight)
    weight, last = problem.weight, -1
    for _ in range(ROUNDS):
        squares, level, slope = profile(problem, scan, Weighted.of(problem, weight))
        i = int(squares.argmin())
        residual = np.abs(problem.loss - level[i] - slope[i] * (scan.rows[i] + 1.0 / scan.exponents[i])) * root
        scale = 1.4826 * median(residual) + 1e-300
        weight = problem.weight * np.minimum(1.0, huber * scale / np.maximum(residual, 1e-300))
        if i == last:
            break
        last = i
    return _Reweighted(optimum(problem, None, ZOOM_ROUNDS, scan, weight), weight, scan)


def _clip(loss: np.ndarray, fitted: np.ndarray) -> np.ndarray:
    residual = loss - fitted
    limit = SPIKE * 1.4826 * median(np.abs(residual))
    return fitted + np.clip(residual, -limit, limit) if limit > 0.0 else loss


def _covariance(law: PowerLaw, ln_x: np.ndarray, weight: np.ndarray, long_run: float, spread: float) -> np.ndarray:
    """Inverse of H = J' W J / sigma^2 + diag(0, 0, 1 / spread^2) in (L0, A, ln alpha)."""
    power = np.exp(-law.exponent * ln_x)
    jacobian = np.stack([np.ones_like(power), power, -law.coefficient * law.exponent * power * ln_x])
    hessian = (jacobian * weight) @ jacobian.T / max(long_run, 1e-300)
    hessian[2, 2] += 1.0 / spread**2
    return inverses(hessian[None])[0]
