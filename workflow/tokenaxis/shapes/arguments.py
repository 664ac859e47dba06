"""A model's shape from the arguments that a trainer printed or saved: Megatron-LM, nanoGPT, OLMo."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from tokenaxis.errors import TokenAxisError

#: Megatron-LM argument -> fact (megatron/training/arguments.py)
_MEGATRON = {
    "num_layers": "n_layers",
    "hidden_size": "d_model",
    "ffn_hidden_size": "d_ff",
    "num_attention_heads": "n_heads",
    "kv_channels": "head_dim",
    "seq_length": "seq_len",
    "padded_vocab_size": "padded_vocab_size",
    "moe_router_topk": "moe_top_k",
    "moe_ffn_hidden_size": "moe_d_ff",
    "moe_shared_expert_intermediate_size": "moe_shared_d_ff",
    "q_lora_rank": "q_lora_rank",
    "world_size": "world_size",
    "data_parallel_size": "dp",
    "tensor_model_parallel_size": "tp",
    "pipeline_model_parallel_size": "pp",
}
#: OLMo model config -> fact (allenai/OLMo olmo/config.py ModelConfig)
_OLMO = {
    "n_layers": "n_layers",
    "d_model": "d_model",
    "n_heads": "n_heads",
    "n_kv_heads": "n_kv_heads",
    "max_sequence_length": "seq_len",
    "vocab_size": "vocab_size",
    "embedding_size": "padded_vocab_size",
    "weight_tying": "tied_embeddings",
}
_NANOGPT = {"n_layer": "n_layers", "n_head": "n_heads", "n_embd": "d_model", "block_size": "seq_len"}


def from_arguments(arguments: Mapping[str, Any]) -> dict[str, Any]:
    """Facts from parsed arguments, whatever trainer they belong to; keys as in tokenaxis.facts.

    Values may be text, as a printed dump gives them. `n_params` is not among them: arguments do not say what a module
    is made of.

    Raises:
        TokenAxisError: they belong to none of the known trainers.
    """
    for marks, convert in _DIALECTS:
        if all(mark in arguments for mark in marks):
            return convert({key: _typed(value) for key, value in arguments.items()})
    remedy = "arguments of Megatron-LM (num_layers, hidden_size), OLMo (d_model, n_layers), nanoGPT (n_layer, n_embd)"
    raise TokenAxisError("no known trainer has such arguments", remedy=remedy)


def _megatron(arguments: Mapping[str, Any]) -> dict[str, Any]:
    facts = _renamed(arguments, _MEGATRON)
    layers = facts["n_layers"]
    if arguments.get("group_query_attention"):
        facts["n_kv_heads"] = arguments["num_query_groups"]
    elif "n_heads" in facts and not arguments.get("multi_latent_attention"):
        facts["n_kv_heads"] = facts["n_heads"]  # Megatron-LM sets num_query_groups so
    if arguments.get("multi_latent_attention"):
        facts["head_dim"] = arguments["qk_head_dim"] + arguments["qk_pos_emb_head_dim"]
        facts["qk_rope_head_dim"] = arguments["qk_pos_emb_head_dim"]
        facts |= {key: arguments[key] for key in ("v_head_dim", "kv_lora_rank")}
    facts["mlp"] = "swiglu" if arguments.get("swiglu") else "gelu"
    facts["tied_embeddings"] = not arguments.get("untie_embeddings_and_output_weights", False)
    kind = arguments.get("position_embedding_type", "learned_absolute")
    facts["position_embedding"] = "learned" if kind == "learned_absolute" else kind
    if facts["position_embedding"] == "learned" and arguments.get("max_position_embeddings"):
        facts["max_positions"] = arguments["max_position_embeddings"]
    if isinstance(window := arguments.get("window_size"), list | tuple):
        facts["attention_window"] = window[0] + 1  # (left, right): keys to the left, beside the query's own
    experts = arguments.get("num_experts")
    if experts:
        facts["moe_experts"] = experts
        every = arguments.get("moe_layer_freq") or 1
        pattern = every if isinstance(every, list | tuple) else [layer % every == 0 for layer in range(layers)]
        facts["n_moe_layers"] = sum(bool(mixed) for mixed in pattern)
    else:
        for key in ("moe_top_k", "moe_d_ff", "moe_shared_d_ff"):
            facts.pop(key, None)
    if arguments.get("global_batch_size") and "seq_len" in facts:
        facts["tokens_per_step"] = arguments["global_batch_size"] * facts["seq_len"]
    if arguments.get("bf16") or arguments.get("fp16"):
        facts["precision"] = "bf16" if arguments.get("bf16") else "fp16"
    return facts


def _nanogpt(arguments: Mapping[str, Any]) -> dict[str, Any]:
    """karpathy/nanoGPT model.py: MLP of 4 n_embd, GELU, learned positions, tied head."""
    facts = _renamed(arguments, _NANOGPT)
    facts |= {"d_ff": 4 * facts["d_model"], "mlp": "gelu", "n_kv_heads": facts["n_heads"]}
    facts |= {"tied_embeddings": True, "position_embedding": "learned"}
    if arguments.get("vocab_size"):
        facts["padded_vocab_size"] = arguments["vocab_size"]  # 50304 by default: GPT-2's 50257, padded
    if "seq_len" in facts:
        facts["max_positions"] = facts["seq_len"]
    return facts


def _olmo(arguments: Mapping[str, Any]) -> dict[str, Any]:
    """allenai/OLMo: mlp_hidden_size (or mlp_ratio d_model) is the width before a gated activation halves it."""
    facts = _renamed(arguments, _OLMO)
    activation = str(arguments.get("activation_type", "swiglu")).rsplit(".", 1)[-1].lower()
    facts["mlp"] = activation if activation in ("swiglu", "gelu", "relu") else "swiglu"
    width = arguments.get("mlp_hidden_size") or arguments.get("mlp_ratio", 4) * facts["d_model"]
    facts["d_ff"] = width // 2 if facts["mlp"] == "swiglu" else width
    if "n_heads" in facts:
        facts.setdefault("n_kv_heads", 1 if arguments.get("multi_query_attention") else facts["n_heads"])
        facts["head_dim"] = facts["d_model"] // facts["n_heads"]
    facts.setdefault("tied_embeddings", True)  # ModelConfig.weight_tying
    facts["position_embedding"] = "rope" if arguments.get("rope") else "alibi" if arguments.get("alibi") else "learned"
    if facts["position_embedding"] == "learned" and "seq_len" in facts:
        facts["max_positions"] = facts["seq_len"]
    return facts


_DIALECTS: tuple[tuple[tuple[str, ...], Callable[[Mapping[str, Any]], dict[str, Any]]], ...] = (
    (("num_layers", "hidden_size"), _megatron),
    (("n_layer", "n_embd"), _nanogpt),
    (("n_layers", "d_model"), _olmo),
)


def _renamed(arguments: Mapping[str, Any], names: Mapping[str, str]) -> dict[str, Any]:
    return {fact: arguments[name] for name, fact in names.items() if arguments.get(name) is not None}


def _typed(value: Any) -> Any:
    """A printed value as what it was: None, a truth value, a number, a list of such, else the text itself."""
    if not isinstance(value, str):
        return value
    text = value.strip()
    if text in ("None", "null", "True", "true", "False", "false"):
        return {"T": True, "t": True, "F": False, "f": False}.get(text[0])
    if text.startswith(("[", "(")) and text.endswith(("]", ")")):
        return [_typed(part) for part in text[1:-1].split(",") if part.strip()]
    for convert in (int, float):
        try:
            return convert(text)
        except ValueError:
            continue
    return text
