"""Which of two statements about a run is in force, and what becomes of the other."""

from __future__ import annotations

import itertools
import math
from pathlib import Path

import pytest

from tokenaxis.facts import ABSENT, KNOWN, PRECEDENCE, Fact, FactStore, gather, published, rank, same, weakest


@pytest.mark.parametrize(("strong", "weak"), list(itertools.combinations(PRECEDENCE, 2)))
def test_the_stronger_source_wins_whichever_comes_first(strong: str, weak: str) -> None:
    for order in ((strong, weak), (weak, strong)):
        store = FactStore(Fact("n_layers", PRECEDENCE.index(source) + 1, source) for source in order)
        assert store.get("n_layers").source == strong
        [conflict] = store.conflicts
        assert (conflict.kept.source, conflict.ignored.source) == (strong, weak)


def test_the_latest_of_equally_strong_statements_wins_and_the_earlier_is_a_conflict() -> None:
    store = FactStore([Fact("n_params", 10, "detected"), Fact("n_params", 12, "detected", "again")])
    assert store.value("n_params") == 12
    assert [conflict.as_dict() for conflict in store.conflicts] == [
        {
            "key": "n_params",
            "kept": {"value": 12, "source": "detected", "note": "again"},
            "ignored": {"value": 10, "source": "detected", "note": None},
        }
    ]


def test_a_value_that_changes_during_a_run_is_no_conflict_with_itself() -> None:
    store = FactStore(Fact("tokens_per_step", batch, "emitted") for batch in (512, 1024, 2048))
    assert store.value("tokens_per_step") == 2048
    assert store.conflicts == []
    store.offer("tokens_per_step", 4096, "declared")
    [conflict] = store.conflicts
    assert (conflict.kept.value, conflict.ignored.value) == (4096, 2048)


def test_the_same_statement_from_many_ranks_is_no_conflict() -> None:
    store = FactStore(Fact("n_params", 10, "detected") for _ in range(64))
    store.offer("n_params", 10, "declared")
    assert store.conflicts == []


@pytest.mark.parametrize(
    ("one", "other", "equal"),
    [
        (1, 1.0, True),
        (0.1 + 0.2, 0.3, True),
        (0.3, 0.3001, False),
        (1, True, False),
        (True, True, True),
        ("a", "a", True),
        ("1", 1, False),
        ([1, 2], [1, 2], True),
    ],
)
def test_numbers_within_float_noise_are_the_same_fact(one: object, other: object, equal: bool) -> None:
    assert same(one, other) is equal


def test_a_declared_value_that_is_none_of_its_key_never_wins() -> None:
    for value in ("two", math.nan, math.inf, -1, 0, 2.5, True, None, []):
        store = FactStore([Fact("n_layers", 2, "detected"), Fact("n_layers", value, "declared")])
        assert store.value("n_layers") == 2, value
        [(fact, reason)] = store.rejected
        assert fact.source == "declared"
        assert reason


@pytest.mark.parametrize(
    ("key", "value", "good"),
    [
        ("n_layers", 12.0, True),
        ("n_embedding_params", 0, True),
        ("tied_embeddings", 1, False),
        ("tied_embeddings", False, True),
        ("mlp", "", False),
        ("goodput", 1.2, False),
        ("goodput", 0.9, True),
        ("attention_windows", [128, 0], True),
        ("attention_windows", [128, "x"], False),
        ("attention_windows", [1.5], False),
        ("n_layers", 1e31, False),
        ("mlp_matrices", "three", False),
        ("inactive_params", 0, True),
        ("command", "python train.py", True),
        ("command", ["python", 3], False),
        ("time_parts", [{"name": "eval", "s": 1.0}], True),
        ("time_parts", [{"name": "eval", "s": "long"}], False),
        ("time_parts", {"eval": 1}, False),
        ("unheard_of", {"a": [1, None]}, False),
        ("unheard_of", {"a": [1, 2]}, True),
        ("unheard_of", {1, 2}, False),
    ],
)
def test_values_are_checked_against_their_key(key: str, value: object, good: bool) -> None:
    assert (key in FactStore([Fact(key, value, "declared")])) is good


def test_the_weakest_source_counts_and_what_a_model_lacks_does_not() -> None:
    assert weakest(["declared", "assumed", "detected"]) == "assumed"
    assert weakest(["declared", ABSENT]) == "declared"
    assert weakest([ABSENT]) == ABSENT
    assert rank("hearsay") > rank("assumed")
    with pytest.raises(ValueError):
        weakest([])


