"""Model FLOPs utilisation (MFU): the share of the hardware's dense peak that the model's own arithmetic takes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tokenaxis.facts import FactStore, weakest
from tokenaxis.hardware import Peak

#: tokens/s x FLOP/token over devices x FLOP/s; PaLM (Chowdhery 2022, arXiv 2204.02311), appendix B
FORMULA = "flops_per_token * tokens_per_s / (n_gpus * peak_flops)"


def mfu(flops_per_token: float, tokens_per_s: float, n_gpus: float, peak_flops: float) -> float:
    """MFU as a fraction. Chowdhery 2022 (arXiv 2204.02311), appendix B.

    Args:
        flops_per_token: FLOPs of one trained token under some convention.
        tokens_per_s: throughput of the whole job.
        n_gpus: devices of the job.
        peak_flops: dense peak of one device in FLOP/s.
    """
    return flops_per_token * tokens_per_s / (n_gpus * peak_flops)


def report_mfu(
    flops_per_token: Mapping[str, float], facts: FactStore, chosen: str | None, peak: Peak | None
) -> tuple[dict[str, Any] | None, str | None]:
    """MFU under the chosen convention, or its range over all; (None, reason) if it cannot be had.

    Args:
        flops_per_token: convention -> FLOPs per token.
        facts: with tokens_per_s and n_gpus.
        chosen: name of the headline convention, or None.
        peak: what one device can do at most, or None.

    Returns:
        ({value | range, convention, by_convention, source, peak, peak_flops, peak_kind, peak_source}, None), or (None,
        reason); the reason is None too where it is the lack of a peak.
    """
    if not flops_per_token:
        return None, "no convention could be computed"
    if chosen is not None and chosen not in flops_per_token:
        return None, f"the chosen convention {chosen} could not be computed"
    if peak is None:
        return None, None
    rate, gpus = facts.get("tokens_per_s"), facts.get("n_gpus")
    if rate is None:
        return None, "needs tokens_per_s"
    if gpus is None:
        return None, "needs n_gpus"
    shares = {name: mfu(flops, rate.value, gpus.value, peak.flops_per_s) for name, flops in flops_per_token.items()}
    headline = {"range": [min(shares.values()), max(shares.values())]} if chosen is None else {"value": shares[chosen]}
    return {
        **headline,
        "convention": chosen,
        "by_convention": shares,
        "source": weakest([rate.source, gpus.source, peak.source]),
        "peak": peak.name,
        "peak_flops": peak.flops_per_s,
        "peak_kind": peak.kind,
        "peak_source": peak.reference,
    }, None


def describe(peak: Peak) -> dict[str, Any]:
    """What an artifact says about a peak."""
    device = peak.device
    return {
        "name": peak.name,
        "flops_per_s": peak.flops_per_s,
        "precision": peak.precision,
        "kind": peak.kind,
        "source": peak.source,
        "reference": peak.reference,
        "bf16_dense_flops_per_s": peak.flops_per_s
        if device is None
        else _scaled(device.dense_tflops.get("bf16"), 1e12),
        "memory_bytes_per_s": None if device is None else _scaled(device.memory_gb_s, 1e9),
        "memory_kind": None if device is None else device.memory_kind,
        "checked": None if device is None else device.checked,
    }


def _scaled(figure: float | None, unit: float) -> float | None:
    return None if figure is None else figure * unit
