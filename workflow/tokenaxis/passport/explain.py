"""How each number came about: formula, inputs with their values and sources. Enough to redo it by hand.

Formulas are arithmetic in Python's notation and in the names of their inputs. An input with a `ref` is explained under
that key. Where a quantity has one value per convention, `value` is a mapping, and so is the input that it refers to.
"""

from __future__ import annotations

from typing import Any

from tokenaxis.conventions import counters, utilisation
from tokenaxis.passport.compute import cost, gpu_hours
from tokenaxis.passport.evidence import Evidence
from tokenaxis.passport.training import (
    eta_s,
    lost_seconds,
    planned_tokens,
    steps_done,
    superseded_gpu_hours,
    superseded_s,
)

PER_TOKEN = "flops_per_token"


def explain(evidence: Evidence) -> dict[str, dict[str, Any]]:
    """The `explain` section: key -> {formula, value, inputs: {name: {value, source[, ref]}}}."""
    return _derived(evidence) | _conventions(evidence) | _training(evidence) | _totals(evidence) | _efficiency(evidence)


def _input(evidence: Evidence, key: str) -> dict[str, Any]:
    fact = evidence.facts[key]
    entry = {"value": fact["value"], "source": fact["source"]}
    return entry | {"ref": key} if key in (evidence.conventions.get("derived") or {}) else entry


def _planned(evidence: Evidence) -> dict[str, Any]:
    if "planned_tokens" in evidence.facts:
        return _input(evidence, "planned_tokens")
    return {"value": planned_tokens(evidence), "ref": "planned_tokens"}


def _hours(evidence: Evidence, hours: float) -> dict[str, Any]:
    if "gpu_hours" in evidence.facts:
        return _input(evidence, "gpu_hours")
    return {"value": hours, "ref": "gpu_hours"}


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
                "tokens_per_s": _input(evidence, "tokens_per_s"),
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
            "inputs": {"planned_steps": _input(evidence, "planned_steps"), "tokens_per_step": batch},
        }
    chosen = evidence.chosen
    per_token = {"value": evidence.conventions["flops_per_token"][chosen], "ref": f"{PER_TOKEN}.{chosen}"}
    return {
        "formula": f"planned_flops / {PER_TOKEN}",
        "value": planned,
        "inputs": {"planned_flops": _input(evidence, "planned_flops"), PER_TOKEN: per_token},
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
                "tokens_per_s": _input(evidence, "tokens_per_s"),
            },
        }
    )
    if (hours := superseded_gpu_hours(evidence)) is not None:
        entries["superseded_gpu_hours"] = {
            "formula": "superseded_s * n_gpus / 3600",
            "value": hours,
            "inputs": {
                "superseded_s": {"value": lost["value"], "ref": "superseded_s"},
                "n_gpus": _input(evidence, "n_gpus"),
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
    entries |= _counters(evidence)
    hours = gpu_hours(evidence)
    if hours is not None and "gpu_hours" not in evidence.facts:
        entries["gpu_hours"] = {
            "formula": "elapsed_s * n_gpus / 3600",
            "value": hours,
            "inputs": {key: _input(evidence, key) for key in ("elapsed_s", "n_gpus")},
        }
    return entries | _cost(evidence)


def _cost(evidence: Evidence) -> dict[str, dict[str, Any]]:
    """Money, where a price is declared."""
    entries: dict[str, dict[str, Any]] = {}
    spent, hours = cost(evidence), gpu_hours(evidence)
    if not spent or hours is None:
        return entries
    price = {"price_per_gpu_hour": _input(evidence, "price_per_gpu_hour")}
    entries["cost.total"] = {
        "formula": "price_per_gpu_hour * gpu_hours",
        "value": spent["total"],
        "inputs": price | {"gpu_hours": _hours(evidence, hours)},
    }
    if "superseded" in spent:
        wasted = {"value": superseded_gpu_hours(evidence), "ref": "superseded_gpu_hours"}
        entries["cost.superseded"] = {
            "formula": "price_per_gpu_hour * superseded_gpu_hours",
            "value": spent["superseded"],
            "inputs": price | {"superseded_gpu_hours": wasted},
        }
    if "per_million_tokens" in spent:
        entries["cost.per_million_tokens"] = {
            "formula": "total / tokens_seen * 1e6",
            "value": spent["per_million_tokens"],
            "inputs": {
                "total": {"value": spent["total"], "ref": "cost.total"},
                "tokens_seen": {"value": evidence.conventions["tokens_seen"], "ref": "tokens_seen"},
            },
        }
    for outcome in spent.get("to_target", ()):
        tokens = next(t["tokens"] for t in evidence.fits["targets"] if t["target"] == outcome["target"])
        entries[f"cost.to_target.{outcome['target']}"] = {
            "formula": "price_per_gpu_hour * n_gpus * tokens_to_target / tokens_per_s / 3600",
            "value": outcome["amount"],
            "inputs": price
            | {key: _input(evidence, key) for key in ("n_gpus", "tokens_per_s")}
            | {"tokens_to_target": {"value": tokens, "source": "fits"}},
        }
    return entries


def _counters(evidence: Evidence) -> dict[str, dict[str, Any]]:
    entries: dict[str, dict[str, Any]] = {}
    found, peak = evidence.conventions.get("counters") or {}, evidence.conventions.get("peak") or {}
    mfu = evidence.conventions.get("mfu") or {}
    share = mfu.get("value")
    if "ofu" in found:
        entries["ofu"] = {
            "formula": counters.OFU,
            "value": found["ofu"]["value"],
            "inputs": {key: _input(evidence, key) for key in ("tensor_active", "sm_clock_mhz")}
            | {"clock_mhz": {"value": found["ofu"]["clock_mhz"], "source": found["ofu"]["scaled_to"]}},
        }
    if "mfu_ofu_gap" in found:
        entries["mfu_ofu_gap"] = {
            "formula": counters.GAP,
            "value": found["mfu_ofu_gap"],
            "inputs": {
                "ofu": {"value": found["ofu"]["value"], "ref": "ofu"},
                "mfu": {"value": share, "source": mfu["source"]},
            },
        }
    if "arithmetic_intensity" in found:
        sheet = f"{peak['kind']}: {peak['reference']}"
        entries["arithmetic_intensity"] = {
            "formula": counters.INTENSITY,
            "value": found["arithmetic_intensity"]["value"],
            "inputs": {
                "mfu": {"value": share, "source": mfu["source"]},
                "peak_flops": {"value": peak["flops_per_s"], "source": sheet},
                "dram_active": _input(evidence, "dram_active"),
                "memory_bytes_per_s": {"value": peak["memory_bytes_per_s"], "source": sheet},
            },
        }
    return entries
