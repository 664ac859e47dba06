"""How predicted tokens came about, where the law can be solved by hand."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from tokenaxis.passport.evidence import Evidence

#: the power law L = L0 + A (D - D0)^-alpha solved for the tokens D at which L is the target
FORMULA = "token_unit * ((target - irreducible_loss) / coefficient) ** (-1 / exponent) + token_offset"
HORIZON = "tokens_to_target / observed_tokens"
_LAW = ("token_unit", "irreducible_loss", "coefficient", "exponent", "token_offset")
#: the same arithmetic in another order; a law that follows a schedule is off by much more
_SAME = 1e-12


def predictions(evidence: Evidence) -> dict[str, dict[str, Any]]:
    """Tokens and horizon of every target, as far as the formulas give the figures of the fits.

    Laws that follow the learning rate are solved step by step; their figures are the fits' own word.
    """
    entries: dict[str, dict[str, Any]] = {}
    law, observed = evidence.fits.get("fit") or {}, (evidence.fits.get("observed") or {}).get("tokens")
    for outcome in evidence.fits.get("targets") or ():
        target, tokens, horizon = outcome["target"], outcome.get("tokens"), outcome.get("horizon")
        if tokens is None:
            continue
        solved = _solved(law, target) if outcome["status"] == "predicted" else None
        if solved is not None and math.isclose(solved, tokens, rel_tol=_SAME):
            entries[f"targets.{target}.tokens"] = {
                "formula": FORMULA,
                "value": tokens,
                "inputs": {"target": {"value": target, "source": "declared"}}
                | {key: {"value": law[key], "source": "fits"} for key in _LAW},
            }
        if horizon is not None and observed and math.isclose(tokens / observed, horizon, rel_tol=_SAME):
            entries[f"targets.{target}.horizon"] = {
                "formula": HORIZON,
                "value": horizon,
                "inputs": {
                    "tokens_to_target": {"value": tokens, "source": "fits"},
                    "observed_tokens": {"value": observed, "source": "detected"},
                },
            }
    return entries


def _solved(law: Mapping[str, Any], target: float) -> float | None:
    """Tokens at which the power law reaches the target; None where it is another law or never reaches it."""
    values: list[Any] = [law.get(key) for key in _LAW]
    if not all(isinstance(value, int | float) for value in values):
        return None
    unit, irreducible, coefficient, exponent, offset = values
    if not (target > irreducible and coefficient > 0 and exponent > 0):
        return None
    try:
        return float(unit * ((target - irreducible) / coefficient) ** (-1 / exponent) + offset)
    except OverflowError:
        return None
