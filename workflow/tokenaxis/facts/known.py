"""The facts that the project understands: their kinds, units and meanings."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

#: no size, count or rate of a training run comes near; products of a few such numbers still fit a float
LARGEST = 1e30
#: a number below this is a fault of what wrote it, and dividing by it would overflow
SMALLEST = 1e-12


def not_json(value: Any) -> str | None:
    """Why `value` cannot stand in a JSON artifact; None if it can."""
    if value is None:
        return "it is null"
    if isinstance(value, float) and not math.isfinite(value):
        return f"{value} is no number"
    if isinstance(value, str | bool | int | float):
        return None
    if isinstance(value, list | tuple):
        return next((problem for item in value if (problem := not_json(item))), None)
    if isinstance(value, dict):
        return next((problem for item in value.values() if (problem := not_json(item))), None)
    return f"a {type(value).__name__} has no place in JSON"


@dataclass(frozen=True)
class KnownFact:
    """A key that the project understands.

    Attributes:
        key: its name.
        kind: "count" (integer >= 1), "amount" (integer >= 0), "number" (finite, > 0), "quantity" (finite, >= 0),
            "share" (0 < x <= 1), "text", "flag", "counts" (list of integers >= 0, one a layer), "command" (text or
            list of text) or "parts" (list of {name, s, ...}).
        unit: unit in words, "" if it has none.
        about: one line for documentation.
        varies: it may change while a run goes on, so that a later value of the same source is news, not a conflict.
    """

    key: str
    kind: str
    unit: str
    about: str
    varies: bool = False

    def problem(self, value: Any) -> str | None:
        """Why `value` cannot be a value of this key; None if it can."""
        if (reason := not_json(value)) is not None:
            return reason
        if self.kind in _SHAPES:
            fits, wanted = _SHAPES[self.kind]
            return None if fits(value) else f"it should be {wanted}"
        if not _number(value):
            return "it should be a number"
        if value > LARGEST:
            return "it is too large to be true"
        if self.kind in ("count", "amount") and value != int(value):
            return "it should be a whole number"
        if value < 0 or (value == 0 and self.kind not in ("amount", "quantity")):
            return "it should be positive"
        if 0 < value < SMALLEST:
            return "it is too small to be true"
        return "it should be a share, at most 1" if self.kind == "share" and value > 1 else None


def _number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _text(value: Any) -> bool:
    return isinstance(value, str) and bool(value)


def _counts(value: Any) -> bool:
    whole = isinstance(value, list | tuple) and bool(value)
    return whole and all(_number(item) and 0 <= item <= LARGEST and item == int(item) for item in value)


def _command(value: Any) -> bool:
    return _text(value) or (isinstance(value, list | tuple) and bool(value) and all(map(_text, value)))


def _parts(value: Any) -> bool:
    """A list of parts, each with a name, and seconds or nothing."""
    return isinstance(value, list | tuple) and all(
        isinstance(part, dict)
        and _text(part.get("name"))
        and (part.get("s") is None or (_number(part["s"]) and part["s"] >= 0))
        and isinstance(part.get("label", ""), str)
        and isinstance(part.get("reason") or "", str)
        and isinstance(part.get("measured", False), bool)
        for part in value
    )


#: kinds that are no numbers: whether a value is one, and what it should be
_SHAPES: dict[str, tuple[Callable[[Any], bool], str]] = {
    "text": (_text, "text"),
    "flag": (lambda value: isinstance(value, bool), "true or false"),
    "counts": (_counts, "a list of whole numbers, one a layer"),
    "command": (_command, "a command line"),
    "parts": (_parts, "a list of {name, s}"),
}


# fmt: off
_MODEL = (
    KnownFact("n_params", "count", "parameters", "all parameters, a shared weight once"),
    KnownFact("n_embedding_params", "amount", "parameters",
              "embedding tables that are only looked up: the token table unless tied to the head, and learned "
              "positions (a count that holds a tied token table too is recognised if vocab_size and tied_embeddings "
              "are known)"),
    KnownFact("n_params_nonembedding", "count", "parameters",
              "parameters outside embedding tables and vocabulary head"),
    KnownFact("n_position_params", "amount", "parameters", "learned position table"),
    KnownFact("n_frozen_params", "amount", "parameters", "parameters that are not trained"),
    KnownFact("n_layers", "count", "layers", "transformer blocks"),
    KnownFact("d_model", "count", "features", "width of the residual stream"),
    KnownFact("d_ff", "count", "features", "inner width of a dense feed-forward layer"),
    KnownFact("mlp", "text", "",
              "feed-forward kind: gelu, relu, relu2, silu (two matrices), swiglu, geglu, reglu, glu (three)"),
    KnownFact("n_heads", "count", "heads", "query heads"),
    KnownFact("n_kv_heads", "count", "heads", "key and value heads; fewer than n_heads in grouped-query attention"),
    KnownFact("head_dim", "count", "features", "width of one query or key head"),
    KnownFact("v_head_dim", "count", "features", "width of one value head, where it differs from head_dim"),
    KnownFact("q_lora_rank", "count", "features", "rank of the query projection in multi-head latent attention"),
    KnownFact("kv_lora_rank", "count", "features", "rank of the key-value projection in multi-head latent attention"),
    KnownFact("qk_rope_head_dim", "count", "features",
              "part of head_dim that carries rotary positions in multi-head latent attention"),
    KnownFact("seq_len", "count", "tokens", "tokens per training sequence", varies=True),
    KnownFact("vocab_size", "count", "tokens", "vocabulary"),
    KnownFact("padded_vocab_size", "count", "tokens", "rows of the token table and of the head, padding included"),
    KnownFact("tied_embeddings", "flag", "", "whether the head uses the token table"),
    KnownFact("position_embedding", "text", "", "learned, sinusoidal, rope, alibi or none"),
    KnownFact("max_positions", "count", "tokens", "rows of a learned position table"),
    KnownFact("attention_window", "count", "tokens", "keys that a query of a windowed layer sees"),
    KnownFact("n_window_layers", "amount", "layers",
              "layers that use attention_window; the others see the whole sequence"),
    KnownFact("attention_windows", "counts", "tokens", "window of each layer, 0 for the whole sequence"),
    KnownFact("moe_experts", "amount", "experts", "routed experts per mixture layer; 0 or 1 means dense"),
    KnownFact("moe_top_k", "count", "experts", "routed experts that one token passes"),
    KnownFact("moe_d_ff", "count", "features", "inner width of one routed expert"),
    KnownFact("moe_shared_d_ff", "amount", "features", "inner width of all shared experts together"),
    KnownFact("n_moe_layers", "amount", "layers", "layers whose feed-forward part is a mixture"),
    KnownFact("counted_flops_per_token", "number", "FLOP/token",
              "operators counted while the model ran, recompute included"),
)
_DERIVED = (
    KnownFact("attention_width", "quantity", "features", "width of the two attention products, all heads"),
    KnownFact("attention_keys", "quantity", "keys", "keys per query, summed over layers, no causal mask"),
    KnownFact("causal_keys", "quantity", "keys", "the same under the causal mask, mean over the sequence"),
    KnownFact("attention_params", "quantity", "parameters", "query, key, value and output matrices of all layers"),
    KnownFact("latent_norm_params", "quantity", "parameters", "norms inside multi-head latent attention"),
    KnownFact("mlp_matrices", "quantity", "matrices", "matrices of a feed-forward layer: 3 with a gate, else 2"),
    KnownFact("active_ff", "quantity", "features", "feed-forward width that one token passes, summed over layers"),
    KnownFact("router_params", "quantity", "parameters", "weights of the routers"),
    KnownFact("inactive_params", "quantity", "parameters", "experts that a token does not pass"),
    KnownFact("block_matmul_params", "quantity", "parameters", "linear layers that one token passes, without the head"),
    KnownFact("head_params", "quantity", "parameters", "the vocabulary head's matrix, tied or not"),
    KnownFact("lookup_params", "quantity", "parameters", "embedding tables that are only looked up"),
    KnownFact("table_params", "quantity", "parameters", "all embedding tables, a tied one among them"),
)
_RUN = (
    KnownFact("world_size", "count", "processes", "processes of the training job"),
    KnownFact("dp", "count", "ranks", "data-parallel ranks"),
    KnownFact("tp", "count", "ranks", "tensor-parallel ranks"),
    KnownFact("pp", "count", "ranks", "pipeline-parallel ranks"),
    KnownFact("n_gpus", "count", "devices", "accelerators that the run used"),
    KnownFact("gpu", "text", "", "name of the accelerator, as its driver gives it"),
    KnownFact("precision", "text", "", "number format of the matrix products: bf16, fp16 or fp8"),
    KnownFact("peak_tflops", "number", "TFLOP/s", "dense peak of one accelerator"),
    KnownFact("peak_source", "text", "", "where peak_tflops comes from"),
    KnownFact("tokens_per_step", "number", "tokens/step", "global batch", varies=True),
    KnownFact("tokens_per_s", "number", "tokens/s", "throughput of the whole job", varies=True),
    KnownFact("moving_tokens_per_s", "number", "tokens/s", "throughput at the end, a moving average", varies=True),
    KnownFact("tensor_active", "share", "", "share of cycles in which the tensor pipe was busy, mean over the run"),
    KnownFact("dram_active", "share", "", "share of the memory bandwidth in use, mean over the run"),
    KnownFact("sm_clock_mhz", "number", "MHz", "clock of the processors, mean over the run"),
    KnownFact("max_sm_clock_mhz", "number", "MHz", "highest clock that the device reports"),
    KnownFact("elapsed_s", "number", "s", "wall time of the run, all attempts", varies=True),
    KnownFact("gpu_hours", "number", "GPU h", "accelerators times wall time"),
    KnownFact("goodput", "share", "", "share of the wall time spent in steps that count", varies=True),
    KnownFact("price_per_gpu_hour", "number", "currency/GPU h", "price, only ever declared, never exported"),
    KnownFact("price_currency", "text", "", "currency of the price, e.g. USD"),
    KnownFact("planned_tokens", "number", "tokens", "planned end of the run"),
    KnownFact("planned_steps", "count", "steps", "planned end of the run"),
    KnownFact("planned_flops", "number", "FLOP", "planned end of the run, under its chosen convention"),
    KnownFact("plan_mfu", "share", "", "utilisation that the plan counted on"),
    KnownFact("plan_tokens_per_s", "number", "tokens/s", "throughput that the plan counted on"),
    KnownFact("plan_hours", "number", "h", "wall time that the plan counted on"),
    KnownFact("convention", "text", "", "FLOP convention that trainmeter was told to use, by its name there"),
    KnownFact("command", "command", "", "command line, redacted"),
    KnownFact("time_parts", "parts", "s", "where the wall time went", varies=True),
    KnownFact("python", "text", "", "version of Python"),
    KnownFact("torch", "text", "", "version of PyTorch"),
    KnownFact("cuda", "text", "", "version of CUDA"),
    KnownFact("trainmeter", "text", "", "version of trainmeter"),
    KnownFact("finished", "flag", "", "whether the log holds the end of the run"),
    KnownFact("exit_status", "amount", "", "exit status of the training command, 128 + n when signal n ended it"),
)
# fmt: on

#: key -> what it means; other keys are carried along untouched
KNOWN: dict[str, KnownFact] = {known.key: known for known in _MODEL + _DERIVED + _RUN}
#: other names of a fact in logs -> ours; trainmeter's budget is our plan
ALIASES: dict[str, str] = {
    "budget_tokens": "planned_tokens",
    "budget_steps": "planned_steps",
    "budget_flops": "planned_flops",
}
#: keys of a model's shape, in reading order
MODEL_KEYS: tuple[str, ...] = tuple(known.key for known in _MODEL)
