"""Everything that a passport could hold and this one does not, each with the reason."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from tokenaxis.passport.evidence import Evidence
from tokenaxis.redaction import redact_text

_SILENT = "the log does not say, and nothing is declared"

#: place in the passport -> (whether it is there, why it would not be)
_EXPECTED: dict[str, tuple[Callable[[Mapping[str, Any]], Any], str]] = {
    "run.command": (lambda p: p["run"].get("command"), "the log does not hold the command"),
    "run.elapsed_s": (lambda p: p["run"].get("elapsed_s"), "the log has no wall time"),
    "run.gpu_hours": (lambda p: p["run"].get("gpu_hours"), "needs elapsed_s, n_gpus"),
    "run.exit_status": (lambda p: "exit_status" in p["run"], "the log does not hold the exit status"),
    "model": (lambda p: p["model"], "no fact about the model: declare its shape in configs/sweeps"),
    "flops.counted": (lambda p: p["flops"].get("counted"), "nobody counted operators while the model ran"),
    "training.tokens_per_s": (lambda p: p["training"].get("tokens_per_s"), _SILENT),
    "training.budget_tokens": (
        lambda p: p["training"].get("budget_tokens"),
        "no plan in tokens, steps or FLOPs is known",
    ),
    "training.lr": (lambda p: p["training"].get("lr"), "the log has no learning rate"),
    "efficiency.goodput": (lambda p: p["efficiency"].get("goodput"), "the log does not say where the time went"),
    "hardware.n_gpus": (lambda p: p["hardware"].get("n_gpus"), _SILENT),
    "hardware.devices": (lambda p: p["hardware"].get("devices"), _SILENT),
    "topology": (lambda p: p["topology"], _SILENT),
    "versions": (lambda p: p["versions"], "the log names no software"),
    "time.parts": (lambda p: p["time"].get("parts"), "the log does not say where the time went"),
    "plan": (lambda p: p["plan"], "no plan is declared: planned_tokens, planned_steps, plan_mfu, plan_hours"),
    "cost": (lambda p: p["cost"], "needs a declared price_per_gpu_hour with its currency, and gpu_hours"),
    "targets": (lambda p: p["targets"], "the fits name no target"),
}


def not_available(evidence: Evidence, passport: Mapping[str, Any]) -> dict[str, str]:
    """Place -> reason: what the conventions could not compute (`flops.<convention>`), and what _EXPECTED misses."""
    reasons = {key: reason for key, (there, reason) in _EXPECTED.items() if not there(passport)}
    reasons |= _losses(evidence, passport)
    for key, reason in (evidence.conventions.get("not_available") or {}).items():
        reasons[_PLACES.get(key, f"flops.{key}")] = reason
    if not evidence.conventions.get("flops_per_token"):
        reasons["flops.per_token"] = "no convention could be computed; each says below what it needs"
    if (reason := evidence.fits.get("fit_not_available")) is not None:
        reasons["fit"] = redact_text(reason)
    for outcome in passport["targets"]:
        place = f"targets.{outcome['target']}"
        if outcome.get("tokens") is None:
            reasons[f"{place}.tokens"] = redact_text(outcome.get("reason") or outcome["status"].replace("_", " "))
        if outcome["verdict"] is None:
            reasons[f"{place}.verdict"] = "the stability sweep has no window for it"
    return reasons


def _losses(evidence: Evidence, passport: Mapping[str, Any]) -> dict[str, str]:
    """Losses that the results do not hold: not logged, or not summarised by the token axis."""
    rows, reasons = evidence.axis.get("rows") or {}, {}
    for column in ("train_loss", "val_loss"):
        if column not in passport["results"]:
            logged = rows.get(f"with_{column}")
            reason = f"{logged} rows have it, and the token axis does not summarise it" if logged else "not in the log"
            reasons[f"results.{column}"] = reason
    return reasons


_PLACES = {
    "mfu": "efficiency.mfu",
    "ofu": "efficiency.ofu",
    "mfu_ofu_gap": "efficiency.mfu_ofu_gap",
    "arithmetic_intensity": "efficiency.arithmetic_intensity",
    "peak": "hardware.peak",
    "flops_spent": "flops.flops_spent",
}
