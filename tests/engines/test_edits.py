"""Artifacts that somebody edits, damages or deletes come back; a run that fails leaves the others alone."""

from __future__ import annotations

import json
import os
from collections.abc import Callable

import pytest

from .conftest import Checkout

Copy = Callable[[Checkout], Checkout]


@pytest.mark.parametrize(
    "name",
    [
        "token_axis/a_0.5Mbs.parquet",
        "fits/a_0.5Mbs.json",
        "passports/a_0.5Mbs.md",
        "comparison/targets.csv",
        "runs.json",
    ],
)
def test_an_edited_artifact_is_made_again_and_believed_by_nobody(
    name: str, made_by_snakemake: Checkout, copy_of: Copy
) -> None:
    checkout = copy_of(made_by_snakemake)
    checkout.snakemake()
    content = checkout.artifacts()
    path = checkout.results / name
    changed = path.read_bytes().replace(b"5", b"6", 1)
    path.write_bytes(changed if changed != path.read_bytes() else b"x")
    checkout.snakemake()
    assert checkout.artifacts() == content


def test_an_artifact_whose_time_alone_changed_is_not_made_again(made_by_snakemake: Checkout, copy_of: Copy) -> None:
    checkout = copy_of(made_by_snakemake)
    path = checkout.results / "fits" / "a_0.5Mbs.json"
    os.utime(path, ns=(1_000_000_000, 1_000_000_000))
    checkout.snakemake()
    assert path.stat().st_mtime_ns == 1_000_000_000


@pytest.mark.parametrize("engine", ["snakemake", "dvc"])
def test_a_run_that_trips_a_fault_is_left_out_by_name_and_the_others_go_on(engine: str, checkout: Checkout) -> None:
    laws = checkout.path / "workflow" / "tokenaxis" / "stages" / "fits.py"
    text = laws.read_text(encoding="utf-8")
    broken = (
        text.replace("    params = fit_params(task.work)\n", "    params = fit_params(task.work)\n    _trip(task)\n", 1)
        + '\n\ndef _trip(task):\n    if task.run["id"].startswith("b_"):\n        raise IndexError("planted")\n'
    )
    assert broken.count("_trip(task)") == 2
    laws.write_text(broken, encoding="utf-8")
    ran = checkout.snakemake(check=False) if engine == "snakemake" else checkout.dvc(check=False)
    assert ran.returncode != 0
    refused = json.loads((checkout.results / "fits" / "b_0.25Mbs.refused.json").read_text())
    assert "planted" in refused["reason"] and refused["fault"]
    page = (checkout.results / "comparison" / "index.html").read_text(encoding="utf-8")
    assert "planted" in page
    assert (checkout.results / "passports" / "a_0.5Mbs.json").exists()
    assert not (checkout.results / "passports" / "b_0.25Mbs.json").exists()
    laws.write_text(text, encoding="utf-8")  # mended: the run comes back, and nothing is left of the refusal
    checkout.snakemake()
    assert (checkout.results / "passports" / "b_0.25Mbs.json").exists()
    assert not list(checkout.results.rglob("b_0.25Mbs.refused.json"))


def test_a_comparison_of_an_artifact_that_was_edited_is_made_again_when_it_is_mended(
    made_by_snakemake: Checkout, copy_of: Copy
) -> None:
    checkout = copy_of(made_by_snakemake)
    content = checkout.artifacts()
    fits = checkout.results / "fits" / "a_0.5Mbs.json"
    fits.write_text(fits.read_text().replace('"tokens": ', '"tokens": 1'))
    checkout.run("python", "scripts/comparison.py")  # reads what is there
    assert checkout.artifacts()["comparison/targets.csv"] != content["comparison/targets.csv"]
    checkout.snakemake()
    assert checkout.artifacts() == content
