"""Peaks: only dense ones, only of cards that are known, each with its page."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from tokenaxis.errors import TokenAxisError
from tokenaxis.facts import Fact, FactStore
from tokenaxis.hardware import Device, catalogue, find, find_peak

H100 = {
    "name": "H100 SXM",
    "vendor": "NVIDIA",
    "match": ["H100 80GB HBM3"],
    "dense_tflops": {"bf16": 989.5, "fp8": 1979},
    "memory": {"gb_s": 3350, "kind": "hbm"},
    "sources": [{"url": "https://example.org/h100", "says": "half of 1,979"}],
}


@pytest.fixture(scope="module")
def shipped(root: Path) -> tuple[Device, ...]:
    files = (root / "configs" / "hardware").glob("*.yaml")
    return catalogue({file.name: yaml.safe_load(file.read_text(encoding="utf-8")) for file in files})


def facts(**values: Any) -> FactStore:
    return FactStore(Fact(key, value, "declared") for key, value in values.items())


@pytest.mark.parametrize(
    ("driver_name", "device", "bf16"),
    [
        ("NVIDIA A100-SXM4-80GB", "A100 SXM 80GB", 312),
        ("NVIDIA H100 80GB HBM3", "H100 SXM", 989.5),
        ("NVIDIA H100 PCIe", "H100 PCIe", 756),
        ("NVIDIA H200", "H200", 989.5),
        ("NVIDIA B200", "B200", 2250),
        ("NVIDIA GB200", "GB200", 2500),
        ("AMD Instinct MI300X", "Instinct MI300X", 1307.4),
        ("TPU v5 lite", "TPU v5e", 197),
        ("TPU v5p", "TPU v5p", 459),
        ("TPU v4", "TPU v4", 275),
        ("TPU v6 lite", "TPU v6e (Trillium)", 918),
    ],
)
def test_a_driver_name_finds_its_data_sheet(
    shipped: tuple[Device, ...], driver_name: str, device: str, bf16: float
) -> None:
    found = find(driver_name, shipped)
    assert found is not None
    assert found.name == device
    assert found.dense_tflops["bf16"] == bf16


@pytest.mark.parametrize(
    "name",
    ["NVIDIA H100 NVL", "NVIDIA GH200 480GB", "NVIDIA H200 NVL", "NVIDIA A100-SXM4-40GB", "NVIDIA L4", "Tesla T4"],
)
def test_a_card_without_its_own_data_sheet_has_no_peak(shipped: tuple[Device, ...], name: str) -> None:
    peak, reason = find_peak(facts(gpu=name), shipped)
    assert peak is None
    assert reason is not None
    assert name in reason


def test_every_shipped_figure_names_its_page(shipped: tuple[Device, ...]) -> None:
    assert len(shipped) >= 12
    for device in shipped:
        assert all(page["url"].startswith("https://") and page["says"] for page in device.sources), device.name
        assert device.checked or device.note, device.name


def test_a_card_without_a_published_dense_figure_says_so(shipped: tuple[Device, ...]) -> None:
    peak, reason = find_peak(facts(gpu="NVIDIA GB10"), shipped)
    assert peak is None
    assert reason is not None
    assert "FP4" in reason


def test_a_declared_peak_beats_the_sheet_and_a_measured_one_does_not() -> None:
    devices = catalogue({"h100.yaml": H100})
    declared, _ = find_peak(facts(gpu="NVIDIA H100 80GB HBM3", peak_tflops=500.0, peak_source="our cluster"), devices)
    assert declared is not None
    assert (declared.flops_per_s, declared.kind, declared.reference) == (5e14, "declared", "our cluster")
    store = facts(gpu="NVIDIA H100 80GB HBM3")
    store.offer("peak_tflops", 700.0, "measured")
    sheet, _ = find_peak(store, devices)
    assert sheet is not None
    assert (sheet.flops_per_s, sheet.kind) == (989.5e12, "datasheet")
    unknown = facts(gpu="a card of my own")
    unknown.offer("peak_tflops", 700.0, "measured", "matmul of 8192")
    measured, _ = find_peak(unknown, devices)
    assert measured is not None
    assert (measured.flops_per_s, measured.kind, measured.reference) == (7e14, "measured", "matmul of 8192")


def test_the_peak_is_that_of_the_precision() -> None:
    devices = catalogue({"h100.yaml": H100})
    for said, peak in (("bf16-mixed", 989.5e12), ("fp8", 1979e12), ("torch.bfloat16", 989.5e12)):
        found, _ = find_peak(facts(gpu="NVIDIA H100 80GB HBM3", precision=said), devices)
        assert found is not None
        assert found.flops_per_s == peak
    for said in ("fp16", "int8"):  # no figure in the file, no such number format
        found, reason = find_peak(facts(gpu="NVIDIA H100 80GB HBM3", precision=said), devices)
        assert found is None
        assert reason is not None
        assert said in reason


def test_without_device_or_peak_the_reason_says_what_is_needed() -> None:
    peak, reason = find_peak(facts(), ())
    assert peak is None
    assert reason is not None
    assert "needs gpu or peak_tflops" in reason


@pytest.mark.parametrize(
    ("change", "word"),
    [
        ({"sparse_tflops": {"bf16": 1979}}, "dense"),
        ({"dense_tflops": {"int4": 1}}, "int4"),
        ({"dense_tflops": {"bf16": "989"}}, "bf16"),
        ({"dense_tflops": {"bf16": 0}}, "bf16"),
        ({"dense_tflops": {}}, "note"),
        ({"sources": []}, "sources"),
        ({"sources": [{"url": "x"}]}, "source"),
        ({"name": None}, "name"),
        ({"colour": "green"}, "colour"),
    ],
)
def test_a_data_file_with_a_fault_is_refused_by_name(change: dict[str, Any], word: str) -> None:
    with pytest.raises(TokenAxisError) as caught:
        catalogue({"my-card.yaml": H100 | change})
    assert "my-card.yaml" in str(caught.value)
    assert word in str(caught.value)
