"""FLOPs counted, not computed: torch's FlopCounterMode over forward and backward on the meta device.

A decoder of the declared shape is run on tensors without data, so that a model of any size is counted in milliseconds
on any machine. What is counted is what is executed: every matrix product, the full attention square whatever the mask,
no element-wise work. Torch is an extra and is imported only here, when it is needed.

On CPU tensors FlopCounterMode misses scaled_dot_product_attention altogether (its registry lacks the CPU kernel); here
attention is spelled out as two matrix products, and a user's model runs with the math backend.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from tokenaxis.errors import TokenAxisError
from tokenaxis.shapes import Shape

if TYPE_CHECKING:
    import torch

#: what the reference decoder needs to know; latent attention and experts add their own
NEEDS = ("n_layers", "d_model", "n_heads", "head_dim", "mlp_matrices", "padded_vocab_size", "seq_len", "active_ff")


def count_shape(shape: Shape) -> float:
    """FLOPs per token, forward and backward, of a decoder of that shape; one sequence of seq_len tokens.

    Windows are run as masks, so the full square counts; of a mixture the experts run that a token passes.

    Raises:
        TokenAxisError: torch is not installed, or facts are missing.
    """
    missing = sorted({fact for key in (*NEEDS, "attention_params") for fact in shape.missing(key)})
    if missing:
        raise TokenAxisError(f"counting needs {', '.join(missing)}")
    torch = _torch()
    decoder = _Decoder(torch, shape)
    seq_len = int(shape.facts.value("seq_len"))
    return _count(torch, decoder.forward) / seq_len


def count_callable(target: str, batch: int, seq_len: int) -> float:
    """FLOPs per token, forward and backward, of a user's own model.

    Args:
        target: "module:callable"; called without arguments, on the meta device, it returns a torch.nn.Module whose
            forward takes token ids of shape (batch, seq_len) and returns logits, a tuple that starts with them, or an
            object with `.logits`.
        batch, seq_len: size of the batch that is run.

    Raises:
        TokenAxisError: torch is not installed, the target cannot be imported, or its model cannot be run.
    """
    torch = _torch()
    name, _, attribute = target.partition(":")
    try:
        make = getattr(importlib.import_module(name), attribute)
    except (ImportError, AttributeError, ValueError) as error:
        raise TokenAxisError(f"cannot import {target!r}: {error}", remedy="write module:callable") from error
    try:
        with torch.device("meta"):
            model, tokens = make(), torch.zeros((batch, seq_len), dtype=torch.long)
        with torch.nn.attention.sdpa_kernel(torch.nn.attention.SDPBackend.MATH):
            total = _count(torch, lambda: _logits(model(tokens)))
    except (RuntimeError, NotImplementedError, TypeError, ValueError) as error:
        reason = str(error).splitlines()[0]
        raise TokenAxisError(f"{target!r} cannot be run on the meta device: {reason}") from error
    return total / (batch * seq_len)


def _torch() -> Any:
    try:
        import torch
        import torch.nn.attention
        import torch.utils.flop_counter
    except ImportError as error:
        raise TokenAxisError("torch is not installed", remedy="pip install tokenaxis[torch]") from error
    return torch


def _count(torch: Any, forward: Callable[[], torch.Tensor]) -> float:
    """FLOPs of `forward` and of the backward pass from the sum of its result."""
    with torch.utils.flop_counter.FlopCounterMode(display=False) as counter:
        forward().sum().backward()
    return float(counter.get_total_flops())


def _logits(output: Any) -> torch.Tensor:
    if hasattr(output, "logits"):
        return output.logits
    return output[0] if isinstance(output, tuple) else output


class _Decoder:
    """The reference decoder: matrix products of a transformer of some shape, on tensors without data.

    Norms, positions and masks take no matrix product and are left out. Weights are made where they are used; each is a
    leaf that wants a gradient, as in training.
    """

    def __init__(self, torch: Any, shape: Shape) -> None:
        self.torch = torch
        self.facts = shape.facts
        self.mixed = int(self.facts.value("n_moe_layers", 0))

    def forward(self) -> torch.Tensor:
        """Logits of one sequence: (seq_len, vocabulary)."""
        vocabulary, d_model = self._int("padded_vocab_size"), self._int("d_model")
        tokens = self.torch.zeros(self._int("seq_len"), dtype=self.torch.long, device="meta")
        stream = self.torch.nn.functional.embedding(tokens, self._weight(vocabulary, d_model))
        latent = "kv_lora_rank" in self.facts
        for layer in range(self._int("n_layers")):
            stream = stream + (self._latent_attention(stream) if latent else self._attention(stream))
            # which layers are mixtures does not matter for the count, only how many
            stream = stream + (self._mixture(stream) if layer < self.mixed else self._dense(stream, self._int("d_ff")))
        return self._linear(stream, vocabulary)

    def _attention(self, stream: torch.Tensor) -> torch.Tensor:
        heads, kv_heads, width = self._int("n_heads"), self._int("n_kv_heads"), self._int("head_dim")
        value_width = int(self.facts.value("v_head_dim", width))
        query = self._heads(self._linear(stream, heads * width), heads)
        key = self._heads(self._linear(stream, kv_heads * width), kv_heads).repeat_interleave(heads // kv_heads, 0)
        value = self._heads(self._linear(stream, kv_heads * value_width), kv_heads)
        return self._attend(query, key, value.repeat_interleave(heads // kv_heads, 0))

    def _latent_attention(self, stream: torch.Tensor) -> torch.Tensor:
        """DeepSeek-V2 (arXiv 2405.04434), section 2.1."""
        heads, width, value_width = self._int("n_heads"), self._int("head_dim"), self._int("v_head_dim")
        rank, rope = self._int("kv_lora_rank"), self._int("qk_rope_head_dim")
        compressed = self._linear(stream, self._int("q_lora_rank")) if "q_lora_rank" in self.facts else stream
        query = self._heads(self._linear(compressed, heads * width), heads)
        latent = self._linear(stream, rank + rope)
        both = self._heads(self._linear(latent[:, :rank], heads * (width - rope + value_width)), heads)
        shared = latent[:, rank:].expand(heads, -1, -1)
        key = self.torch.cat([both[..., : width - rope], shared], -1)
        return self._attend(query, key, both[..., width - rope :])

    def _attend(self, query: torch.Tensor, key: torch.Tensor, value: torch.Tensor) -> torch.Tensor:
        """(heads, seq_len, width) each -> (seq_len, d_model)."""
        mixed = (query @ key.transpose(1, 2)).softmax(-1) @ value
        return self._linear(mixed.transpose(0, 1).flatten(1), self._int("d_model"))

    def _dense(self, stream: torch.Tensor, width: int) -> torch.Tensor:
        inner = self._linear(stream, width)
        if self._int("mlp_matrices") == 3:
            inner = inner * self._linear(stream, width)
        return self._linear(inner, self._int("d_model"))

    def _mixture(self, stream: torch.Tensor) -> torch.Tensor:
        """Router, top-k experts, shared experts. Every token passes top_k experts, so top_k dense layers are run."""
        weights = self._linear(stream, self._int("moe_experts")).softmax(-1)
        result = weights[:, :1] * 0
        for expert in range(self._int("moe_top_k")):
            result = result + weights[:, expert : expert + 1] * self._dense(stream, self._int("moe_d_ff"))
        shared = int(self.facts.value("moe_shared_d_ff", 0))
        return result + self._dense(stream, shared) if shared else result

    def _linear(self, stream: torch.Tensor, width: int) -> torch.Tensor:
        return self.torch.nn.functional.linear(stream, self._weight(width, stream.shape[-1]))

    def _heads(self, stream: torch.Tensor, heads: int) -> torch.Tensor:
        return stream.unflatten(1, (heads, -1)).transpose(0, 1)

    def _weight(self, rows: int, columns: int) -> torch.Tensor:
        return self.torch.empty((rows, columns), device="meta", requires_grad=True)

    def _int(self, key: str) -> int:
        return int(self.facts.value(key))
