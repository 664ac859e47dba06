"""What a per-run stage loads while it works: an import inside a function counts as well, so the scripts really run."""

from __future__ import annotations

import re
import shutil
from collections.abc import Callable

import pytest

from tokenaxis.pipeline.spec import PER_RUN

from .conftest import Checkout

HEAVY = {"pandas", "scipy", "matplotlib", "torch", "plotly", "jsonschema"}


@pytest.mark.parametrize("stage", PER_RUN)
def test_a_stage_that_ran_has_loaded_nothing_heavy(
    stage: str, made_by_snakemake: Checkout, copy_of: Callable[[Checkout], Checkout]
) -> None:
    checkout = copy_of(made_by_snakemake)
    shutil.rmtree(checkout.results / stage)  # so that every run is computed, not found current
    engine = checkout.results / ".engine"
    label = next((engine / "index" / stage).glob("*.json")).stem
    ran = checkout.run(
        "python", "-X", "importtime", f"scripts/{stage}.py",
        "--manifest", str(engine / "shards" / f"{label}.json"), "--params", str(engine / "params" / f"{stage}.json"),
    )  # fmt: skip
    assert re.search(rf"{stage}[^:]*: [1-9]\d* computed", ran.stderr)
    loaded = {line.rsplit("|", 1)[-1].strip().split(".")[0] for line in ran.stderr.splitlines() if "|" in line}
    assert "tokenaxis" in loaded, "the listing of imports was not understood"
    assert not loaded & HEAVY
