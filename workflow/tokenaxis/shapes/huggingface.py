"""A model's shape from a Hugging Face config.json, with the exact number of parameters that its modules have.

Each family is described by what its modeling file in huggingface/transformers builds: which matrices have biases, how
many norms a layer has and of which size. A family that is not listed is refused: a guess would be off by percents.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from tokenaxis.errors import TokenAxisError


@dataclass(frozen=True)
class Family:
    """What the modules of a model family consist of, beside their matrices.

    Attributes:
        gated: the feed-forward layer has three matrices instead of two.
        qkv_bias, out_bias, mlp_bias: whether those projections have biases; None: as config.json's `attention_bias` and
            `mlp_bias` say.
        norms: norms of model width in a layer, and in the end one more.
        norm_vectors: vectors of a norm: 1 (RMSNorm: weight), 2 (LayerNorm: weight and bias), 0 (no parameters).
        qk_norm: "head" (query and key norms of one head's width), "all" (of all heads' width) or None.
        positions: kind of position embedding.
        tied: whether the head shares the token table where config.json does not say.
        head_dim: width of a head where config.json does not say, or None for hidden_size / heads.
        window_every: every how many layers one sees the whole sequence, if config.json has a window but no pattern;
            0: no layer does; None: the family has no windows.
    """

    gated: bool = True
    qkv_bias: bool | None = None
    out_bias: bool | None = None
    mlp_bias: bool | None = None
    norms: int = 2
    norm_vectors: int = 1
    qk_norm: str | None = None
    positions: str = "rope"
    tied: bool = False
    head_dim: int | None = None
    window_every: int | None = None


#: model_type -> family, as huggingface/transformers 5.24.0 builds it
FAMILIES: dict[str, Family] = {
    "gpt2": Family(False, True, True, True, norm_vectors=2, positions="learned", tied=True),
    "gpt_neox": Family(False, True, True, True, norm_vectors=2),
    "llama": Family(),
    "mistral": Family(qkv_bias=False, out_bias=False, mlp_bias=False, window_every=0),
    "mixtral": Family(qkv_bias=False, out_bias=False, mlp_bias=False, window_every=0),
    "qwen2": Family(qkv_bias=True, out_bias=False, mlp_bias=False),
    "qwen3": Family(mlp_bias=False, qk_norm="head", head_dim=128),
    "qwen3_moe": Family(mlp_bias=False, qk_norm="head"),
    "gemma": Family(mlp_bias=False, tied=True, head_dim=256),
    "gemma2": Family(mlp_bias=False, norms=4, tied=True, head_dim=256, window_every=2),
    "gemma3_text": Family(mlp_bias=False, norms=4, qk_norm="head", tied=True, head_dim=256, window_every=6),
    "olmo": Family(norm_vectors=0, mlp_bias=False),
    "olmo2": Family(mlp_bias=False, qk_norm="all"),
    "deepseek_v2": Family(mlp_bias=False),
    "deepseek_v3": Family(mlp_bias=False),
}

#: config.json's names of one thing, by ours
_NAMES: dict[str, tuple[str, ...]] = {
    "n_layers": ("num_hidden_layers", "n_layer"),
    "d_model": ("hidden_size", "n_embd"),
    "n_heads": ("num_attention_heads", "n_head"),
    "n_kv_heads": ("num_key_value_heads",),
    "d_ff": ("intermediate_size", "n_inner"),
    "vocab_size": ("vocab_size",),
    "moe_experts": ("num_local_experts", "num_experts", "n_routed_experts"),
    "moe_top_k": ("num_experts_per_tok",),
    "moe_d_ff": ("moe_intermediate_size",),
    "q_lora_rank": ("q_lora_rank",),
    "kv_lora_rank": ("kv_lora_rank",),
    "qk_rope_head_dim": ("qk_rope_head_dim",),
    "v_head_dim": ("v_head_dim",),
}


def from_config(config: Mapping[str, Any]) -> dict[str, Any]:
    """Facts of a model from its parsed config.json: shape and `n_params`; keys as in tokenaxis.facts.

    `seq_len` is not among them: the length that a model can take is not the one it is trained on.

    Raises:
        TokenAxisError: the family is not known, or a size is missing.
    """
    config = config.get("text_config") or config
    kind = config.get("model_type")
    family = FAMILIES.get(str(kind))
    if family is None:
        known = ", ".join(FAMILIES)
        raise TokenAxisError(f"model_type {kind!r} is not known", remedy=f"declare the facts, or use one of {known}")
    facts = _sizes(config, family)
    facts |= _experts(config, facts) | _windows(config, facts, family)
    facts["n_params"] = count_parameters(facts, config, family)
    return facts


def count_parameters(facts: Mapping[str, Any], config: Mapping[str, Any], family: Family) -> int:
    """All parameters of the model, each shared one once."""
    layers, d_model = facts["n_layers"], facts["d_model"]
    vectors = family.norms * family.norm_vectors * d_model + _attention_vectors(facts, config, family)
    total = layers * (_attention_matrices(facts) + vectors) + family.norm_vectors * d_model
    total += _feed_forward(facts, config, family)
    table = facts["vocab_size"] * d_model
    positions = facts.get("max_positions", 0) * d_model
    return int(total + table + positions + (0 if facts["tied_embeddings"] else table))


def _sizes(config: Mapping[str, Any], family: Family) -> dict[str, Any]:
    facts: dict[str, Any] = {}
    for key, names in _NAMES.items():
        value = next((config[name] for name in names if config.get(name) is not None), None)
        if value is not None:
            facts[key] = value
    for key in ("n_layers", "d_model", "n_heads", "vocab_size"):
        if key not in facts:
            raise TokenAxisError(f"config.json has no {' or '.join(_NAMES[key])}")
    heads, d_model = facts["n_heads"], facts["d_model"]
    if "kv_lora_rank" in facts:
        facts["head_dim"] = config["qk_nope_head_dim"] + config["qk_rope_head_dim"]
        facts.pop("n_kv_heads", None)
    else:
        facts.setdefault("n_kv_heads", heads)
        facts["head_dim"] = config.get("head_dim") or family.head_dim or d_model // heads
    if family.positions == "learned":
        facts["max_positions"] = config["n_positions"]
    if "d_ff" not in facts and not family.gated:
        facts["d_ff"] = 4 * d_model  # GPT-2's n_inner: null
    facts["position_embedding"] = family.positions
    facts["tied_embeddings"] = bool(config.get("tie_word_embeddings", family.tied))
    activation = str(config.get("hidden_act") or config.get("hidden_activation") or config.get("activation_function"))
    facts["mlp"] = ("swiglu" if "silu" in activation else "geglu") if family.gated else "gelu"
    return facts


def _experts(config: Mapping[str, Any], facts: dict[str, Any]) -> dict[str, Any]:
    """Mixture facts; a dense model has none."""
    if facts.get("moe_experts", 0) <= 1:
        for key in ("moe_experts", "moe_top_k", "moe_d_ff"):
            facts.pop(key, None)
        return {}
    layers = facts["n_layers"]
    expert = facts.get("moe_d_ff") or facts["d_ff"]
    step = config.get("decoder_sparse_step") or config.get("moe_layer_freq") or 1
    first = config.get("first_k_dense_replace") or 0
    dense_only = set(config.get("mlp_only_layers") or ())
    mixed = sum(layer >= first and (layer + 1) % step == 0 and layer not in dense_only for layer in range(layers))
    found = {
        "moe_d_ff": expert,
        "n_moe_layers": mixed,
        "moe_shared_d_ff": (config.get("n_shared_experts") or 0) * expert,
    }
    if mixed == layers:
        facts.pop("d_ff", None)
    return found


def _windows(config: Mapping[str, Any], facts: Mapping[str, Any], family: Family) -> dict[str, Any]:
    window, layers = config.get("sliding_window"), facts["n_layers"]
    kinds = config.get("layer_types")
    if not window or config.get("use_sliding_window") is False:
        return {}
    if kinds:
        windowed = sum("sliding" in kind for kind in kinds)
    elif family.window_every is None:
        return {}
    else:
        every = config.get("sliding_window_pattern") or family.window_every
        windowed = layers - (layers // every if every else 0)
    return {"attention_window": window, "n_window_layers": windowed} if windowed else {}


def _attention_matrices(facts: Mapping[str, Any]) -> int:
    """Weights of one attention layer, the norms inside latent attention among them."""
    d_model, heads, width = facts["d_model"], facts["n_heads"], facts["head_dim"]
    if "kv_lora_rank" not in facts:
        return int(2 * d_model * width * (heads + facts["n_kv_heads"]))
    rank, rope, value = facts["kv_lora_rank"], facts["qk_rope_head_dim"], facts["v_head_dim"]
    query_rank = facts.get("q_lora_rank")
    query = query_rank * (d_model + heads * width + 1) if query_rank else d_model * heads * width
    keys_and_values = d_model * (rank + rope) + rank * (heads * (width - rope + value) + 1)
    return int(query + keys_and_values + heads * value * d_model)


def _attention_vectors(facts: Mapping[str, Any], config: Mapping[str, Any], family: Family) -> int:
    if "kv_lora_rank" in facts:
        return 0
    heads, kv_heads, width = facts["n_heads"], facts["n_kv_heads"], facts["head_dim"]
    stated = bool(config.get("attention_bias", False))
    total = (heads + 2 * kv_heads) * width if (stated if family.qkv_bias is None else family.qkv_bias) else 0
    total += facts["d_model"] if (stated if family.out_bias is None else family.out_bias) else 0
    norms = {"head": 2 * width, "all": (heads + kv_heads) * width, None: 0}
    return int(total + norms[family.qk_norm])


def _feed_forward(facts: Mapping[str, Any], config: Mapping[str, Any], family: Family) -> int:
    """Weights of all feed-forward layers."""
    d_model, layers = facts["d_model"], facts["n_layers"]
    matrices = 3 if family.gated else 2
    mixed = facts.get("n_moe_layers", 0)
    bias = bool(config.get("mlp_bias", False)) if family.mlp_bias is None else family.mlp_bias
    inner = facts.get("d_ff", 0)
    dense = matrices * d_model * inner + ((matrices - 1) * inner + d_model if bias else 0)
    total = (layers - mixed) * dense
    if mixed:
        width = facts["moe_experts"] * facts["moe_d_ff"] + facts["moe_shared_d_ff"]
        total += mixed * (matrices * d_model * width + d_model * facts["moe_experts"])
    return int(total)
