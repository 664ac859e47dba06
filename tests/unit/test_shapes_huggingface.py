"""config.json -> shape and parameters, against the counts that the models' own pages and weight files state."""

from __future__ import annotations

from typing import Any

import pytest

from tokenaxis.errors import TokenAxisError
from tokenaxis.facts import Fact, FactStore
from tokenaxis.shapes import check, complete
from tokenaxis.shapes.huggingface import FAMILIES, from_config


def llama(
    d: int, ff: int, layers: int, heads: int, kv: int, vocab: int, tied: bool = False, **more: Any
) -> dict[str, Any]:
    return {
        "model_type": "llama",
        "hidden_size": d,
        "intermediate_size": ff,
        "num_hidden_layers": layers,
        "num_attention_heads": heads,
        "num_key_value_heads": kv,
        "vocab_size": vocab,
        "tie_word_embeddings": tied,
        "hidden_act": "silu",
    } | more


def gpt2(layers: int, heads: int, d: int) -> dict[str, Any]:
    config = {"model_type": "gpt2", "n_layer": layers, "n_head": heads, "n_embd": d, "n_positions": 1024}
    return config | {"n_inner": None, "vocab_size": 50257, "activation_function": "gelu_new"}


def neox(layers: int, heads: int, d: int, vocab: int = 50304) -> dict[str, Any]:
    return llama(d, 4 * d, layers, heads, heads, vocab, model_type="gpt_neox", hidden_act="gelu")


GEMMA = {"hidden_act": "gelu_pytorch_tanh", "head_dim": 256}
DEEPSEEK = {
    "n_shared_experts": 2,
    "moe_layer_freq": 1,
    "kv_lora_rank": 512,
    "qk_rope_head_dim": 64,
    "qk_nope_head_dim": 128,
    "v_head_dim": 128,
}

# name -> (sizes from its config.json, parameters as its weight files on the Hugging Face hub add up, or its paper says)
PUBLISHED: dict[str, tuple[dict[str, Any], int]] = {
    "gpt2": (gpt2(12, 12, 768), 124_439_808),
    "gpt2-medium": (gpt2(24, 16, 1024), 354_823_168),
    "gpt2-large": (gpt2(36, 20, 1280), 774_030_080),
    "gpt2-xl": (gpt2(48, 25, 1600), 1_557_611_200),
    "pythia-70m": (neox(6, 8, 512), 70_426_624),
    "pythia-160m": (neox(12, 12, 768), 162_322_944),
    "pythia-410m": (neox(24, 16, 1024), 405_334_016),
    "pythia-1b": (neox(16, 8, 2048), 1_011_781_632),
    "pythia-6.9b": (neox(32, 32, 4096, 50432), 6_857_302_016),
    "llama-2-7b": (llama(4096, 11008, 32, 32, 32, 32000), 6_738_415_616),
    "llama-2-13b": (llama(5120, 13824, 40, 40, 40, 32000), 13_015_864_320),
    "llama-2-70b": (llama(8192, 28672, 80, 64, 8, 32000), 68_976_648_192),
    "llama-3-8b": (llama(4096, 14336, 32, 32, 8, 128256), 8_030_261_248),
    "llama-3-70b": (llama(8192, 28672, 80, 64, 8, 128256), 70_553_706_496),
    "llama-3.1-405b": (llama(16384, 53248, 126, 128, 8, 128256), 405_853_388_800),
    "llama-3.2-1b": (llama(2048, 8192, 16, 32, 8, 128256, True, head_dim=64), 1_235_814_400),
    "llama-3.2-3b": (llama(3072, 8192, 28, 24, 8, 128256, True, head_dim=128), 3_212_749_824),
    "tinyllama-1.1b": (llama(2048, 5632, 22, 32, 4, 32000), 1_100_048_384),
    "smollm2-135m": (llama(576, 1536, 30, 9, 3, 49152, True), 134_515_008),
    "smollm2-360m": (llama(960, 2560, 32, 15, 5, 49152, True), 361_821_120),
    "mistral-7b-v0.1": (
        llama(4096, 14336, 32, 32, 8, 32000, model_type="mistral", sliding_window=4096),
        7_241_732_096,
    ),
    "mixtral-8x7b": (
        llama(4096, 14336, 32, 32, 8, 32000, model_type="mixtral", num_local_experts=8, num_experts_per_tok=2),
        46_702_792_704,
    ),
    "mixtral-8x22b": (
        llama(6144, 16384, 56, 48, 8, 32000, model_type="mixtral", num_local_experts=8, num_experts_per_tok=2),
        140_620_634_112,
    ),
    "qwen2-0.5b": (llama(896, 4864, 24, 14, 2, 151936, True, model_type="qwen2"), 494_032_768),
    "qwen2.5-7b": (
        llama(3584, 18944, 28, 28, 4, 152064, model_type="qwen2", sliding_window=131072, use_sliding_window=False),
        7_615_616_512,
    ),
    "qwen3-0.6b": (llama(1024, 3072, 28, 16, 8, 151936, True, model_type="qwen3", head_dim=128), 596_049_920),
    "qwen3-8b": (llama(4096, 12288, 36, 32, 8, 151936, model_type="qwen3", head_dim=128), 8_190_735_360),
    "qwen3-30b-a3b": (
        llama(2048, 6144, 48, 32, 4, 151936, model_type="qwen3_moe", head_dim=128)
        | {"num_experts": 128, "num_experts_per_tok": 8, "moe_intermediate_size": 768, "decoder_sparse_step": 1},
        30_532_122_624,
    ),
    "gemma-2b": (llama(2048, 16384, 18, 8, 1, 256000, True, model_type="gemma") | GEMMA, 2_506_172_416),
    "gemma-7b": (llama(3072, 24576, 28, 16, 16, 256000, True, model_type="gemma") | GEMMA, 8_537_680_896),
    "gemma-2-2b": (
        llama(2304, 9216, 26, 8, 4, 256000, True, model_type="gemma2", sliding_window=4096) | GEMMA,
        2_614_341_888,
    ),
    "gemma-2-9b": (
        llama(3584, 14336, 42, 16, 8, 256000, True, model_type="gemma2", sliding_window=4096) | GEMMA,
        9_241_705_984,
    ),
    "gemma-3-1b": (
        llama(1152, 6912, 26, 4, 1, 262144, True, model_type="gemma3_text", sliding_window=512) | GEMMA,
        999_885_952,
    ),
    "olmo-1b": (llama(2048, 8192, 16, 16, 16, 50304, True, model_type="olmo"), 1_176_764_416),
    "olmo-7b": (llama(4096, 11008, 32, 32, 32, 50304, model_type="olmo"), 6_888_095_744),
    "olmo-2-7b": (llama(4096, 11008, 32, 32, 32, 100352, model_type="olmo2"), 7_298_617_344),
    "deepseek-llm-7b": (llama(4096, 11008, 30, 32, 32, 102400), 6_910_365_696),
    "deepseek-v2-lite": (
        llama(2048, 10944, 27, 16, 16, 102400, model_type="deepseek_v2", q_lora_rank=None, first_k_dense_replace=1)
        | DEEPSEEK
        | {"n_routed_experts": 64, "num_experts_per_tok": 6, "moe_intermediate_size": 1408},
        15_706_484_224,
    ),
    # 671B: DeepSeek-V3 (arXiv 2412.19437), without the multi-token prediction module and without the 58 x 256
    # corrections of the router, which are buffers
    "deepseek-v3": (
        llama(7168, 18432, 61, 128, 128, 129280, model_type="deepseek_v3", q_lora_rank=1536, first_k_dense_replace=3)
        | DEEPSEEK
        | {"n_routed_experts": 256, "num_experts_per_tok": 8, "moe_intermediate_size": 2048, "n_shared_experts": 1},
        671_026_404_352,
    ),
}


