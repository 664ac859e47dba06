"""The conventions artifact: what a run spent and wasted, what its targets cost, MFU or the reason why not."""

from __future__ import annotations

import json
import math
from typing import Any

import pytest

from tokenaxis import conventions
from tokenaxis.errors import TokenAxisError
from tokenaxis.facts import Fact, FactStore, gather
from tokenaxis.hardware import Device

MODEL = {"n_params": 119424, "n_embedding_params": 4096, "n_layers": 2, "d_model": 64, "seq_len": 64}
AXIS = {
    "tokens": {"source": "batch", "first": 0.0, "last": 7168.0, "bounds": None},
    "batch": {
        "source": "declared",
        "stages": [
            {"first_step": 0, "last_step": 3, "first_tokens": 0.0, "last_tokens": 1536.0, "tokens_per_step": 512.0},
            {"first_step": 4, "last_step": 8, "first_tokens": 2048.0, "last_tokens": 7168.0, "tokens_per_step": 1024.0},
        ],
    },
    "superseded_tokens": 1024.0,
}
FITS = {
    "targets": [
        {"target": 3.0, "status": "reached", "tokens": 4096.0},
        {"target": 2.0, "status": "unreachable", "tokens": None, "reason": "below the floor"},
        {"target": 1.0, "status": "not_available", "tokens": None, "reason": None},
    ]
}
CARD = Device("card", "maker", ("card",), dense_tflops={"bf16": 100.0}, sources=({"url": "https://x", "says": "y"},))


def facts(**values: Any) -> FactStore:
    return FactStore(Fact(key, value, "declared") for key, value in values.items())


def test_a_run_spent_the_tokens_before_its_last_step_and_that_step() -> None:
    report = conventions.report(facts(**MODEL), AXIS, FITS)
    assert report["tokens_seen"] == 8192
    assert report["flops_spent"]["hf"] == 691_968 * 8192
    assert set(report["flops_spent"]) == set(report["flops_per_token"])


def test_tokens_of_abandoned_attempts_are_waste_and_stand_apart() -> None:
    report = conventions.report(facts(**MODEL), AXIS, FITS)
    assert report["flops_superseded"]["hf"] == 691_968 * 1024


def test_a_target_costs_the_tokens_that_the_fits_give_or_says_why_not() -> None:
    reached, below, unknown = conventions.report(facts(**MODEL), AXIS, FITS)["flops_to_target"]
    assert reached["flops"]["titan"] == 790_272 * 4096
    assert (below["flops"], below["reason"]) == ({}, "below the floor")
    assert (unknown["flops"], unknown["reason"]) == ({}, "the target is not available")


def test_mfu_is_a_range_over_the_conventions_or_the_chosen_one() -> None:
    known = facts(**MODEL, gpu="card", n_gpus=2, tokens_per_s=1e6)
    report = conventions.report(known, AXIS, FITS, None, (CARD,))
    shares = {name: value * 1e6 / (2 * 100e12) for name, value in report["flops_per_token"].items()}
    assert report["mfu"]["range"] == [min(shares.values()), max(shares.values())]
    assert report["mfu"]["convention"] is None
    chosen = conventions.report(known, AXIS, FITS, "hf", (CARD,))
    assert chosen["mfu"]["value"] == shares["hf"]
    assert (chosen["mfu"]["peak"], chosen["mfu"]["peak_kind"], chosen["mfu"]["peak_source"]) == (
        "card",
        "datasheet",
        "https://x",
    )
    assert chosen["convention"] == "hf"


@pytest.mark.parametrize(
    ("known", "reason"),
    [
        ({"gpu": "card", "n_gpus": 2}, "needs tokens_per_s"),
        ({"gpu": "card", "tokens_per_s": 1.0}, "needs n_gpus"),
        ({"n_gpus": 2, "tokens_per_s": 1.0}, "needs gpu or peak_tflops"),
        ({"gpu": "another", "n_gpus": 2, "tokens_per_s": 1.0}, "no data sheet for 'another'"),
    ],
)
def test_without_mfu_there_is_a_reason(known: dict[str, Any], reason: str) -> None:
    report = conventions.report(facts(**MODEL, **known), AXIS, FITS, None, (CARD,))
    assert report["mfu"] is None
    assert reason in report["not_available"]["mfu"]


def test_a_chosen_convention_that_cannot_be_computed_leaves_no_headline() -> None:
    known = facts(**MODEL, gpu="card", n_gpus=2, tokens_per_s=1.0)
    report = conventions.report(known, AXIS, FITS, "megatron", (CARD,))
    assert report["mfu"] is None
    assert "megatron" in report["not_available"]["mfu"]
    assert report["not_available"]["megatron"].startswith("needs d_ff")


