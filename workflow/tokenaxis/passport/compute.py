"""What the run computed and on what: FLOPs, efficiency, hardware, software, time, cost."""

from __future__ import annotations

from typing import Any

from tokenaxis.conventions import TRAINMETER_NAMES
from tokenaxis.passport.evidence import Evidence, present, sourced
from tokenaxis.passport.training import planned_tokens, superseded_gpu_hours

#: facts that are versions of software
SOFTWARE = ("python", "torch", "cuda", "trainmeter")


def flops(evidence: Evidence) -> dict[str, Any]:
    """The `flops` section.

    `conventions` holds trainmeter's four under trainmeter's names, `by_convention` all of ours. Trainmeter's "megatron"
    is our megatron_simple, so it is left out where our own `megatron` is the headline: two numbers of one name.
    """
    report, chosen = evidence.conventions, evidence.chosen
    per_token = report.get("flops_per_token") or {}
    section: dict[str, Any] = {
        "per_token": _per_token(evidence),
        "conventions": {
            name: per_token[ours]
            for name, ours in TRAINMETER_NAMES.items()
            if ours in per_token and not (name == chosen != ours)
        },
        "by_convention": {
            name: present(
                {
                    "flops_per_token": value,
                    "formula": report["formulas"][name],
                    "source": report["sources"][name],
                    "spent": report["flops_spent"].get(name),
                    "superseded": report["flops_superseded"].get(name),
                }
            )
            for name, value in per_token.items()
        },
        "counted": _counted(evidence),
    }
    if chosen is not None:
        section |= {
            "flops_spent": _total(report["flops_spent"].get(chosen), chosen),
            "flops_required": _total(_times(per_token[chosen], planned_tokens(evidence)), chosen),
        }
    elif report.get("flops_spent"):
        section["flops_spent_range"] = _range(report["flops_spent"])
    return present(section)


def efficiency(evidence: Evidence) -> dict[str, Any]:
    """The `efficiency` section."""
    counters = evidence.conventions.get("counters") or {}
    return present({"mfu": evidence.conventions.get("mfu"), "goodput": evidence.fact("goodput"), **counters})


def hardware(evidence: Evidence) -> dict[str, Any]:
    """The `hardware` section; `peak` has trainmeter's keys too."""
    name, peak = evidence.fact("gpu"), evidence.conventions.get("peak")
    return present(
        {
            "n_gpus": sourced(evidence.facts.get("n_gpus")),
            "devices": None if name is None else [{"name": name}],
            "precision": sourced(evidence.facts.get("precision")),
            "peak": None
            if peak is None
            else {
                "name": peak["name"],
                "dense_flops": peak["flops_per_s"],
                "precision": peak["precision"],
                "bf16_dense_flops": peak["bf16_dense_flops_per_s"],
                "kind": peak["kind"],
                "source": peak["reference"],
                "memory_bytes_per_s": peak["memory_bytes_per_s"],
                "memory_kind": peak["memory_kind"],
                "checked": peak["checked"],
            },
        }
    )


def topology(evidence: Evidence) -> dict[str, Any]:
    """The `topology` section."""
    degrees = {key: sourced(evidence.facts.get(key)) for key in ("dp", "tp", "pp")}
    return present({"world_size": evidence.fact("world_size"), **degrees})


def versions(evidence: Evidence) -> dict[str, str]:
    """The `versions` section: software that trained, as far as the log says."""
    return present({key: evidence.fact(key) for key in SOFTWARE})


def time(evidence: Evidence) -> dict[str, Any]:
    """The `time` section: wall time and where it went, as far as the log says."""
    return present(
        {
            "elapsed_s": sourced(evidence.facts.get("elapsed_s")),
            "parts": evidence.fact("time_parts"),
            "goodput": evidence.fact("goodput"),
        }
    )


def gpu_hours(evidence: Evidence) -> float | None:
    """Devices times wall time, all attempts; a stated figure wins."""
    if (stated := evidence.fact("gpu_hours")) is not None:
        return float(stated)
    elapsed, gpus = evidence.fact("elapsed_s"), evidence.fact("n_gpus")
    return None if elapsed is None or gpus is None else float(elapsed * gpus) / 3600


def cost(evidence: Evidence) -> dict[str, Any]:
    """The `cost` section, only from a declared price with its currency: in total, the thrown-away part of it, per
    million tokens that count, and to each target at the whole run's pace."""
    price, currency = evidence.facts.get("price_per_gpu_hour"), evidence.fact("price_currency")
    hours = gpu_hours(evidence)
    if price is None or price["source"] != "declared" or currency is None or hours is None:
        return {}
    seen, wasted = evidence.conventions.get("tokens_seen"), superseded_gpu_hours(evidence)
    total = price["value"] * hours
    return present(
        {
            "currency": currency,
            "price_per_gpu_hour": price["value"],
            "total": total,
            "superseded": None if wasted is None else price["value"] * wasted,
            "per_million_tokens": total / seen * 1e6 if seen else None,
            "to_target": _cost_to_targets(evidence, price["value"]) or None,
        }
    )


def _cost_to_targets(evidence: Evidence, price: float) -> list[dict[str, Any]]:
    rate, gpus = evidence.fact("tokens_per_s"), evidence.fact("n_gpus")
    if rate is None or gpus is None:
        return []
    return [
        {"target": target["target"], "amount": price * gpus * target["tokens"] / rate / 3600}
        for target in evidence.fits.get("targets") or ()
        if target.get("tokens") is not None
    ]


def _per_token(evidence: Evidence) -> dict[str, Any] | None:
    report, chosen = evidence.conventions, evidence.chosen
    values = report.get("flops_per_token") or {}
    if not values:
        return None
    if chosen is None:
        return {"range": _range(values), "convention": None}
    return {
        "value": values[chosen],
        "convention": chosen,
        "source": report["sources"][chosen],
        "convention_source": report.get("convention_source"),
    }


def _counted(evidence: Evidence) -> dict[str, Any] | None:
    counted = evidence.conventions.get("counted")
    if counted is None:
        return None
    return {
        "per_token": counted["per_token"],
        "convention": "counted",
        "source": counted["source"],
        "note": counted.get("note") or "operators as executed: recompute included, not model FLOPs",
        "against_conventions": counted["against_conventions"],
    }


def _total(value: float | None, convention: str) -> dict[str, Any] | None:
    return None if value is None else {"value": value, "convention": convention}


def _times(flops_per_token: float, tokens: float | None) -> float | None:
    return None if tokens is None else flops_per_token * tokens


def _range(values: dict[str, float]) -> list[float]:
    return [min(values.values()), max(values.values())]
