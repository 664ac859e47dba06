"""How efficiency and cost came about: the part of `explain` that looks at hardware, wall time and price."""

from __future__ import annotations

from typing import Any

from tokenaxis.conventions import counters, utilisation
from tokenaxis.facts import same
from tokenaxis.passport.compute import cost, gpu_hours
from tokenaxis.passport.evidence import PER_TOKEN, Evidence, given
from tokenaxis.passport.training import superseded_gpu_hours


def efficiency(evidence: Evidence) -> dict[str, dict[str, Any]]:
    """MFU, counters, GPU-hours and cost."""
    entries: dict[str, dict[str, Any]] = {}
    mfu, peak = evidence.conventions.get("mfu"), evidence.conventions.get("peak")
    if mfu is not None and peak is not None:
        entries["mfu"] = {
            "formula": utilisation.FORMULA,
            "value": mfu["by_convention"],
            "inputs": {
                PER_TOKEN: {"ref": PER_TOKEN},
                "tokens_per_s": given(evidence, "tokens_per_s"),
                "n_gpus": given(evidence, "n_gpus"),
                "peak_flops": {"value": peak["flops_per_s"], "source": f"{peak['kind']}: {peak['reference']}"},
            },
        }
    entries |= _counters(evidence) | _goodput(evidence)
    hours = gpu_hours(evidence)
    if hours is not None and "gpu_hours" not in evidence.facts:
        entries["gpu_hours"] = {
            "formula": "elapsed_s * n_gpus / 3600",
            "value": hours,
            "inputs": {key: given(evidence, key) for key in ("elapsed_s", "n_gpus")},
        }
    return entries | _cost(evidence)


def _goodput(evidence: Evidence) -> dict[str, dict[str, Any]]:
    """Goodput from where the time went, where it is just that; a log's own figure needs no more than its source."""
    share, parts = evidence.fact("goodput"), evidence.fact("time_parts") or ()
    seconds = {part["name"]: part["s"] for part in parts if part.get("s") is not None}
    whole = sum(seconds.values())
    if share is None or "compute" not in seconds or not whole or not same(seconds["compute"] / whole, share):
        return {}
    source = evidence.facts["time_parts"]["source"]
    return {
        "goodput": {
            "formula": "compute_s / sum(seconds_of_parts)",
            "value": seconds["compute"] / whole,
            "inputs": {
                "compute_s": {"value": seconds["compute"], "source": source},
                "seconds_of_parts": {"value": list(seconds.values()), "source": source},
            },
        }
    }


def _cost(evidence: Evidence) -> dict[str, dict[str, Any]]:
    """Money, where a price is declared."""
    entries: dict[str, dict[str, Any]] = {}
    spent, hours = cost(evidence), gpu_hours(evidence)
    if not spent or hours is None:
        return entries
    price = {"price_per_gpu_hour": given(evidence, "price_per_gpu_hour")}
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
            | {key: given(evidence, key) for key in ("n_gpus", "tokens_per_s")}
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
            "inputs": {key: given(evidence, key) for key in ("tensor_active", "sm_clock_mhz")}
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
                "dram_active": given(evidence, "dram_active"),
                "memory_bytes_per_s": {"value": peak["memory_bytes_per_s"], "source": sheet},
            },
        }
    return entries


def _hours(evidence: Evidence, hours: float) -> dict[str, Any]:
    if "gpu_hours" in evidence.facts:
        return given(evidence, "gpu_hours")
    return {"value": hours, "ref": "gpu_hours"}
