"""The facts that the project understands: their kinds, units and meanings."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any


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
        kind: "count" (integer >= 1), "amount" (integer >= 0), "number" (finite, > 0), "share" (0 < x <= 1), "text",
            "flag" or "counts" (list of integers >= 0, one a layer).
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
        if self.kind == "text":
            return None if isinstance(value, str) and value else "it should be text"
        if self.kind == "flag":
            return None if isinstance(value, bool) else "it should be true or false"
        if self.kind == "counts":
            whole = isinstance(value, list | tuple) and all(_number(item) and item >= 0 for item in value)
            return None if whole else "it should be a list of whole numbers, one a layer"
        if not _number(value):
            return "it should be a number"
        if self.kind in ("count", "amount") and value != int(value):
            return "it should be a whole number"
        if value < 0 or (value == 0 and self.kind != "amount"):
            return "it should be positive"
        return "it should be a share, at most 1" if self.kind == "share" and value > 1 else None


def _number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


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
    KnownFact("elapsed_s", "number", "s", "wall time of the run, all attempts", varies=True),
    KnownFact("gpu_hours", "number", "GPU h", "accelerators times wall time"),
    KnownFact("goodput", "share", "", "share of the wall time spent in steps that count", varies=True),
    KnownFact("price_per_gpu_hour", "number", "USD/GPU h", "price, only ever declared"),
    KnownFact("planned_tokens", "number", "tokens", "planned end of the run"),
    KnownFact("planned_steps", "count", "steps", "planned end of the run"),
    KnownFact("plan_mfu", "share", "", "utilisation that the plan counted on"),
    KnownFact("plan_tokens_per_s", "number", "tokens/s", "throughput that the plan counted on"),
    KnownFact("plan_hours", "number", "h", "wall time that the plan counted on"),
    KnownFact("convention", "text", "", "FLOP convention that trainmeter was told to use, by its name there"),
    KnownFact("python", "text", "", "version of Python"),
    KnownFact("torch", "text", "", "version of PyTorch"),
    KnownFact("cuda", "text", "", "version of CUDA"),
    KnownFact("trainmeter", "text", "", "version of trainmeter"),
    KnownFact("finished", "flag", "", "whether the log holds the end of the run"),
    KnownFact("exit_status", "amount", "", "exit status of the training command, 128 + n when signal n ended it"),
)
# fmt: on

#: key -> what it means; other keys are carried along untouched
KNOWN: dict[str, KnownFact] = {known.key: known for known in _MODEL + _RUN}
#: keys of a model's shape, in reading order
MODEL_KEYS: tuple[str, ...] = tuple(known.key for known in _MODEL)
