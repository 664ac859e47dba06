"""`law: annealing`: drops of the learning rate arrive in the loss with an exponential delay."""

from __future__ import annotations

from typing import Any

import numpy as np

from tokenaxis.laws.base import Fitted, Law, NotFitted
from tokenaxis.laws.decaying import fit_decaying
from tokenaxis.series import LossSeries

#: memory of the annealing momentum per step (Tissue et al. 2024 use 0.99 to 0.999)
MEMORY = 0.999
#: nats per unit of decay where a run has not shown its own
DROP = {"cosine": 0.22, "plateau": 0.19}


def response(weighted: np.ndarray, elapsed: np.ndarray, ratio: np.ndarray) -> np.ndarray:
    """Share of a drop that has arrived `elapsed` steps after it."""
    out: np.ndarray = 1.0 - MEMORY**elapsed
    return out


def fit(series: LossSeries, params: dict[str, Any]) -> Fitted | NotFitted:
    """Fit L0 + A X^-alpha - B D; `params` is the `fits` section."""
    return fit_decaying("annealing", series, params, response, DROP)


LAW = Law(
    name="annealing",
    formula=(
        "L = L0 + A (S1)^-alpha - C S2, S1 = sum of r, S2 = sum of m, m_i = 0.999 m_(i-1) + (r_(i-1) - r_i); "
        "here with B = C / (1 - 0.999), so that B is the loss drop of a full decay"
    ),
    validity="a learning rate that changes after warm-up, in the log or by its plan; needs the rate and the plan",
    citation="Tissue et al. 2024 (arXiv:2408.11029)",
    fit=fit,
)
