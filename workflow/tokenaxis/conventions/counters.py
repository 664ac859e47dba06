"""What hardware counters say, beside what the model's arithmetic says: OFU, its gap to MFU, arithmetic intensity."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tokenaxis.facts import FactStore
from tokenaxis.hardware import Peak

OFU = "tensor_active * min(sm_clock_mhz, clock_mhz) / clock_mhz"
GAP = "ofu - mfu"
INTENSITY = "mfu * peak_flops / (dram_active * memory_bytes_per_s)"


def report_counters(
    facts: FactStore, peak: Peak | None, mfu: Mapping[str, Any] | None
) -> tuple[dict[str, Any], dict[str, str]]:
    """({ofu, mfu_ofu_gap, arithmetic_intensity} as far as they can be had, key -> reason for the others).

    OFU (arXiv 2605.20799) is the busy share of the tensor pipe scaled by the clock; it counts recomputation and
    padding, which MFU leaves out. It compares with MFU only where it is scaled to the clock of the peak.
    """
    found: dict[str, Any] = {}
    reasons: dict[str, str] = {}
    if (ofu := _ofu(facts, peak)) is None:
        reasons["ofu"] = "needs tensor_active, sm_clock_mhz, and the card's tensor clock or max_sm_clock_mhz"
    else:
        found["ofu"] = ofu
    share = (mfu or {}).get("value")
    if share is None:
        reasons["mfu_ofu_gap"] = reasons["arithmetic_intensity"] = "needs MFU under a chosen convention"
        return found, reasons
    if ofu is None or ofu["scaled_to"] != "tensor_clock":
        reasons["mfu_ofu_gap"] = "needs OFU scaled to the clock of the data sheet's peak"
    else:
        found["mfu_ofu_gap"] = ofu["value"] - share
    memory = None if peak is None or peak.device is None else peak.device.memory_gb_s
    active = facts.value("dram_active")
    if active is None or memory is None or peak is None:
        reasons["arithmetic_intensity"] = "needs dram_active, and the card's memory bandwidth"
    else:
        value = share * peak.flops_per_s / (active * memory * 1e9)
        found["arithmetic_intensity"] = {"value": value, "note": "model FLOPs per byte of memory traffic"}
    return found, reasons


def _ofu(facts: FactStore, peak: Peak | None) -> dict[str, Any] | None:
    active, clock = facts.value("tensor_active"), facts.value("sm_clock_mhz")
    stated = None if peak is None or peak.device is None else peak.device.tensor_clock_mhz
    reference = stated or facts.value("max_sm_clock_mhz")
    if active is None or clock is None or reference is None:
        return None
    return {
        "value": active * min(clock, reference) / reference,
        "scaled_to": "tensor_clock" if stated else "max_sm_clock",
        "clock_mhz": reference,
    }
