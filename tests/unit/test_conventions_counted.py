"""What the conventions compute is what torch counts, on shapes of every kind."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest

from tests.unit.test_shapes_huggingface import PUBLISHED
from tokenaxis import conventions
from tokenaxis.errors import TokenAxisError
from tokenaxis.facts import Fact, FactStore
from tokenaxis.shapes import Shape, complete
from tokenaxis.shapes.huggingface import from_config

torch = pytest.importorskip("torch", reason="torch is an extra")

from tokenaxis.conventions.counted import count_callable, count_shape  # noqa: E402


def shape(**facts: Any) -> Shape:
    return complete(FactStore(Fact(key, value, "declared") for key, value in facts.items()))


SMALL = {"n_layers": 2, "d_model": 64, "n_heads": 4, "vocab_size": 96, "seq_len": 32, "tied_embeddings": True}
LATENT = {"head_dim": 24, "v_head_dim": 16, "qk_rope_head_dim": 8, "kv_lora_rank": 12}
MIXTURE = {"moe_experts": 8, "moe_top_k": 2, "moe_d_ff": 40}
SHAPES: dict[str, dict[str, Any]] = {
    f"{attention}-{mlp}-{kind}": SMALL | {"d_ff": 160, "mlp": mlp} | about_attention | about_experts
    for attention, about_attention in {
        "heads": {},
        "grouped": {"n_kv_heads": 2},
        "one-kv": {"n_kv_heads": 1},
        "wide": {"head_dim": 32, "n_kv_heads": 2},
        "narrow": {"head_dim": 8},
        "two-widths": {"head_dim": 24, "v_head_dim": 16},
        "latent": LATENT,
        "latent-queries": LATENT | {"q_lora_rank": 20},
    }.items()
    for mlp in ("gelu", "swiglu")
    for kind, about_experts in {
        "dense": {"padded_vocab_size": 128},
        "mixture": MIXTURE,
        "partly-shared": MIXTURE | {"n_moe_layers": 1, "moe_shared_d_ff": 24},
    }.items()
}


@pytest.mark.parametrize("name", sorted(SHAPES))
def test_the_analytic_count_is_what_torch_counts(name: str) -> None:
    completed = shape(**SHAPES[name])
    per_token = conventions.count(completed).flops_per_token
    assert count_shape(completed) == per_token["olmo"] == per_token["nanochat"]


@pytest.mark.parametrize("name", ["gpt2", "llama-3.2-1b", "qwen3-0.6b", "gemma-2b", "mixtral-8x7b", "deepseek-v2-lite"])
def test_published_models_cost_what_torch_counts(name: str) -> None:
    facts = from_config(PUBLISHED[name][0])
    completed = shape(**facts, seq_len=512)
    assert count_shape(completed) == conventions.count(completed).flops_per_token["olmo"]


def test_other_conventions_differ_from_the_count_by_what_they_say() -> None:
    completed = shape(**SMALL | {"d_ff": 160, "mlp": "gelu", "n_params": 1, "position_embedding": "rope"})
    counted, per_token = count_shape(completed), conventions.count(completed).flops_per_token
    assert counted - per_token["megatron"] == 6 * 2 * 64 * 32, "the causal half"
    # chinchilla: the embedding as a product, and softmax
    assert per_token["chinchilla"] - counted == 6 * 96 * 64 + 3 * 2 * 3 * 4 * 32


def test_a_window_is_a_mask_to_the_counter() -> None:
    base = SMALL | {"d_ff": 160, "mlp": "gelu"}
    assert count_shape(shape(**base, attention_window=8)) == count_shape(shape(**base))


def test_missing_facts_are_named() -> None:
    with pytest.raises(TokenAxisError, match="d_ff, mlp"):
        count_shape(shape(**SMALL))


MODEL = """
import torch

class Tiny(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.table = torch.nn.Embedding(96, 64)
        self.qkv = torch.nn.Linear(64, 192)
        self.out = torch.nn.Linear(64, 64)
        self.head = torch.nn.Linear(64, 96, bias=False)

    def forward(self, tokens):
        x = self.table(tokens)
        q, k, v = self.qkv(x).unflatten(-1, (3, 4, 16)).permute(2, 0, 3, 1, 4)
        y = torch.nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True)
        return self.head(x + self.out(y.transpose(1, 2).flatten(2))), None

def broken():
    raise ValueError("no such size")
"""


def test_a_users_own_model_is_counted_with_its_attention(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "tiny_model_of_the_test.py").write_text(MODEL, encoding="utf-8")
    monkeypatch.syspath_prepend(str(tmp_path))
    counted = count_callable("tiny_model_of_the_test:Tiny", batch=3, seq_len=32)
    assert counted == 6 * (64 * 192 + 64 * 64 + 96 * 64) + 12 * 64 * 32
    for target in ("tiny_model_of_the_test:broken", "tiny_model_of_the_test:Absent", "absent_module:f", "nonsense"):
        with pytest.raises(TokenAxisError, match=target.replace(":", ".")):
            count_callable(target, batch=1, seq_len=8)
    sys.modules.pop("tiny_model_of_the_test", None)
