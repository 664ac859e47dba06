"""What follows from a model's shape, how sure it is, and that every derivation can be redone from its formula."""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import Any

import pytest
import yaml

from tokenaxis.facts import Fact, FactStore
from tokenaxis.shapes import Shape, check, complete

GPT2 = {
    "n_layers": 12,
    "d_model": 768,
    "n_heads": 12,
    "d_ff": 3072,
    "mlp": "gelu",
    "vocab_size": 50257,
    "tied_embeddings": True,
    "position_embedding": "learned",
    "max_positions": 1024,
    "seq_len": 1024,
    "n_params": 124439808,
}
# published configuration of Qwen3-0.6B: heads wider than the model
QWEN3_06B = {
    "n_layers": 28,
    "d_model": 1024,
    "n_heads": 16,
    "n_kv_heads": 8,
    "head_dim": 128,
    "d_ff": 3072,
    "mlp": "swiglu",
    "vocab_size": 151936,
    "tied_embeddings": True,
    "position_embedding": "rope",
    "seq_len": 4096,
}
# Mixtral 8x7B
MIXTRAL = {
    "n_layers": 32,
    "d_model": 4096,
    "n_heads": 32,
    "n_kv_heads": 8,
    "head_dim": 128,
    "mlp": "swiglu",
    "vocab_size": 32000,
    "tied_embeddings": False,
    "position_embedding": "rope",
    "moe_experts": 8,
    "moe_top_k": 2,
    "moe_d_ff": 14336,
    "n_moe_layers": 32,
    "seq_len": 4096,
    "n_params": 46702792704,
}
# DeepSeek-V2-Lite: latent attention without compressed queries, one dense layer, shared experts
DEEPSEEK_V2_LITE = {
    "n_layers": 27,
    "d_model": 2048,
    "n_heads": 16,
    "head_dim": 192,
    "v_head_dim": 128,
    "qk_rope_head_dim": 64,
    "kv_lora_rank": 512,
    "d_ff": 10944,
    "mlp": "swiglu",
    "vocab_size": 102400,
    "tied_embeddings": False,
    "position_embedding": "rope",
    "moe_experts": 64,
    "moe_top_k": 6,
    "moe_d_ff": 1408,
    "moe_shared_d_ff": 2816,
    "n_moe_layers": 26,
    "seq_len": 4096,
    "n_params": 15706484224,
}


def declared(**facts: Any) -> FactStore:
    return FactStore(Fact(key, value, "declared") for key, value in facts.items())


def shape(**facts: Any) -> Shape:
    return complete(declared(**facts))


def test_what_is_given_is_never_replaced() -> None:
    given = declared(**GPT2, head_dim=80, n_embedding_params=1)
    completed = complete(given)
    assert completed.facts.value("head_dim") == 80
    assert completed.facts.value("n_embedding_params") == 1
    assert "head_dim" not in completed.derivations
    assert "lookup_params" not in given, "the given store stays as it was"


def test_a_derived_value_has_the_weakest_source_of_its_inputs_and_its_formula() -> None:
    store = declared(n_params=100, d_model=4, padded_vocab_size=5, position_embedding="rope", tied_embeddings=False)
    store.offer("vocab_size", 5, "measured")
    store.offer("n_params", 90, "detected")
    completed = complete(store)
    assert completed.facts.get("lookup_params").source == "declared"
    store = FactStore([Fact("n_params", 100, "detected"), Fact("n_embedding_params", 40, "emitted")])
    fact = complete(store).facts.get("n_params_nonembedding")
    assert (fact.value, fact.source) == (60, "detected")
    assert fact.note.startswith("= n_params - n_embedding_params")


def test_a_head_width_from_the_model_width_is_an_assumption() -> None:
    fact = shape(d_model=768, n_heads=12).facts.get("head_dim")
    assert (fact.value, fact.source) == (64, "assumed")
    assert "assumed" in fact.note