def test_one_process_per_device_is_an_assumption_that_shows() -> None:
    report = conventions.report(facts(**MODEL, gpu="card", world_size=2, tokens_per_s=1e6), AXIS, FITS, "hf", (CARD,))
    assert report["facts"]["n_gpus"]["source"] == "assumed"
    assert report["mfu"]["source"] == "assumed"


def test_an_impossible_mfu_is_flagged() -> None:
    report = conventions.report(facts(**MODEL, gpu="card", n_gpus=1, tokens_per_s=1e9), AXIS, FITS, None, (CARD,))
    assert [warning["code"] for warning in report["warnings"]] == ["mfu_above_one"]


def test_a_convention_that_does_not_exist_is_refused_by_name() -> None:
    with pytest.raises(TokenAxisError, match="'mine' is not a FLOP convention"):
        conventions.report(facts(**MODEL), AXIS, FITS, "mine")


def test_a_run_keeps_the_convention_that_trainmeter_was_told() -> None:
    report = conventions.report(facts(**MODEL, convention="megatron"), AXIS, FITS)
    assert report["convention"] == "megatron_simple"
    assert conventions.report(facts(**MODEL, convention="megatron"), AXIS, FITS, "hf")["convention"] == "hf"


def test_conflicts_and_rejected_facts_are_reported_with_both_sides() -> None:
    logged = [
        {"key": "n_layers", "value": 3, "source": "emitted", "note": None},
        {"key": "d_model", "value": "wide", "source": "emitted", "note": None},
        {"key": "seq_len", "value": math.nan, "source": "emitted", "note": None},
    ]
    report = conventions.report(gather({"facts": MODEL}, logged), AXIS, FITS)
    assert [(c["key"], c["kept"]["value"], c["ignored"]["value"]) for c in report["conflicts"]] == [("n_layers", 2, 3)]
    assert [warning["code"] for warning in report["warnings"]] == ["fact_rejected"] * 2
    json.dumps(report, allow_nan=False)


def test_a_parameter_count_that_does_not_fit_the_shape_is_flagged() -> None:
    shape = {"n_layers": 12, "d_model": 768, "n_heads": 12, "d_ff": 3072, "mlp": "gelu", "vocab_size": 50257}
    shape |= {"tied_embeddings": True, "position_embedding": "learned", "seq_len": 1024}
    report = conventions.report(facts(**shape, n_params=163_000_000), AXIS, FITS)
    assert [warning["code"] for warning in report["warnings"]] == ["facts_contradict"]
    assert conventions.report(facts(**shape, n_params=124_439_808), AXIS, FITS)["warnings"] == []


def test_counted_operators_stand_beside_the_conventions_not_among_them() -> None:
    report = conventions.report(facts(**MODEL, counted_flops_per_token=688_128.0), AXIS, FITS)
    assert report["counted"]["against_conventions"]["hf"] == 688_128 / 691_968
    assert "counted" not in report["flops_per_token"]
    assert conventions.report(facts(**MODEL), AXIS, FITS)["counted"] is None


def test_a_run_about_which_nothing_is_known_has_reasons_only() -> None:
    report = conventions.report(FactStore(), AXIS, {})
    assert report["flops_per_token"] == {}
    assert report["flops_spent"] == {}
    assert report["not_available"]["flops_spent"] == "no convention could be computed"
    assert set(conventions.REGISTRY) <= set(report["not_available"])
    empty = conventions.report(facts(**MODEL), {}, {})
    assert empty["tokens_seen"] is None
    assert empty["not_available"]["flops_spent"] == "the token axis has no rows"
    json.dumps(empty, allow_nan=False)


def test_trainmeters_own_runs_give_trainmeters_own_numbers(shared: Any) -> None:
    """The facts of each run directory, through our conventions, against the passport that trainmeter wrote."""
    compared = 0
    for directory in sorted((shared / "logs" / "trainmeter").iterdir()):
        if not (directory / "passport.json").is_file():
            continue
        theirs = json.loads((directory / "passport.json").read_text(encoding="utf-8"))
        logged = []
        for line in (directory / "events.jsonl").read_text(encoding="utf-8").splitlines():
            record = json.loads(line)
            if record.get("kind") == "fact":
                logged.append(record["d"])
        report = conventions.report(gather({}, logged), AXIS, {})
        for name, value in theirs["flops"].get("conventions", {}).items():
            assert report["flops_per_token"][conventions.TRAINMETER_NAMES[name]] == value, (directory.name, name)
            compared += 1
        if "counted" in theirs["flops"]:
            assert report["counted"]["per_token"] == theirs["flops"]["counted"]["per_token"]
        chosen = theirs["flops"].get("per_token", {}).get("convention")
        assert report["convention"] == conventions.TRAINMETER_NAMES.get(chosen)
    assert compared >= 4 * 6, "most of the runs have all four"
