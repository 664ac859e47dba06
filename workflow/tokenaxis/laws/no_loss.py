"""A run without a single finite value of the loss that was asked for: no curve, but still an answer for each target."""

from __future__ import annotations

from typing import Any

import numpy as np

from tokenaxis.columns import LOSSES
from tokenaxis.errors import Notice
from tokenaxis.laws.answers import FitReport, TargetAnswer


def report(columns: dict[str, np.ndarray], meta: dict[str, Any], params: dict[str, Any]) -> FitReport | None:
    """The report of a run that has no loss to fit; None where it has one.

    Args:
        columns: a token axis, canonical name -> (rows,).
        meta: its JSON of docs/artifacts.md.
        params: the `fits` section; `targets` "auto" means none here, as nothing says where the run stands.
    """
    logged = [name for name in LOSSES if name in columns and np.isfinite(columns[name]).any()]
    wanted = params["loss"]
    if logged and (wanted == "auto" or wanted in logged):
        return None
    asked = list(LOSSES) if wanted == "auto" else [wanted]
    diverged = any(entry["column"] in asked and entry["kind"] in ("nan", "inf") for entry in meta.get("unusable", ()))
    code, reason = _why(wanted, logged, diverged)
    targets = [] if params["targets"] == "auto" else params["targets"]
    return FitReport(
        loss=None if wanted == "auto" else wanted,
        loss_reason=reason,
        rows=0,
        observed={"step": float(columns["step"][-1]), "tokens": float(columns["tokens"][-1]), "loss": None},
        law=None,
        law_reason="there is no loss to fit a law to",
        fit_start_step=None,
        fit=None,
        fit_not_available=reason,
        end=None,
        targets=tuple(
            TargetAnswer(float(target), "not_available", reason=reason, warnings=(code,)) for target in targets
        ),
        warnings=(Notice(code, reason),),
    )


def _why(wanted: str, logged: list[str], diverged: bool) -> tuple[str, str]:
    """(code, reason) of a run that has no finite value of the loss asked for."""
    if diverged:
        which = "the loss" if wanted == "auto" else wanted
        return "diverged", f"diverged: {which} is nan or inf wherever it is logged"
    if wanted == "auto":
        return "no_loss", "the log has no finite loss"
    other = f"; it has {' and '.join(logged)}" if logged else ""
    return "no_loss", f"the log has no finite {wanted}, which was asked for{other}"