@pytest.mark.parametrize(
    ("tied", "positions", "lookup", "tables"),
    [
        (True, "learned", 1024 * 768, (50257 + 1024) * 768),
        (True, "rope", 0, 50257 * 768),
        (False, "learned", (50257 + 1024) * 768, (50257 + 1024) * 768),
        (False, "rope", 50257 * 768, 50257 * 768),
    ],
)
def test_a_tied_token_table_is_a_table_but_not_a_mere_lookup(
    tied: bool, positions: str, lookup: int, tables: int
) -> None:
    facts = shape(**GPT2 | {"tied_embeddings": tied, "position_embedding": positions}).facts
    assert facts.value("lookup_params") == lookup
    assert facts.value("table_params") == tables


def test_an_embedding_count_that_holds_a_tied_table_is_recognised() -> None:
    all_tables, positions = (50257 + 1024) * 768, 1024 * 768
    for stated in (all_tables, positions):  # as trainmeter 0.0.2 counts, as 0.0.7 does
        facts = shape(**GPT2, n_embedding_params=stated).facts
        assert facts.value("lookup_params") == positions
        assert facts.value("table_params") == all_tables
        assert facts.value("n_params_nonembedding") == GPT2["n_params"] - all_tables


def test_without_word_on_tying_the_stated_count_is_taken_as_it_is() -> None:
    facts = shape(n_params=124439808, n_embedding_params=39383040, vocab_size=50257, d_model=768).facts
    assert facts.value("lookup_params") == facts.value("table_params") == 39383040


def test_padding_of_the_vocabulary_counts_in_tables_and_head() -> None:
    facts = shape(**GPT2, padded_vocab_size=50304).facts
    assert facts.value("head_params") == 50304 * 768
    assert shape(**GPT2).facts.value("padded_vocab_size") == 50257


@pytest.mark.parametrize(
    ("windows", "keys", "causal"),
    [
        ({}, 4 * 8, 4 * 4.5),
        # a query sees at most 3 of 8 keys: (1 + 2 + 6 * 3) / 8
        ({"attention_window": 3}, 4 * 3, 4 * 21 / 8),
        ({"attention_window": 99}, 4 * 8, 4 * 4.5),
        ({"attention_window": 3, "n_window_layers": 3}, 3 * 3 + 8, 3 * 21 / 8 + 4.5),
        ({"attention_windows": [3, 3, 3, 0]}, 3 * 3 + 8, 3 * 21 / 8 + 4.5),
    ],
)
def test_windows_limit_the_keys_of_a_query(windows: dict[str, Any], keys: float, causal: float) -> None:
    facts = shape(n_layers=4, seq_len=8, **windows).facts
    assert facts.value("attention_keys") == keys
    assert facts.value("causal_keys") == pytest.approx(causal, rel=1e-12)  # sums of small integers over 8


def test_heads_wider_than_the_model_widen_attention() -> None:
    facts = shape(**QWEN3_06B).facts
    assert facts.value("attention_width") == 2048
    assert facts.value("attention_params") == 28 * 1024 * (2048 + 2 * 1024 + 2048)
    # 0.44B without embeddings, as the model's card says
    assert facts.value("block_matmul_params") == pytest.approx(0.44e9, rel=0.01)


def test_a_token_of_a_mixture_passes_its_top_experts_only() -> None:
    facts = shape(**MIXTRAL).facts
    active = MIXTRAL["n_params"] - facts.value("inactive_params")
    # 12.9B parameters per token, 46.7B in all: Jiang 2024 (arXiv 2401.04088), section 1
    assert active == pytest.approx(12.9e9, rel=0.005)
    assert facts.value("router_params") == 32 * 4096 * 8


def test_latent_attention_shared_experts_and_a_dense_first_layer() -> None:
    facts = shape(**DEEPSEEK_V2_LITE).facts
    assert check(shape(**DEEPSEEK_V2_LITE)) == []
    # 2.4B activated parameters: DeepSeek-V2 (arXiv 2405.04434), appendix B; embeddings of 0.21B are not among them
    assert facts.value("block_matmul_params") + facts.value("head_params") == pytest.approx(2.4e9, rel=0.03)
    assert facts.value("attention_width") == 16 * (192 + 128) / 2


