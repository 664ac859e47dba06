"""How each number came about: formula, inputs with their values and sources. Enough to redo it by hand.

Formulas are arithmetic in Python's notation and in the names of their inputs. An input with a `ref` is explained under
that key. Where a quantity has one value per convention, `value` is a mapping, and so is the input that it refers to.
"""

from __future__ import annotations

from typing import Any

from tokenaxis.passport.evidence import PER_TOKEN, Evidence, given
from tokenaxis.passport.explain_efficiency import efficiency
from tokenaxis.passport.explain_targets import predictions
from tokenaxis.passport.training import (
    eta_s,
    lost_seconds,
    planned_tokens,
    steps_done,
    superseded_gpu_hours,
    superseded_s,
)


def explain(evidence: Evidence) -> dict[str, dict[str, Any]]:
    """The `explain` section: key -> {formula, value, inputs: {name: {value, source[, ref]}}}."""
    parts = (_derived, _conventions, _training, predictions, _totals, efficiency)
    return {key: entry for part in parts for key, entry in part(evidence).items()}


def _planned(evidence: Evidence) -> dict[str, Any]:
    if "planned_tokens" in evidence.facts:
        return given(evidence, "planned_tokens")
    return {"value": planned_tokens(evidence), "ref": "planned_tokens"}


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
            "inputs": {name: given(evidence, name) for name in how["inputs"]},
        }
    return entries


def _conventions(evidence: Evidence) -> dict[str, dict[str, Any]]:
    report = evidence.conventions
    return {
        f"{PER_TOKEN}.{name}": {
            "formula": report["formulas"][name],
            "value": value,
            "inputs": {key: given(evidence, key) for key in report["inputs"][name]},
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
        entries["planned_tokens"] = _plan(evidence, planned)
    if planned is not None and seen is not None:
        entries["progress"] = {
            "formula": "tokens_seen / planned_tokens",
            "value": seen / planned,
            "inputs": {"tokens_seen": {"value": seen, "ref": "tokens_seen"}, "planned_tokens": _planned(evidence)},
        }
    if (eta := eta_s(evidence)) is not None:
        entries["eta_s"] = {
            "formula": "max(planned_tokens - tokens_seen, 0) / tokens_per_s",
            "value": eta,
            "inputs": {
                "planned_tokens": _planned(evidence),
                "tokens_seen": {"value": seen, "ref": "tokens_seen"},
                "tokens_per_s": given(evidence, "tokens_per_s"),
            },
        }
    return entries | _wasted(evidence)


def _plan(evidence: Evidence, planned: float) -> dict[str, Any]:
    """Planned tokens from a plan in steps or in FLOPs."""
    if "planned_steps" in evidence.facts:
        batch = {"value": evidence.stages[0]["tokens_per_step"], "source": evidence.axis["batch"]["source"]}
        return {
            "formula": "planned_steps * tokens_per_step",
            "value": planned,
            "inputs": {"planned_steps": given(evidence, "planned_steps"), "tokens_per_step": batch},
        }
    chosen = evidence.chosen
    per_token = {"value": evidence.conventions["flops_per_token"][chosen], "ref": f"{PER_TOKEN}.{chosen}"}
    return {
        "formula": f"planned_flops / {PER_TOKEN}",
        "value": planned,
        "inputs": {"planned_flops": given(evidence, "planned_flops"), PER_TOKEN: per_token},
    }


def _wasted(evidence: Evidence) -> dict[str, dict[str, Any]]:
    """Time of the attempts' superseded steps."""
    entries: dict[str, dict[str, Any]] = {}
    if (lost := superseded_s(evidence)) is None:
        return entries
    seconds = lost_seconds(evidence)
    entries["superseded_s"] = (
        {
            "formula": "sum(seconds_of_attempts)",
            "value": lost["value"],
            "inputs": {"seconds_of_attempts": {"value": seconds, "source": "measured"}},
        }
        if seconds is not None
        else {
            "formula": "superseded_tokens / tokens_per_s",
            "value": lost["value"],
            "inputs": {
                "superseded_tokens": {"value": evidence.axis["superseded_tokens"], "source": "detected"},
                "tokens_per_s": given(evidence, "tokens_per_s"),
            },
        }
    )
    if (hours := superseded_gpu_hours(evidence)) is not None:
        entries["superseded_gpu_hours"] = {
            "formula": "superseded_s * n_gpus / 3600",
            "value": hours,
            "inputs": {
                "superseded_s": {"value": lost["value"], "ref": "superseded_s"},
                "n_gpus": given(evidence, "n_gpus"),
            },
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
                "planned_tokens": _planned(evidence),
            },
        }
    return entries
