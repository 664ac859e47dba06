"""`law: kernel`: every drop of the learning rate arrives in the loss along a power-law kernel."""

from __future__ import annotations

from typing import Any

import numpy as np

from tokenaxis.laws.base import Fitted, Law, NotFitted
from tokenaxis.laws.decaying import fit_decaying
from tokenaxis.series import LossSeries

#: kernel of the drop: 1 - (1 + SPEED r^-RATE s)^-POWER, s = learning-rate-weighted steps (method.md section 4)
POWER, RATE, SPEED = 0.3, 0.64, 0.05
#: nats per unit of decay where a run has not shown its own: medians over public runs (method.md section 4)
DROP = {"cosine": 0.22, "plateau": 0.19}


def response(weighted: np.ndarray, elapsed: np.ndarray, ratio: np.ndarray) -> np.ndarray:
    """Share of a drop that has arrived `weighted` steps after it, the rate being at `ratio` of its peak since."""
    out: np.ndarray = 1.0 - (1.0 + SPEED * ratio**-RATE * weighted) ** -POWER
    return out


def fit(series: LossSeries, params: dict[str, Any]) -> Fitted | NotFitted:
    """Fit L0 + A X^-alpha - B D; `params` is the `fits` section."""
    return fit_decaying("kernel", series, params, response, DROP)


LAW = Law(
    name="kernel",
    formula=(
        "L = L0 + A (X / 1e9)^-alpha - B D, "
        "D = sum over k of (r_(k-1) - r_k) (1 - (1 + C r_k^-gamma (S - S_(k-1)))^-beta), "
        "X and S = tokens and steps weighted by r = lr / peak lr; beta 0.3, gamma 0.64, C 0.05"
    ),
    validity="a learning rate that changes after warm-up, in the log or by its plan; needs the rate and the plan",
    citation="after the multi-power law of Luo et al. 2025 (arXiv:2503.12811), with beta, gamma and C fixed",
    fit=fit,
)
