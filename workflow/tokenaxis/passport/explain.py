"""How each number came about: formula, inputs with their values and sources. Enough to redo it by hand.

Formulas are arithmetic in Python's notation and in the names of their inputs. An input with a `ref` is explained under
that key. Where a quantity has one value per convention, `value` is a mapping, and so is the input that it refers to.
"""

from __future__ import annotations

from typing import Any

from tokenaxis.conventions import utilisation
from tokenaxis.passport.compute import cost, gpu_hours
from tokenaxis.passport.evidence import Evidence
from tokenaxis.passport.training import planned_tokens, steps_done

PER_TOKEN = "flops_per_token"


def explain(evidence: Evidence) -> dict[str, dict[str, Any]]:
    """The `explain` section: key -> {formula, value, inputs: {name: {value, source[, ref]}}}."""
    return _derived(evidence) | _conventions(evidence) | _training(evidence) | _totals(evidence) | _efficiency(evidence)


def _input(evidence: Evidence, key: str) -> dict[str, Any]:
    fact = evidence.facts[key]
    entry = {"value": fact["value"], "source": fact["source"]}
    return entry | {"ref": key} if key in (evidence.conventions.get("derived") or {}) else entry


def _derived(evidence: Evidence) -> dict[str, dict[str, Any]]:
    """Quantities of the shape, as far as a convention needs them."""
    derived, entries = evidence.conventions.get("derived") or {}, {}
    wanted = [key for needs in (evidence.conventions.get("inputs") or {}).values() for key in needs]
    while wanted:
        key = wanted.pop()
        if key in entries or key not in derived:
            continue
        how = derived[key]
        wanted.extend(how["inputs"])
        entries[key] = {
            "formula": how["formula"],
            "value": evidence.fact(key),
            "inputs": {name: _input(evidence, name) for name in how["inputs"]},
        }
    return entries


def _conventions(evidence: Evidence) -> dict[str, dict[str, Any]]:
    report = evidence.conventions
    return {
        f"{PER_TOKEN}.{name}": {
            "formula": report["formulas"][name],
            "value": value,
            "inputs": {key: _input(evidence, key) for key in report["inputs"][name]},
        }
        for name, value in (report.get("flops_per_token") or {}).items()
    }


def _training(evidence: Evidence) -> dict[str, dict[str, Any]]:
    """Steps, tokens, progress."""
    entries: dict[str, dict[str, Any]] = {}
    stages, axis = evidence.stages, evidence.axis
    seen = evidence.conventions.get("tokens_seen")
    if seen is not None:
        batch = (axis.get("batch") or {}).get("source") or "detected"
        counted = (axis.get("tokens") or {}).get("source") or "detected"
        entries["tokens_seen"] = {
            "formula": "tokens_before_last_step + tokens_per_step",
            "value": seen,
            "inputs": {
                "tokens_before_last_step": {"value": axis["tokens"]["last"], "source": counted},
                "tokens_per_step": {"value": stages[-1]["tokens_per_step"], "source": batch},
            },
        }
        entries["steps"] = {
            "formula": "last_step - first_step + 1 + round(first_tokens / first_tokens_per_step)",
            "value": steps_done(evidence),
            "inputs": {
                "last_step": {"value": stages[-1]["last_step"], "source": "detected"},
                "first_step": {"value": stages[0]["first_step"], "source": "detected"},
                "first_tokens": {"value": stages[0]["first_tokens"], "source": counted},
                "first_tokens_per_step": {"value": stages[0]["tokens_per_step"], "source": batch},
            },
        }
    planned = planned_tokens(evidence)
    if planned is not None and "planned_tokens" not in evidence.facts:
        entries["planned_tokens"] = {
            "formula": "planned_steps * tokens_per_step",
            "value": planned,
            "inputs": {
                "planned_steps": _input(evidence, "planned_steps"),
                "tokens_per_step": {"value": stages[0]["tokens_per_step"], "source": evidence.axis["batch"]["source"]},
            },
        }
    if planned is not None and seen is not None:
        entries["progress"] = {
            "formula": "tokens_seen / planned_tokens",
            "value": seen / planned,
            "inputs": {"tokens_seen": {"value": seen, "ref": "tokens_seen"}, "planned_tokens": {"value": planned}},
        }
    return entries


