"""Arguments of trainers and names in checkpoints -> shape."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import pytest

from tokenaxis import conventions
from tokenaxis.errors import TokenAxisError
from tokenaxis.facts import Fact, FactStore
from tokenaxis.shapes.arguments import from_arguments
from tokenaxis.shapes.checkpoints import from_safetensors, from_shapes, from_torch


def store(facts: dict[str, Any]) -> FactStore:
    result = FactStore(Fact(key, value, "detected") for key, value in facts.items())
    assert result.rejected == []
    return result


def test_megatron_arguments_give_megatrons_own_flops() -> None:
    """Llama-3 8B as printed by Megatron-LM; FLOPs by the lines of its num_floating_point_operations."""
    printed = {
        "num_layers": "32",
        "hidden_size": "4096",
        "ffn_hidden_size": "14336",
        "num_attention_heads": "32",
        "group_query_attention": "True",
        "num_query_groups": "8",
        "kv_channels": "128",
        "seq_length": "8192",
        "padded_vocab_size": "128256",
        "swiglu": "True",
        "untie_embeddings_and_output_weights": "True",
        "position_embedding_type": "rope",
        "num_experts": "None",
        "moe_router_topk": "2",
        "global_batch_size": "128",
        "world_size": "16",
        "bf16": "True",
    }
    facts = from_arguments(printed)
    assert facts["tokens_per_step"] == 128 * 8192
    assert facts["precision"] == "bf16"
    assert "moe_top_k" not in facts, "a default of a dense model"
    hidden, query, key_value, s = 4096, 4096, 1024, 8192
    attention = 3 * 2 * (hidden * (query + 2 * key_value) + query * s / 2 * 2 + query * hidden)
    by_hand = 3 * 2 * hidden * (14336 * 3) * 32 + attention * 32 + 3 * 2 * hidden * 128256
    assert conventions.compute(store(facts))["flops_per_token"]["megatron"] == by_hand


def test_megatron_mixtures_windows_and_latent_attention() -> None:
    base = {"num_layers": 4, "hidden_size": 64, "num_attention_heads": 4, "ffn_hidden_size": 128, "seq_length": 32}
    mixed = from_arguments(base | {"num_experts": 8, "moe_router_topk": 2, "moe_layer_freq": "[0,1,1,1]"})
    assert (mixed["moe_experts"], mixed["n_moe_layers"]) == (8, 3)
    assert from_arguments(base | {"num_experts": 8, "moe_layer_freq": 2})["n_moe_layers"] == 2
    assert from_arguments(base | {"window_size": "(127, 0)"})["attention_window"] == 128
    latent = {"multi_latent_attention": True, "qk_head_dim": 128, "qk_pos_emb_head_dim": 64, "v_head_dim": 128}
    found = from_arguments(base | latent | {"kv_lora_rank": 512, "q_lora_rank": None, "kv_channels": 16})
    assert (found["head_dim"], found["v_head_dim"], found["qk_rope_head_dim"]) == (192, 128, 64)
    assert "n_kv_heads" not in found
    assert from_arguments(base | {"max_position_embeddings": 32})["max_positions"] == 32


def test_nanogpt_arguments_give_nanogpts_own_count() -> None:
    found = from_arguments({"n_layer": 12, "n_head": 12, "n_embd": 768, "block_size": 1024, "vocab_size": 50304})
    per_token = conventions.compute(store(found | {"n_params": 124_475_904}))["flops_per_token"]
    assert per_token["nanogpt"] == 6 * (124_475_904 - 1024 * 768) + 12 * 12 * 12 * 64 * 1024


def test_olmo_arguments_halve_the_width_before_a_gate() -> None:
    config = {"d_model": 768, "n_layers": 12, "n_heads": 12, "mlp_ratio": 8, "activation_type": "swiglu", "rope": True}
    config |= {"max_sequence_length": 4096, "vocab_size": 100278, "embedding_size": 100352, "weight_tying": False}
    found = from_arguments(config)
    assert (found["d_ff"], found["mlp"], found["position_embedding"]) == (3072, "swiglu", "rope")
    per_token = conventions.compute(store(found | {"n_params": 267_424_512}))["flops_per_token"]
    assert per_token["olmo_ladder"] == 1_903_391_232


def test_arguments_of_no_known_trainer_are_refused() -> None:
    with pytest.raises(TokenAxisError, match="no known trainer"):
        from_arguments({"depth": 12})


GPT2_SMALL = {
    "transformer.wte.weight": (50257, 768),
    "transformer.wpe.weight": (1024, 768),
    "transformer.h.0.attn.c_attn.weight": (768, 2304),
    "transformer.h.0.attn.bias": (1, 1, 1024, 1024),
    "transformer.h.11.mlp.c_fc.weight": (768, 3072),
    "transformer.ln_f.weight": (768,),
}


def test_names_and_shapes_tell_depth_width_and_tying() -> None:
    found = from_shapes(GPT2_SMALL)
    parameters = {name: shape for name, shape in GPT2_SMALL.items() if not name.endswith("attn.bias")}
    assert found == {
        "n_params": sum(map(math.prod, parameters.values())),
        "n_layers": 12,
        "d_model": 768,
        "padded_vocab_size": 50257,
        "tied_embeddings": True,
        "position_embedding": "learned",
        "max_positions": 1024,
        "n_position_params": 1024 * 768,
        "n_embedding_params": 1024 * 768,
    }
    untied = from_shapes(
        {f"_orig_mod.{name}": shape for name, shape in GPT2_SMALL.items()} | {"lm_head.weight": (50257, 768)}
    )
    assert untied["tied_embeddings"] is False
    assert untied["n_embedding_params"] == (50257 + 1024) * 768
    assert store(untied)


def test_a_safetensors_header_is_read_without_its_weights(tmp_path: Path) -> None:
    header = {name: {"dtype": "F32", "shape": shape, "data_offsets": [0, 0]} for name, shape in GPT2_SMALL.items()}
    text = json.dumps({"__metadata__": {"format": "pt"}} | header).encode()
    path = tmp_path / "model.safetensors"
    path.write_bytes(len(text).to_bytes(8, "little") + text)
    assert from_safetensors(path) == from_shapes(GPT2_SMALL)
    for damage in (b"", b"\xff" * 20, text, len(text).to_bytes(8, "little") + text[:50], b"\x02" + b"\0" * 7 + b"[]"):
        path.write_bytes(damage)
        with pytest.raises(TokenAxisError, match="model.safetensors"):
            from_safetensors(path)


def test_a_torch_checkpoint_counts_a_shared_weight_once_and_runs_no_code(tmp_path: Path) -> None:
    torch = pytest.importorskip("torch", reason="torch is an extra")
    embedding = torch.nn.Embedding(11, 4)
    head = torch.nn.Linear(4, 11, bias=False)
    untied = {"model": {"wte.weight": embedding.weight, "lm_head.weight": head.weight}, "step": 3}
    torch.save(untied, tmp_path / "untied.pt")
    assert from_torch(tmp_path / "untied.pt")["n_params"] == 88
    head.weight = embedding.weight
    torch.save({"wte.weight": embedding.weight, "lm_head.weight": head.weight}, tmp_path / "tied.pt")
    found = from_torch(tmp_path / "tied.pt")
    assert (found["n_params"], found["tied_embeddings"]) == (44, True)
    torch.save({"model": print}, tmp_path / "code.pt")
    with pytest.raises(TokenAxisError, match="code.pt"):
        from_torch(tmp_path / "code.pt")
