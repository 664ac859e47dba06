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
#: products that a trainer's source forms; nanoGPT's train.py multiplies by the ranks after dividing by them
_PRODUCTS = (("gradient_accumulation_steps", "batch_size", "block_size"),)


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
    for factors in _PRODUCTS:
        if all(factor in plain for factor in factors):
            product = math.prod(plain[factor][1] for factor in factors)
            if product == int(product):
                facts.append(("tokens_per_step", int(product), "detected", f"{where}: {' * '.join(factors)}"))
    return facts


def _positive(value: Any) -> float | None:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return float(value) if 0 < value < 1e18 else None
