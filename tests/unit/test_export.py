"""What an export takes along: every value once, reported series under their own keys, no price."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest

from tests.unit.test_passport import GPT2, SYSTEM, axis, many, passport
from tokenaxis.errors import TokenAxisError
from tokenaxis.export import wandb
from tokenaxis.export.run import ExportedRun, flat, library, without_price

COLUMNS = {
    "step": np.array([3, 4, 8]),
    "tokens": np.array([1536.0, 2048.0, 6144.0]),
    "tokens_per_step": np.array([512.0, 1024.0, 1024.0]),
    "attempt": np.array([0, 0, 1], dtype=np.int32),
    "train_loss": np.array([5.0, np.nan, 3.0]),
    "val_loss": np.array([np.nan, 4.5, np.nan]),
    "elapsed_s": np.array([1.0, 2.0, 3.0]),
}


def exported(own_names: dict[str, str] | None = None, document: dict[str, Any] | None = None) -> ExportedRun:
    names = {"train_loss": "loss/train", "step": "iter"} if own_names is None else own_names
    return ExportedRun(passport() if document is None else document, "# md", COLUMNS, names)


def test_reported_series_keep_their_own_keys_and_derived_ones_have_a_prefix() -> None:
    assert set(exported().series()) == {
        "loss/train",
        "val_loss",
        "elapsed_s",
        "tokenaxis/tokens",
        "tokenaxis/tokens_per_step",
        "tokenaxis/attempt",
    }


def test_every_loss_has_a_step_of_its_own_and_blanks_are_left_out() -> None:
    rows = list(exported().rows())
    assert [step for step, _ in rows] == [3, 4, 8]
    assert [cells.get("loss/train") for _, cells in rows] == [5.0, None, 3.0]
    assert [cells.get("val_loss") for _, cells in rows] == [None, 4.5, None]
    assert all(value == value for _, cells in rows for value in cells.values())


def test_a_key_that_is_the_tools_own_or_taken_goes_below_the_prefix() -> None:
    series = exported({"train_loss": "loss", "val_loss": "loss", "elapsed_s": "_runtime"}).series()
    assert {"loss", "tokenaxis/val_loss", "tokenaxis/elapsed_s"} <= set(series)
    assert "_runtime" not in series


def test_flops_are_exported_under_the_chosen_convention_only() -> None:
    document = passport(chosen="hf")
    series = exported(document=document).series()
    per_token = document["flops"]["per_token"]["value"]
    assert list(series["tokenaxis/flops.hf"]) == [tokens * per_token for tokens in COLUMNS["tokens"]]
    assert not any(key.startswith("tokenaxis/flops") for key in exported().series())


@pytest.mark.parametrize("name", sorted(many()))
def test_no_price_leaves(name: str) -> None:
    before = many()[name]
    after = without_price(before)
    text = json.dumps(after).lower()
    for word in ("price", "eur", "usd"):
        assert word not in text.replace("neural", ""), word
    kept = set(before) - {"cost", "explain", "not_available", "conflicts", "warnings"}
    assert {key: after[key] for key in kept} == {key: before[key] for key in kept}
    assert {key for key in before["explain"] if not key.startswith("cost")} == set(after["explain"])


def test_a_rejected_or_contested_price_leaves_neither() -> None:
    logged = [
        {"key": "price_per_gpu_hour", "value": -3, "source": "emitted"},
        {"key": "price_per_gpu_hour", "value": 9.75, "source": "emitted"},
    ]
    before = passport({"facts": GPT2 | SYSTEM, "seq_len": 1024}, axis_meta=axis(facts=logged))
    assert "price_per_gpu_hour" in json.dumps(before["conflicts"])
    assert "price_per_gpu_hour" in json.dumps(before["warnings"])
    after = json.dumps(without_price(before))
    assert "price" not in after
    assert "9.75" not in after


def test_config_and_summary_hold_the_passport_without_tables() -> None:
    document = without_price(passport(chosen="hf"))
    config, summary = wandb.config(document), wandb.summary(document)
    assert config["model.n_layers.value"] == 12
    assert config["run.id"] == "a-gpt"
    assert summary["tokenaxis/training.tokens_seen"] == 7168
    assert summary["tokenaxis/targets.3.5.tokens"] == 4.7e9
    assert summary["tokenaxis/efficiency.mfu.value"] == document["efficiency"]["mfu"]["value"]
    assert not any("attempts" in key or "batch_schedule" in key for key in summary)
    assert None not in config.values()
    assert None not in summary.values()


def test_flat_names_targets_by_their_loss_and_keeps_lists() -> None:
    assert dict(flat({"a": {"b": 1, "c": None}, "t": [{"target": 3.5, "x": [1, 2]}, {"y": 2}]})) == {
        "a.b": 1,
        "t.3.5.target": 3.5,
        "t.3.5.x": [1, 2],
        "t.1.y": 2,
    }


def test_a_missing_library_is_named_with_what_to_install() -> None:
    with pytest.raises(TokenAxisError, match="needs the package nothing") as error:
        library("no_such_module_at_all", "nothing")
    assert error.value.remedy == "pip install 'tokenaxis[exports]'"
