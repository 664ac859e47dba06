"""Facts from the arguments that Megatron-LM and GPT-NeoX print before iterations: `  seq_length ........ 2048`."""

from __future__ import annotations

import re
from typing import Any

from tokenaxis.readers.headers import Fact, amount, header_facts, line_of, whole, words

#: GPT-NeoX writes behind each value whether it was set: `768.........................updated`
_ARGUMENT = rb"(?m)^(?:\[?\w+\]?: *)? {1,4}(\w+) \.{2,} ?([^\r\n]*?)(?:\.{3,}(?:updated|default))?[ \t\r]*$"
#: Megatron-Core's data set, in a log that lacks the arguments (rank 0's alone, a tail)
_DATA_SET = rb"\bGPTDatasetConfig\([^\n]{0,400}?\bsequence_length=([1-9]\d{0,8})\b"


def _choice(text: bytes) -> str | None:
    """The last part of an enumeration's name: PositionEmbeddingType.alibi."""
    return text.split(b".")[-1].decode("ascii", "replace") or None


def _precision(text: bytes) -> str | None:
    return {b"torch.bfloat16": "bf16", b"torch.float16": "fp16"}.get(text)


_FACTS: dict[bytes, tuple[str, Any]] = {
    b"num_layers": ("n_layers", whole),
    b"hidden_size": ("d_model", whole),
    b"ffn_hidden_size": ("d_ff", whole),
    b"num_attention_heads": ("n_heads", whole),
    b"kv_channels": ("head_dim", whole),
    b"seq_length": ("seq_len", whole),
    b"padded_vocab_size": ("padded_vocab_size", whole),
    b"max_position_embeddings": ("max_positions", whole),
    b"position_embedding_type": ("position_embedding", _choice),
    b"params_dtype": ("precision", _precision),
    b"world_size": ("world_size", whole),
    b"data_parallel_size": ("dp", whole),
    b"global_num_gpus": ("world_size", whole),
    b"model_parallel_size": ("tp", whole),
    b"pipe_parallel_size": ("pp", whole),
    b"tensor_model_parallel_size": ("tp", whole),
    b"pipeline_model_parallel_size": ("pp", whole),
    b"num_experts": ("moe_experts", whole),
    b"train_iters": ("planned_steps", whole),
    b"lr": ("lr_peak", amount),
    b"min_lr": ("lr_final", amount),
    b"lr_decay_style": ("lr_schedule", words),
    b"log_interval": ("train_loss_interval_steps", whole),
}


def arguments(head: bytes) -> list[Fact]:
    """Facts of the arguments.

    Args:
        head: the log up to its first iteration.
    """
    facts = header_facts(head, re.compile(_ARGUMENT), _FACTS, "arguments")
    if not any(key == "seq_len" for key, *_ in facts):
        match = re.search(_DATA_SET, head)
        if match is not None:
            facts.append(("seq_len", int(match.group(1)), "emitted", f"line {line_of(head, match.start())}: data set"))
    return facts


def arguments_in_sequences(head: bytes, seq_len: float | None) -> list[Fact]:
    """Planned tokens and, of GPT-NeoX, whose lines do not state it, the batch; none without a sequence length.

    Args:
        head: the log up to its first iteration.
        seq_len: tokens of a sequence.
    """
    counts = {b"train_samples": ("planned_tokens", whole), b"train_batch_size": ("tokens_per_step", whole)}
    found = header_facts(head, re.compile(_ARGUMENT), counts, "arguments")
    if not seq_len:
        return []
    return [(key, int(value * seq_len), source, f"{note} * seq_length") for key, value, source, note in found]
