"""Facts from the settings that a trainer writes beside its losses: argument dumps, run configs, headers."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

Fact = tuple[str, Any, str, str | None]

#: a setting's name, lower case -> fact key
_COUNTS = {
    "n_layer": "n_layers",
    "n_layers": "n_layers",
    "num_layers": "n_layers",
    "num_hidden_layers": "n_layers",
    "n_head": "n_heads",
    "n_heads": "n_heads",
    "num_heads": "n_heads",
    "num_attention_heads": "n_heads",
    "num_key_value_heads": "n_kv_heads",
    "n_kv_heads": "n_kv_heads",
    "n_embd": "d_model",
    "d_model": "d_model",
    "hidden_size": "d_model",
    "intermediate_size": "d_ff",
    "ffn_hidden_size": "d_ff",
    "head_dim": "head_dim",
    "block_size": "seq_len",
    "seq_len": "seq_len",
    "seq_length": "seq_len",
    "max_seq_len": "seq_len",
    "max_seq_length": "seq_len",
    "max_sequence_length": "seq_len",
    "sequence_length": "seq_len",
    "vocab_size": "vocab_size",
    "max_iters": "planned_steps",
    "max_steps": "planned_steps",
    "train_iters": "planned_steps",
    "total_steps": "planned_steps",
    "warmup_iters": "warmup_steps",
    "warmup_steps": "warmup_steps",
    "world_size": "world_size",
    "tokens_per_step": "tokens_per_step",
    "total_batch_size_tokens": "tokens_per_step",
    "global_batch_size_tokens": "tokens_per_step",
}
_NUMBERS = {"learning_rate": "lr_peak", "lr": "lr_peak", "min_lr": "lr_final"}
_PER_DEVICE = "per_device_train_batch_size"
_SEQUENCES = ("global_batch_size", "global_train_batch_size", "train_batch_size", "train_global_batch_size")
_LENGTHS = (
    "seq_length",
    "seq_len",
    "sequence_length",
    "max_seq_len",
    "max_seq_length",
    "max_sequence_length",
    "block_size",
)
#: products that a trainer's source forms: nanoGPT's train.py multiplies by the ranks after dividing by them;
#: Megatron-LM, GPT-NeoX, OLMo, litgpt and levanter count a global batch in sequences, HF's Trainer that of one device
_PRODUCTS = (
    ("gradient_accumulation_steps", "batch_size", "block_size"),
    *((sequences, length) for sequences in _SEQUENCES for length in _LENGTHS),
    *((_PER_DEVICE, "gradient_accumulation_steps", "world_size", length) for length in _LENGTHS),
)


def facts_of(settings: Mapping[str, Any], where: str) -> list[Fact]:
    """Facts that settings state, each with the setting's name in its note.

    Args:
        settings: name -> value, nested mappings flattened by the caller.
        where: what the settings are called in notes.
    """
    plain: dict[str, tuple[str, float]] = {}
    for name, value in settings.items():
        number = _positive(value)
        if number is not None:
            plain.setdefault(name.lower().rsplit(".", 1)[-1], (name, number))
    facts: list[Fact] = []
    for key, (name, number) in plain.items():
        if key in _COUNTS and number == int(number):
            facts.append((_COUNTS[key], int(number), "emitted", f"{where}: {name}"))
        elif key in _NUMBERS:
            facts.append((_NUMBERS[key], number, "emitted", f"{where}: {name}"))
    if _PER_DEVICE in plain:  # then HF's train_batch_size is that of one machine
        plain.pop("train_batch_size", None)
    for factors in () if any(key == "tokens_per_step" for key, *_ in facts) else _PRODUCTS:
        if all(factor in plain for factor in factors):
            product = math.prod(plain[factor][1] for factor in factors)
            if product == int(product):
                facts.append(("tokens_per_step", int(product), "detected", f"{where}: {' * '.join(factors)}"))
                break
    return facts


def _positive(value: Any) -> float | None:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return float(value) if 0 < value < 1e18 else None
