"""FLOPs per token under every convention: published numbers, closed forms, and refusals that name what is missing."""

from __future__ import annotations

import csv
from pathlib import Path
from typing import Any

import pytest
import yaml

from tokenaxis import conventions
from tokenaxis.errors import TokenAxisError
from tokenaxis.facts import Fact, FactStore
from tokenaxis.shapes import complete

# nanoGPT transformer_sizing.ipynb: GPT-2 124M without biases
GPT2 = {
    "n_params": 124337664,
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
}
# the 1.04B model of trainmeter's README, known by five numbers only
BILLION = {"n_params": 1040e6, "n_embedding_params": 67.6e6, "n_layers": 18, "d_model": 2048, "seq_len": 1024}
QWEN3_06B = {
    "n_params": 596049920,
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
MIXTRAL = {
    "n_params": 46702792704,
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
}


def declared(**facts: Any) -> FactStore:
    return FactStore(Fact(key, value, "declared") for key, value in facts.items())


def flops(**facts: Any) -> dict[str, float]:
    return conventions.compute(declared(**facts))["flops_per_token"]


def test_gpt2_124m_costs_what_palm_and_nanogpt_publish() -> None:
    per_token = flops(**GPT2)
    assert per_token["nanogpt"] * 1024 == 875_062_886_400
    assert per_token["nanochat"] * 1024 == 874_944_921_600


@pytest.mark.parametrize(
    ("name", "gflops"), [("hf", 5.83), ("megatron_simple", 6.06), ("titan", 6.28), ("all_params", 6.69)]
)
def test_the_billion_parameter_model_costs_what_trainmeter_publishes(name: str, gflops: float) -> None:
    # N and E are known to three digits only, so 0.01 GFLOP in 6
    assert flops(**BILLION)[name] / 1e9 == pytest.approx(gflops, abs=0.01)


@pytest.mark.parametrize("size", ["190m", "370m", "760m"])
def test_the_olmo_ladder_costs_what_its_own_logs_say(size: str, root: Path, shared: Path) -> None:
    facts = yaml.safe_load((root / "configs" / "models" / f"olmo-ladder-{size}.yaml").read_text(encoding="utf-8"))
    with (shared / "logs" / "olmo-ladder" / f"{size.upper()}-1xC.csv").open(encoding="utf-8") as file:
        row = next(csv.DictReader(file))
    logged = float(row["throughput/total_training_Gflops"]) * 1e9 / float(row["throughput/total_tokens"])
    assert flops(**facts["facts"])["olmo_ladder"] == pytest.approx(logged, rel=1e-12)  # exact up to the log's decimals


def test_the_olmo_ladder_190m_costs_1_903_gflop_per_token(root: Path) -> None:
    facts = yaml.safe_load((root / "configs" / "models" / "olmo-ladder-190m.yaml").read_text(encoding="utf-8"))["facts"]
    assert flops(**facts)["olmo_ladder"] == 1_903_391_232
    assert 6 * (facts["n_params"] - 100352 * 768) == 1_142_125_056  # the 1.142e9 of 6N


def test_trainmeters_four_names_give_trainmeters_four_numbers() -> None:
    n, e, layers, d, s = 1040e6, 67.6e6, 18, 2048, 1024
    seed = {
        "titan": 6 * (n - e) + 12 * layers * d * s,
        "megatron": 6 * (n - e) + 6 * layers * d * s,
        "hf": 6 * (n - e),
        "all_params": 6 * n + 12 * layers * d * s,
    }
    per_token = flops(**BILLION)
    assert {theirs: per_token[ours] for theirs, ours in conventions.TRAINMETER_NAMES.items()} == seed


def test_megatron_counts_head_by_head() -> None:
    """Qwen3-0.6B by hand: q = 16 x 128, kv = 8 x 128, SwiGLU, causal attention halved."""
    d, q, kv, ff, vocab, s, layers = 1024, 2048, 1024, 3072, 151936, 4096, 28
    by_hand = 6 * layers * (d * (q + 2 * kv) + q * d) + 6 * layers * q * s + 6 * d * ff * 3 * layers + 6 * d * vocab
    assert flops(**QWEN3_06B)["megatron"] == by_hand


def test_wide_heads_double_the_attention_term_where_the_convention_sees_them() -> None:
    narrow = {key: value for key, value in QWEN3_06B.items() if key != "head_dim"}
    attention = 12 * 28 * 1024 * 4096
    for name in ("titan", "nanogpt"):
        assert flops(**QWEN3_06B)[name] - flops(**narrow)[name] == attention
    assert flops(**QWEN3_06B)["all_params"] == flops(**narrow)["all_params"], "12Lds is what the seed says"


def test_a_tied_head_is_counted_by_titan_and_dropped_by_hf() -> None:
    tied, untied = flops(**GPT2), flops(**GPT2 | {"tied_embeddings": False, "n_params": 124337664 + 50257 * 768})
    assert tied["titan"] == untied["titan"]
    assert tied["hf"] == untied["hf"] - 6 * 50257 * 768


def test_a_mixture_pays_for_the_experts_that_a_token_passes() -> None:
    per_token = flops(**MIXTRAL)
    inactive = 32 * 6 * 3 * 4096 * 14336
    attention = 12 * 32 * 4096 * 4096
    tables = 32000 * 4096
    assert per_token["titan"] == 6 * (MIXTRAL["n_params"] - tables - inactive) + attention
    assert per_token["hf"] == 6 * (MIXTRAL["n_params"] - tables), "the Hugging Face Trainer counts every expert"
    router = 6 * 32 * 4096 * 8
    dense = flops(**{k: v for k, v in MIXTRAL.items() if not k.startswith(("moe", "n_moe"))}, d_ff=2 * 14336)
    assert per_token["megatron"] == dense["megatron"], "Megatron-LM leaves the router out"
    assert per_token["olmo"] == dense["olmo"] + router
    assert per_token["levanter"] == dense["levanter"] + router


def test_shared_experts_and_dense_layers_count_beside_the_routed_ones() -> None:
    mixed = flops(**MIXTRAL | {"n_moe_layers": 30, "d_ff": 10000, "moe_shared_d_ff": 480})
    width = 2 * 10000 + 30 * (2 * 14336 + 480)
    plain = flops(**{k: v for k, v in MIXTRAL.items() if not k.startswith(("moe", "n_moe"))}, d_ff=width // 32)
    assert width % 32 == 0
    assert mixed["megatron"] == pytest.approx(plain["megatron"], rel=1e-12)  # the same products, summed otherwise


def test_a_window_limits_attention_where_the_convention_knows_windows() -> None:
    full, windowed = flops(**GPT2), flops(**GPT2, attention_window=256, n_window_layers=6)
    saved = 12 * 768 * 6 * (1024 - 256)
    for name in ("titan", "nanochat", "olmo"):
        assert full[name] - windowed[name] == saved
    for name in ("megatron", "nanogpt", "all_params", "chinchilla", "levanter"):
        assert full[name] == windowed[name]


def test_logits_over_a_padded_vocabulary_are_megatrons() -> None:
    padded = flops(**GPT2, padded_vocab_size=50304)
    assert padded["megatron"] - flops(**GPT2)["megatron"] == 6 * 768 * 47
    assert padded["chinchilla"] == flops(**GPT2)["chinchilla"]


def test_chinchilla_follows_appendix_f_term_by_term() -> None:
    s, v, d, layers, heads, e, ff = 1024, 50257, 768, 12, 12, 64, 3072
    embedding, logits = 2 * s * v * d, 2 * s * d * v
    qkv, scores, softmax = 2 * 3 * s * d * (e * heads), 2 * s * s * (e * heads), 3 * heads * s * s
    reduction, projection, dense = 2 * s * s * (e * heads), 2 * s * (e * heads) * d, 2 * s * (d * ff + d * ff)
    forward = embedding + layers * (qkv + scores + softmax + reduction + projection + dense) + logits
    assert flops(**GPT2)["chinchilla"] == 3 * forward / s


def test_exact_causal_pairs_are_just_above_half_of_the_square() -> None:
    per_token = flops(**GPT2)
    assert per_token["olmo_causal"] - per_token["megatron"] == 6 * 12 * 768  # the diagonal: (s + 1) / 2 against s / 2


@pytest.mark.parametrize(
    ("left_out", "name", "reason"),
    [
        ("d_ff", "megatron", "needs d_ff"),
        ("n_params", "titan", "needs n_params"),
        ("mlp", "nanochat", "needs mlp"),
        ("position_embedding", "nanogpt", "needs position_embedding"),
        ("vocab_size", "deepseek_6n2", "needs vocab_size"),
        ("seq_len", "all_params", "needs seq_len"),
    ],
)
def test_a_missing_fact_is_named_and_never_guessed(left_out: str, name: str, reason: str) -> None:
    result = conventions.compute(declared(**{key: value for key, value in GPT2.items() if key != left_out}))
    assert name not in result["flops_per_token"]
    assert result["not_available"][name] == reason


def test_without_facts_every_convention_says_what_it_needs() -> None:
    result = conventions.compute(FactStore())
    assert result["flops_per_token"] == {}
    assert set(result["not_available"]) == set(conventions.REGISTRY)
    assert all(reason.startswith("needs ") and len(reason) > 8 for reason in result["not_available"].values())


@pytest.mark.parametrize("model", [GPT2, BILLION, QWEN3_06B, MIXTRAL], ids=["gpt2", "billion", "qwen3", "mixtral"])
def test_every_formula_gives_the_number_that_it_explains(model: dict[str, Any]) -> None:
    shape = complete(declared(**model))
    for name, value in conventions.count(shape).flops_per_token.items():
        convention = conventions.REGISTRY[name]
        again = eval(
            convention.formula, {"__builtins__": {}}, {key: shape.facts.value(key) for key in convention.needs}
        )
        assert value == pytest.approx(again, rel=1e-12), name  # same arithmetic, other order of operations


def test_an_assumed_input_makes_the_number_assumed() -> None:
    sources = conventions.count(complete(declared(**GPT2))).sources
    assert sources["megatron"] == "assumed", "grouped queries were not ruled out"
    assert sources["all_params"] == "declared"
    stated = conventions.count(complete(declared(**GPT2, head_dim=64, n_kv_heads=12))).sources
    assert set(stated.values()) == {"declared"}


def test_every_convention_names_its_source_and_what_it_leaves_out() -> None:
    flops_md = "titan megatron megatron_simple hf all_params nanogpt nanochat chinchilla kaplan deepseek olmo levanter"
    assert set(flops_md.split()) <= set(conventions.REGISTRY)
    for name, convention in conventions.REGISTRY.items():
        assert convention.counts, name
        assert convention.leaves_out, name
        assert convention.source, name
        assert convention.compute.__doc__, name
    assert conventions.lookup("palm").name == "nanogpt"
    with pytest.raises(TokenAxisError, match="titan"):
        conventions.lookup("mine")


def test_the_page_about_conventions_names_all_of_them_with_their_needs() -> None:
    from tokenaxis.conventions.document import as_markdown

    page = as_markdown()
    for name, convention in conventions.REGISTRY.items():
        assert f"## {name}\n" in page
        assert convention.formula in page
        assert convention.source in page
    assert "trainmeter's `megatron`" in page.split("## megatron_simple")[1].split("\n## ")[0]


def test_the_page_in_docs_is_the_one_that_the_code_prints(root: Path) -> None:
    from tokenaxis.conventions.document import page

    stored = (root / "docs" / "conventions.md").read_text(encoding="utf-8")
    assert stored == page(), "python -m tokenaxis.conventions.document > docs/conventions.md"