@pytest.mark.parametrize("model", [GPT2, MIXTRAL, DEEPSEEK_V2_LITE], ids=["gpt2", "mixtral", "deepseek"])
def test_a_count_that_does_not_fit_the_shape_is_noticed(model: dict[str, Any]) -> None:
    assert check(shape(**model)) == []
    [wrong] = check(shape(**model | {"n_params": int(model["n_params"] * 1.1)}))
    assert "n_params" in wrong


@pytest.mark.parametrize(
    ("facts", "words"),
    [
        ({"moe_experts": 8, "moe_top_k": 9}, "moe_top_k = 9 is more than moe_experts = 8"),
        ({"n_layers": 2, "n_window_layers": 3}, "n_window_layers"),
        ({"n_params": 10, "n_embedding_params": 20}, "n_embedding_params"),
        ({"vocab_size": 50304, "padded_vocab_size": 50257}, "padded_vocab_size"),
        ({"n_layers": 3, "attention_windows": [1, 2]}, "attention_windows names 2 layers"),
    ],
)
def test_facts_that_cannot_be_true_together_are_named(facts: dict[str, Any], words: str) -> None:
    assert words in " ".join(check(shape(**facts)))


def test_missing_facts_are_named_as_the_user_would_state_them() -> None:
    known = shape(d_model=4)
    assert known.missing("attention_params") == ("n_heads", "n_layers")
    assert known.missing("active_ff") == ("d_ff", "n_layers")
    assert known.missing("n_position_params") == ("position_embedding",)
    assert known.missing("mlp_matrices") == ("mlp",)
    assert known.missing("lookup_params") == ("position_embedding", "tied_embeddings", "vocab_size")
    assert known.missing("d_model") == ()
    assert shape(moe_experts=8).missing("router_params") == ("d_model", "n_layers")
    assert "moe_top_k" in shape(**{k: v for k, v in MIXTRAL.items() if k != "moe_top_k"}).missing("active_ff")


def subsets() -> list[dict[str, Any]]:
    """Shapes of many kinds, each whole and with facts left out."""
    models = [
        GPT2,
        QWEN3_06B,
        MIXTRAL,
        DEEPSEEK_V2_LITE,
        DEEPSEEK_V2_LITE | {"q_lora_rank": 1536},
        GPT2 | {"attention_window": 128, "n_window_layers": 6},
        GPT2 | {"attention_windows": [128, 0] * 6},
        GPT2 | {"attention_window": 128, "v_head_dim": 32, "head_dim": 64, "padded_vocab_size": 50304},
    ]
    return models + [
        {key: value for key, value in model.items() if key not in left_out}
        for model in models
        for left_out in itertools.combinations(("n_params", "n_heads", "d_ff", "vocab_size", "tied_embeddings"), 2)
    ]


@pytest.mark.parametrize("model", subsets(), ids=lambda model: f"{len(model)}facts")
def test_every_derivation_can_be_redone_from_its_formula(model: dict[str, Any]) -> None:
    completed = shape(**model)
    for key, how in completed.derivations.items():
        names = {name: completed.facts.value(name) for name in how.inputs}
        again = eval(how.formula, {"min": min, "sum": sum, "range": range, **names})
        assert completed.facts.value(key) == pytest.approx(again, rel=1e-12), key  # same arithmetic, other order


def test_shipped_shapes_are_sound_and_say_where_they_come_from(root: Path) -> None:
    files = sorted((root / "configs" / "models").glob("*.yaml"))
    assert files
    for file in files:
        document = yaml.safe_load(file.read_text(encoding="utf-8"))
        assert set(document) == {"about", "sources", "facts"}, file.name
        assert document["sources"]
        store = declared(**document["facts"])
        assert not store.rejected, file.name
        assert check(complete(store)) == [], file.name
