"""A prediction far beyond the data that nothing bounds from above is no answer."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tokenaxis import params as parameters
from tokenaxis.series import LossSeries
from tokenaxis.targets import answer

TARGETS = [2.9, 2.7, 2.6, 2.5, 2.45, 2.4, 2.35, 2.3, 2.25, 2.2]


@pytest.fixture
def section(root: Path) -> dict[str, Any]:
    return parameters.load_yaml(root / "params.yaml")["fits"] | {"targets": TARGETS}


def noisy(seed: int) -> LossSeries:
    """60 rows of the law 2 + 0.6 (T/1e9)^-0.35 up to 60M tokens, noise .05: too little to know where it ends."""
    step = np.arange(1.0, 61.0)
    tokens = step * 1e6
    loss = 2 + 0.6 * (tokens / 1e9) ** -0.35 + 0.05 * np.random.default_rng(seed).standard_normal(60)
    return LossSeries("train_loss", step, tokens, loss, np.full(60, 1e6), lr=np.full(60, 1e-3), warmup_end_step=0)


def test_an_open_prediction_beyond_the_limit_is_not_given_and_says_why(section: dict[str, Any]) -> None:
    found = [entry for seed in range(10) for entry in answer(noisy(seed), section).as_dict()["targets"]]
    far = [entry for entry in found if entry["status"] == "predicted" and entry["horizon"] > 30]
    assert all(entry["interval"][1] is not None for entry in far)
    unknown = [entry for entry in found if "not_identified" in entry["warnings"]]
    assert unknown, "ten noisy stubs and none too open: the planted runs no longer test anything"
    for entry in unknown:
        assert entry["status"] == "not_available"
        assert entry["tokens"] is None and entry["interval"] is None
        assert "bounds nothing from above" in entry["reason"]


def test_the_limit_is_a_parameter(section: dict[str, Any]) -> None:
    wide = section | {"extrapolation_limit": 1e30}
    found = [entry for seed in range(10) for entry in answer(noisy(seed), wide).as_dict()["targets"]]
    assert not [entry for entry in found if "not_identified" in entry["warnings"]]
