"""Feed-forward layers, dense or mixtures of experts."""

from __future__ import annotations

from tokenaxis.facts import FactStore
from tokenaxis.shapes.rule import Rule

#: feed-forward kinds with a gate (three matrices), and plain ones (two)
GATED = ("swiglu", "geglu", "reglu", "glu")
PLAIN = ("gelu", "relu", "relu2", "silu")

_DENSE = "no experts are stated: a dense model"


def is_mixture(facts: FactStore) -> bool:
    """Whether the model has routed experts."""
    return bool(facts.value("moe_experts", 0) > 1)


def is_dense(facts: FactStore) -> bool:
    """Whether the model has none."""
    return not is_mixture(facts)


RULES: tuple[Rule, ...] = (
    Rule(
        "mlp_matrices",
        ("mlp",),
        f"3 if mlp in {GATED} else 2",
        lambda mlp: 3 if mlp in GATED else 2,
        when=lambda facts: facts.value("mlp") in GATED + PLAIN or "mlp" not in facts,
        note="a gated layer has three matrices, a plain one two",
    ),
    Rule("n_moe_layers", (), "0", lambda: 0, when=is_dense, note=_DENSE),
    Rule(
        "n_moe_layers",
        ("n_layers",),
        "n_layers",
        lambda layers: layers,
        when=is_mixture,
        assumes="every layer is a mixture",
    ),
    Rule("moe_d_ff", ("d_ff",), "d_ff", lambda d_ff: d_ff, when=is_mixture, assumes="an expert is as wide as d_ff"),
    Rule("moe_shared_d_ff", (), "0", lambda: 0, note="no shared experts are stated"),
    Rule(
        "active_ff",
        ("n_layers", "d_ff"),
        "n_layers * d_ff",
        lambda layers, d_ff: layers * d_ff,
        when=is_dense,
        note=f"feed-forward width that one token passes, summed over layers; {_DENSE}",
    ),
    Rule(
        "active_ff",
        ("n_moe_layers", "moe_top_k", "moe_d_ff", "moe_shared_d_ff"),
        "n_moe_layers * (moe_top_k * moe_d_ff + moe_shared_d_ff)",
        lambda mixed, top_k, expert, shared: mixed * (top_k * expert + shared),
        when=lambda facts: (
            is_mixture(facts) and facts.value("n_moe_layers", facts.value("n_layers")) == facts.value("n_layers")
        ),
        note="feed-forward width that one token passes, summed over layers",
    ),
    Rule(
        "active_ff",
        ("n_layers", "n_moe_layers", "d_ff", "moe_top_k", "moe_d_ff", "moe_shared_d_ff"),
        "(n_layers - n_moe_layers) * d_ff + n_moe_layers * (moe_top_k * moe_d_ff + moe_shared_d_ff)",
        lambda layers, mixed, d_ff, top_k, expert, shared: (layers - mixed) * d_ff + mixed * (top_k * expert + shared),
        when=is_mixture,
        note="feed-forward width that one token passes, summed over layers",
    ),
    Rule("router_params", (), "0", lambda: 0, when=is_dense, note=_DENSE),
    Rule(
        "router_params",
        ("n_moe_layers", "d_model", "moe_experts"),
        "n_moe_layers * d_model * moe_experts",
        lambda mixed, d_model, experts: mixed * d_model * experts,
        when=is_mixture,
    ),
    Rule("inactive_params", (), "0", lambda: 0, when=is_dense, note=_DENSE),
    Rule(
        "inactive_params",
        ("n_moe_layers", "moe_experts", "moe_top_k", "mlp_matrices", "d_model", "moe_d_ff"),
        "n_moe_layers * (moe_experts - moe_top_k) * mlp_matrices * d_model * moe_d_ff",
        lambda mixed, experts, top_k, matrices, d_model, expert: (
            mixed * (experts - top_k) * matrices * d_model * expert
        ),
        when=is_mixture,
        note="experts that a token does not pass",
    ),
    Rule(
        "block_matmul_params",
        ("attention_params", "d_model", "mlp_matrices", "active_ff", "router_params"),
        "attention_params + d_model * mlp_matrices * active_ff + router_params",
        lambda attention, d_model, matrices, active_ff, router: attention + d_model * matrices * active_ff + router,
        note="weights of linear layers that one token passes, without the head",
    ),
)