def _totals(evidence: Evidence) -> dict[str, dict[str, Any]]:
    """FLOPs spent, thrown away, and to each target: one value per convention."""
    report, entries = evidence.conventions, {}
    each = {"ref": PER_TOKEN}
    if report.get("flops_spent"):
        entries["flops_spent"] = {
            "formula": f"{PER_TOKEN} * tokens_seen",
            "value": report["flops_spent"],
            "inputs": {PER_TOKEN: each, "tokens_seen": {"value": report["tokens_seen"], "ref": "tokens_seen"}},
        }
    if report.get("flops_superseded"):
        wasted = {"value": evidence.axis["superseded_tokens"], "source": "detected"}
        entries["flops_superseded"] = {
            "formula": f"{PER_TOKEN} * superseded_tokens",
            "value": report["flops_superseded"],
            "inputs": {PER_TOKEN: each, "superseded_tokens": wasted},
        }
    for outcome in report.get("flops_to_target") or ():
        if outcome["flops"]:
            entries[f"flops_to_target.{outcome['target']}"] = {
                "formula": f"{PER_TOKEN} * tokens_to_target",
                "value": outcome["flops"],
                "inputs": {PER_TOKEN: each, "tokens_to_target": {"value": outcome["tokens"], "source": "fits"}},
            }
    planned, chosen = planned_tokens(evidence), evidence.chosen
    if planned is not None and chosen is not None:
        per_token = report["flops_per_token"][chosen]
        entries["flops_required"] = {
            "formula": f"{PER_TOKEN} * planned_tokens",
            "value": per_token * planned,
            "inputs": {
                PER_TOKEN: {"value": per_token, "ref": f"{PER_TOKEN}.{chosen}"},
                "planned_tokens": {"value": planned},
            },
        }
    return entries


def _efficiency(evidence: Evidence) -> dict[str, dict[str, Any]]:
    entries: dict[str, dict[str, Any]] = {}
    mfu, peak = evidence.conventions.get("mfu"), evidence.conventions.get("peak")
    if mfu is not None and peak is not None:
        entries["mfu"] = {
            "formula": utilisation.FORMULA,
            "value": mfu["by_convention"],
            "inputs": {
                PER_TOKEN: {"ref": PER_TOKEN},
                "tokens_per_s": _input(evidence, "tokens_per_s"),
                "n_gpus": _input(evidence, "n_gpus"),
                "peak_flops": {"value": peak["flops_per_s"], "source": f"{peak['kind']}: {peak['reference']}"},
            },
        }
    hours = gpu_hours(evidence)
    if hours is not None and "gpu_hours" not in evidence.facts:
        entries["gpu_hours"] = {
            "formula": "elapsed_s * n_gpus / 3600",
            "value": hours,
            "inputs": {key: _input(evidence, key) for key in ("elapsed_s", "n_gpus")},
        }
    spent = cost(evidence)
    if hours is not None and spent:
        entries["total_usd"] = {
            "formula": "price_per_gpu_hour * gpu_hours",
            "value": spent["total_usd"],
            "inputs": {
                "price_per_gpu_hour": _input(evidence, "price_per_gpu_hour"),
                "gpu_hours": {"value": hours},
            },
        }
    if "usd_per_million_tokens" in spent:
        seen = {"value": evidence.conventions["tokens_seen"], "ref": "tokens_seen"}
        entries["usd_per_million_tokens"] = {
            "formula": "total_usd / tokens_seen * 1e6",
            "value": spent["usd_per_million_tokens"],
            "inputs": {"total_usd": {"value": spent["total_usd"], "ref": "total_usd"}, "tokens_seen": seen},
        }
    return entries
