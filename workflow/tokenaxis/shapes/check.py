"""Whether what is stated about a model can be true together."""

from __future__ import annotations

from tokenaxis.facts import FactStore
from tokenaxis.shapes.derive import Shape

#: largest share of the parameters that norms, biases and the like make up in a model wide enough to be trained
#: (GPT-2 124M: 0.1 %, a 64-wide toy: 1.2 %); a larger difference means that a stated number is wrong
VECTORS_SHARE = 0.03

#: (smaller, larger): pairs of facts of which the first is a part of the second
_PARTS = (
    ("moe_top_k", "moe_experts"),
    ("n_moe_layers", "n_layers"),
    ("n_window_layers", "n_layers"),
    ("n_kv_heads", "n_heads"),
    ("n_embedding_params", "n_params"),
    ("n_params_nonembedding", "n_params"),
    ("n_frozen_params", "n_params"),
    ("vocab_size", "padded_vocab_size"),
    ("qk_rope_head_dim", "head_dim"),
    ("dp", "world_size"),
)


def check(shape: Shape) -> list[str]:
    """What does not fit together, one sentence each without a full stop; [] if nothing contradicts."""
    facts = shape.facts
    found = [
        f"{part} = {facts.value(part):,.0f} is more than {whole} = {facts.value(whole):,.0f}"
        for part, whole in _PARTS
        if part in facts and whole in facts and facts.value(part) > facts.value(whole)
    ]
    windows = facts.value("attention_windows")
    if windows is not None and len(windows) != facts.value("n_layers", len(windows)):
        found.append(f"attention_windows names {len(windows)} layers and n_layers = {facts.value('n_layers'):,.0f}")
    if (mismatch := _parameters(shape)) is not None:
        found.append(mismatch)
    return found


def _parameters(shape: Shape) -> str | None:
    """Whether the stated parameter count fits the stated shape; None if so or if it cannot be told.

    The count from the shape leaves norms, biases and other vectors out; see VECTORS_SHARE.
    """
    facts = shape.facts
    if "n_params" in shape.derivations or (counted := _in_matrices(facts)) is None:
        return None
    stated = facts.value("n_params")
    if abs(stated - counted) <= VECTORS_SHARE * counted:
        return None
    return (
        f"n_params = {stated:,.0f} and the matrices and tables of the stated shape hold {counted:,.0f}: "
        f"{abs(stated / counted - 1):.1%} apart, more than norms and biases explain"
    )


def _in_matrices(facts: FactStore) -> float | None:
    """Parameters in matrices and tables, or None if the shape is not known well enough."""
    keys = ["n_params", "tied_embeddings", "block_matmul_params", "inactive_params", "table_params"]
    if facts.value("tied_embeddings") is False:
        keys.append("head_params")
    if any(key not in facts for key in keys):
        return None
    total = float(sum(facts.value(key) for key in keys[2:]))
    return total if total > 0 else None