@pytest.mark.parametrize("name", sorted(PUBLISHED))
def test_parameters_are_counted_as_published(name: str) -> None:
    config, published = PUBLISHED[name]
    assert from_config(config)["n_params"] == published


@pytest.mark.parametrize("name", sorted(PUBLISHED))
def test_the_facts_of_a_config_are_a_sound_shape(name: str) -> None:
    facts = from_config(PUBLISHED[name][0])
    store = FactStore(Fact(key, value, "detected") for key, value in facts.items())
    assert store.rejected == []
    assert check(complete(store)) == []


def test_windows_are_read_from_pattern_or_family() -> None:
    def windows(name: str, **more: Any) -> tuple[Any, Any]:
        facts = from_config(PUBLISHED[name][0] | more)
        return facts.get("attention_window"), facts.get("n_window_layers")

    assert windows("mistral-7b-v0.1") == (4096, 32)
    assert windows("gemma-2-2b") == (4096, 13)
    assert windows("gemma-3-1b") == (512, 22)  # layers 6, 12, 18 and 24 see everything
    assert windows("qwen2.5-7b") == (None, None), "stated and switched off"
    kinds = ["sliding_attention", "full_attention"] * 13
    assert windows("gemma-3-1b", layer_types=kinds) == (512, 13)


def test_activated_parameters_of_mixtures_are_as_published() -> None:
    # Qwen3-30B-A3B: 3.3B activated (its card); DeepSeek-V3: 37B (arXiv 2412.19437); embeddings are in these figures
    for name, activated in (("qwen3-30b-a3b", 3.3e9), ("deepseek-v3", 37e9)):
        facts = from_config(PUBLISHED[name][0])
        shape = complete(FactStore(Fact(key, value, "detected") for key, value in facts.items()))
        active = facts["n_params"] - shape.facts.value("inactive_params")
        assert active == pytest.approx(activated, rel=0.02)  # published to two digits


def test_a_multimodal_config_gives_its_text_model() -> None:
    config, published = PUBLISHED["gemma-3-1b"]
    assert from_config({"model_type": "gemma3", "text_config": config})["n_params"] == published


def test_a_family_that_is_not_known_is_refused_with_the_known_ones() -> None:
    with pytest.raises(TokenAxisError, match="'mamba' is not known") as caught:
        from_config({"model_type": "mamba"})
    assert "llama" in str(caught.value)
    with pytest.raises(TokenAxisError, match="num_hidden_layers"):
        from_config({"model_type": "llama", "hidden_size": 4})


def test_every_family_has_a_published_model_behind_it() -> None:
    assert {config["model_type"] for config, _ in PUBLISHED.values()} == set(FAMILIES)
