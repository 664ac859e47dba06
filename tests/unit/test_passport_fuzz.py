"""Whatever a log or a user claims: artifacts come out, valid, finite, or the claim is set aside with a reason."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

from tests.unit.test_passport import CARD, COUNTERS, GPT2, LINEAGE, STABILITY, SYSTEM, axis, fits, run
from tokenaxis import conventions, store
from tokenaxis.facts import KNOWN, PRECEDENCE, gather
from tokenaxis.passport import build, to_markdown

NUMBERS = st.one_of(
    st.integers(-3, 10**6), st.floats(allow_nan=True, allow_infinity=True), st.sampled_from([0, 1, 2, 10**40, 1e300])
)
VALUES = st.one_of(
    NUMBERS,
    st.text(max_size=12),
    st.booleans(),
    st.none(),
    st.lists(NUMBERS, max_size=3),
    st.sampled_from(["bf16", "card"]),
)
CLAIMS = st.lists(
    st.fixed_dictionaries(
        {
            "key": st.sampled_from([*KNOWN, "host", "something else"]),
            "value": VALUES,
            "source": st.sampled_from([*PRECEDENCE, "absent", "hearsay"]),
            "note": st.one_of(st.none(), st.text(max_size=20)),
        }
    ),
    max_size=8,
)
WHOLE = GPT2 | SYSTEM | COUNTERS | {"seq_len": 1024, "planned_tokens": 1e6}


SCHEMA_FILE = Path(__file__).resolve().parents[2] / "workflow" / "schemas" / "passport.schema.json"
SCHEMA = Draft202012Validator(json.loads(SCHEMA_FILE.read_text(encoding="utf-8")))


@settings(max_examples=300, deadline=None)
@given(
    known=st.sets(st.sampled_from(sorted(WHOLE))),
    claims=CLAIMS,
    chosen=st.sampled_from([None, *conventions.REGISTRY]),
)
def test_no_claim_breaks_a_passport(known: set[str], claims: list[dict[str, Any]], chosen: str | None) -> None:
    meta, fitted = axis(facts=claims), fits()
    declared = {"facts": {key: WHOLE[key] for key in known}}
    report = conventions.report(gather(declared, meta["facts"]), meta, fitted, chosen, (CARD,))
    store.to_json(report)
    passport = build(run(**declared), meta, fitted, STABILITY, report, LINEAGE)
    problems = [
        f"{'/'.join(map(str, e.absolute_path))}: {e.message[:200]}"
        for e in SCHEMA.iter_errors(json.loads(store.to_json(passport)))
    ]
    assert problems == []
    assert to_markdown(passport, 4).endswith("</details>\n")


# each broke `tm passport` of trainmeter 0.0.7, or would have
@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("tokens_per_s", float("nan")),
        ("world_size", "x"),
        ("planned_tokens", 0),
        ("n_layers", "two"),
        ("gpu", "cuda:0"),
        ("gpu", "\udcff"),
        ("n_layers", 10**400),
        ("tokens_per_s", 0),
        ("n_gpus", -1),
        ("dram_active", 0),
    ],
)
def test_one_bad_fact_costs_that_fact_only(key: str, value: Any) -> None:
    meta = axis(facts=[{"key": key, "value": value, "source": "emitted", "note": None}])
    report = conventions.report(gather({"facts": GPT2, "seq_len": 1024}, meta["facts"]), meta, fits(), None, (CARD,))
    passport = build(run(), meta, fits(), STABILITY, report, LINEAGE)
    assert passport["flops"]["by_convention"]["hf"]["flops_per_token"] > 0
    to_markdown(passport, 4).encode("utf-8")
    store.to_json(passport)