def test_a_store_survives_a_round_trip_and_a_copy_is_independent() -> None:
    store = FactStore([Fact("n_layers", 2, "detected", "config"), Fact("gpu", "H100", "declared")])
    assert FactStore.from_dict(store.as_dict()).as_dict() == store.as_dict()
    copy = store.copy()
    copy.offer("n_layers", 3, "declared")
    assert store.value("n_layers") == 2
    assert copy.conflicts
    assert not store.conflicts


def test_gather_puts_declarations_above_the_log() -> None:
    declared = {"seq_len": 64, "planned_steps": 100, "facts": {"n_layers": 3}, "columns": {"step": "iter"}}
    logged = [
        {"key": "n_layers", "value": 2, "source": "emitted", "note": None},
        {"key": "seq_len", "value": 32, "source": "detected"},
    ]
    store = gather(declared, logged)
    assert {key: store.value(key) for key in ("n_layers", "seq_len", "planned_steps")} == {
        "n_layers": 3,
        "seq_len": 64,
        "planned_steps": 100,
    }
    assert "columns" not in store
    assert {conflict.kept.key for conflict in store.conflicts} == {"n_layers", "seq_len"}


def test_gather_lets_no_secret_host_or_directory_in() -> None:
    logged = [
        {
            "key": "command",
            "value": ["/home/me/venv/bin/python", "train.py", "--token", "S3cret"],
            "source": "detected",
        },
        {"key": "host", "value": "node-0", "source": "detected"},
        {"key": "cwd", "value": "/home/me", "source": "detected"},
        {"key": "n_layers", "value": 2, "source": "detected", "note": "read /home/me/lm/config.json"},
        {"key": "d_model", "value": 64, "source": ABSENT},
    ]
    store = gather({"facts": {"d_model": 32}}, logged)
    assert store.value("command") == ["python", "train.py", "--token", "[redacted]"]
    assert "host" not in store
    assert "cwd" not in store
    assert store.get("n_layers").note == "read config.json"
    assert store.value("d_model") == 32, "a log cannot outrank a declaration by a source of our own"


def test_every_known_fact_is_documented() -> None:
    assert {known.kind for known in KNOWN.values()} <= {
        *("count", "amount", "number", "quantity", "share", "text", "flag", "counts", "command", "parts")
    }
    assert all(known.about and known.about[0] == known.about[0].strip() for known in KNOWN.values())
    keys = ["n_params", "n_embedding_params", "n_params_nonembedding", "n_layers", "d_model", "d_ff", "n_heads"]
    keys += ["n_kv_heads", "head_dim", "seq_len", "vocab_size", "padded_vocab_size", "tied_embeddings", "mlp"]
    keys += ["attention_window", "world_size", "n_gpus", "gpu", "precision", "tokens_per_step", "planned_tokens"]
    assert set(keys) <= set(KNOWN)


def test_the_table_of_facts_has_a_row_for_each() -> None:
    from tokenaxis.facts.document import as_markdown

    rows = as_markdown().splitlines()[2:]
    assert [row.split("`")[1] for row in rows] == list(KNOWN)
    assert {row.count("|") for row in rows} == {5}, "no cell holds a bare pipe"


def test_the_page_in_docs_is_the_one_that_the_code_prints(root: Path) -> None:
    from tokenaxis.facts.document import page

    stored = (root / "docs" / "facts.md").read_text(encoding="utf-8")
    assert stored == page(), "python -m tokenaxis.facts.document > docs/facts.md"


def test_a_declared_fact_may_say_where_it_comes_from() -> None:
    store = gather({"facts": {"n_layers": {"value": 12, "note": "from config.json"}, "d_model": 768}})
    assert store.get("n_layers") == Fact("n_layers", 12, "declared", "from config.json")
    assert store.get("d_model").note is None


def test_trainmeters_budget_is_our_plan() -> None:
    logged = [
        {"key": "budget_tokens", "value": 6e5, "source": "declared"},
        {"key": "budget_steps", "value": 300, "source": "declared"},
    ]
    store = gather({"planned_steps": 400}, logged)
    assert (store.value("planned_tokens"), store.value("planned_steps")) == (6e5, 400)
    [conflict] = store.conflicts
    assert (conflict.kept.value, conflict.ignored.value) == (400, 300)


def test_publishing_hides_what_is_private_and_twice_is_as_good_as_once() -> None:
    command = {
        "key": "command",
        "value": ["/usr/bin/python3", "train.py", "--api-key", "S3cret"],
        "source": "detected",
        "note": "run in /home/me/lm",
    }
    once = published(command)
    assert once["value"] == ["python3", "train.py", "--api-key", "[redacted]"]
    assert once["note"] == "run in lm"
    assert published(once) == once
    assert published({"key": "hostname", "value": "node-0", "source": "detected"}) is None
