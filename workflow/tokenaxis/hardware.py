"""Accelerators: their dense peaks from data sheets, and the peak that a run's MFU is divided by.

The catalogue is configs/hardware/*.yaml, one device a file, each figure with the page it was read on. Only dense peaks
are taken: vendors headline the sparse figure, which is twice as high and which no training run reaches.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from tokenaxis.errors import TokenAxisError
from tokenaxis.facts import FactStore

_KEYS = {
    "name",
    "vendor",
    "match",
    "exclude",
    "dense_tflops",
    "memory",
    "tensor_clock_mhz",
    "note",
    "sources",
    "checked",
}
_PRECISIONS = ("bf16", "fp16", "fp8")
#: names of number formats in logs and configurations -> ours
PRECISIONS = {
    "bf16": "bf16",
    "bfloat16": "bf16",
    "bf16-mixed": "bf16",
    "amp_bf16": "bf16",
    "torch.bfloat16": "bf16",
    "fp16": "fp16",
    "float16": "fp16",
    "16-mixed": "fp16",
    "amp_fp16": "fp16",
    "torch.float16": "fp16",
    "fp8": "fp8",
    "float8": "fp8",
}


@dataclass(frozen=True)
class Device:
    """One accelerator, all figures per device.

    Attributes:
        name: as shown.
        vendor: maker.
        match: lower-case parts of the name that a driver reports; the longest match over all devices wins.
        exclude: lower-case parts that make a matching name another device.
        dense_tflops: precision -> dense peak in TFLOP/s; a precision without a published figure is absent.
        memory_gb_s: bandwidth in GB/s, or None.
        memory_kind: hbm, gddr or unified.
        tensor_clock_mhz: clock at which the peak is stated, or None.
        note: why a figure is missing, or None.
        sources: pages, each {url, says}.
        checked: date at which somebody last compared the figures with the pages, or None.
    """

    name: str
    vendor: str
    match: tuple[str, ...]
    exclude: tuple[str, ...] = ()
    dense_tflops: Mapping[str, float] = field(default_factory=dict)
    memory_gb_s: float | None = None
    memory_kind: str | None = None
    tensor_clock_mhz: float | None = None
    note: str | None = None
    sources: tuple[Mapping[str, str], ...] = ()
    checked: str | None = None


@dataclass(frozen=True)
class Peak:
    """The dense peak of one device that a run is measured against.

    Attributes:
        name: device, or the description that came with a stated peak.
        flops_per_s: in FLOP/s.
        kind: "declared", "datasheet" or "measured"; kinds are never mixed.
        source: the fact source of the device or of the peak.
        reference: the page or file that the figure comes from.
        precision: bf16, fp16 or fp8; None for a stated peak, which does not say.
        device: the catalogue entry, or None.
    """

    name: str
    flops_per_s: float
    kind: str
    source: str
    reference: str
    precision: str | None = None
    device: Device | None = None


def catalogue(documents: Mapping[str, Any]) -> tuple[Device, ...]:
    """The devices of parsed YAML files, by file name.

    Raises:
        TokenAxisError: a file has an unknown key, no page for its figures, or a peak that is not a dense one.
    """
    return tuple(_device(file, documents[file]) for file in sorted(documents))


def _device(file: str, data: Any) -> Device:
    if not isinstance(data, Mapping):
        raise TokenAxisError("not a mapping", file=file)
    if unknown := sorted(set(data) - _KEYS):
        hint = "state dense peaks only, as dense_tflops; half of a sparse figure" if "sparse" in str(unknown) else None
        raise TokenAxisError(
            f"unknown key {unknown[0]!r}", file=file, remedy=hint or f"known: {', '.join(sorted(_KEYS))}"
        )
    for key in ("name", "vendor", "match", "sources"):
        if not data.get(key):
            raise TokenAxisError(f"{key} is missing", file=file)
    peaks = data.get("dense_tflops") or {}
    for precision, value in peaks.items():
        if precision not in _PRECISIONS:
            remedy = f"use {', '.join(_PRECISIONS)}"
            raise TokenAxisError(f"dense_tflops.{precision} is not a known number format", file=file, remedy=remedy)
        if not isinstance(value, int | float) or isinstance(value, bool) or not value > 0:
            raise TokenAxisError(f"dense_tflops.{precision} is not a positive number", file=file)
    if "bf16" not in peaks and not data.get("note"):
        raise TokenAxisError("no dense bf16 peak and no note that says why", file=file, remedy="add `note:`")
    if any(set(page) != {"url", "says"} for page in data["sources"]):
        raise TokenAxisError("a source is not {url, says}", file=file)
    memory = data.get("memory") or {}
    return Device(
        name=data["name"],
        vendor=data["vendor"],
        match=tuple(part.lower() for part in data["match"]),
        exclude=tuple(part.lower() for part in data.get("exclude") or ()),
        dense_tflops=dict(peaks),
        memory_gb_s=memory.get("gb_s"),
        memory_kind=memory.get("kind"),
        tensor_clock_mhz=data.get("tensor_clock_mhz"),
        note=data.get("note"),
        sources=tuple(data["sources"]),
        checked=None if data.get("checked") is None else str(data["checked"]),
    )


def find(name: str, devices: Sequence[Device]) -> Device | None:
    """The device that a driver's name means; the longest match wins. None for a card that is not in the catalogue."""
    lowered = " ".join(name.lower().split())
    matches = [
        (len(part), device)
        for device in devices
        for part in device.match
        if part in lowered and not any(other in lowered for other in device.exclude)
    ]
    return max(matches, key=lambda match: match[0])[1] if matches else None


def find_peak(facts: FactStore, devices: Sequence[Device]) -> tuple[Peak | None, str | None]:
    """The peak of one device: declared > data sheet > measured; (None, reason) if there is none.

    Args:
        facts: `peak_tflops` (its source decides its place) and `peak_source`; `gpu` and `precision`.
        devices: the catalogue.
    """
    stated = facts.get("peak_tflops")
    if stated is not None and stated.source != "measured":
        return _stated(facts, "declared"), None
    from_sheet, reason = _from_sheet(facts, devices)
    if from_sheet is None and stated is not None:
        return _stated(facts, "measured"), None
    return from_sheet, reason


def _stated(facts: FactStore, kind: str) -> Peak:
    stated = facts.get("peak_tflops")
    assert stated is not None
    reference = facts.value("peak_source") or stated.note or f"peak_tflops, {stated.source}"
    name = facts.value("gpu") or facts.value("peak_source") or f"{kind} peak"
    return Peak(name, stated.value * 1e12, kind, stated.source, reference)


def _from_sheet(facts: FactStore, devices: Sequence[Device]) -> tuple[Peak | None, str | None]:
    gpu = facts.get("gpu")
    if gpu is None:
        return None, "the device is unknown, so there is no dense peak to divide by: needs gpu or peak_tflops"
    device = find(gpu.value, devices)
    if device is None:
        return None, f"no data sheet for {gpu.value!r}: declare peak_tflops, or add the card to configs/hardware"
    said = facts.value("precision")
    precision = "bf16" if said is None else PRECISIONS.get(said.lower())
    if precision is None:
        return None, f"precision {said!r} is none of {', '.join(_PRECISIONS)}, so there is no peak to compare with"
    tflops = device.dense_tflops.get(precision)
    if tflops is None:
        return None, device.note or f"no dense {precision} peak of {device.name} is in its data file"
    return (
        Peak(
            device.name,
            tflops * 1e12,
            "datasheet",
            gpu.source,
            device.sources[0]["url"],
            precision,
            device,
        ),
        None,
    )
