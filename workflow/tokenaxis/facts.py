"""Facts with their provenance, and the rule that decides between two values of one key."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

#: sources, strongest first: the user, the training loop's own words, a logger that was tapped, what a reader or an
#: agent found out, a measurement, and what was taken for granted. Same order as trainmeter's.
PRECEDENCE: tuple[str, ...] = ("declared", "emitted", "tapped", "detected", "measured", "assumed")

#: relative difference up to which two numbers are the same fact: float noise of a few roundings, no rounded figure
SAME_NUMBER = 1e-9


def rank(source: str) -> int:
    """Place of `source` in PRECEDENCE, 0 the strongest; a source that is not known comes after all that are."""
    return PRECEDENCE.index(source) if source in PRECEDENCE else len(PRECEDENCE)


def weakest(sources: Iterable[str]) -> str:
    """The weakest of `sources`: that of a value derived from all of them.

    Raises:
        ValueError: there are none.
    """
    return max(sources, key=rank)


def same(one: Any, other: Any) -> bool:
    """Whether two values state the same fact; numbers within float noise do, 1 and True do not."""
    if isinstance(one, bool) or isinstance(other, bool):
        return one is other
    if isinstance(one, int | float) and isinstance(other, int | float):
        return one == other or math.isclose(one, other, rel_tol=SAME_NUMBER)
    return bool(one == other)


@dataclass(frozen=True)
class Fact:
    """One statement about a run.

    Attributes:
        key: what it is about; see KNOWN.
        value: JSON-ready.
        source: who says so, one of PRECEDENCE.
        note: how it was found or derived, in words; None if there is nothing to say.
    """

    key: str
    value: Any
    source: str
    note: str | None = None

    def as_dict(self) -> dict[str, Any]:
        """{value, source, note} as artifacts hold it."""
        return {"value": self.value, "source": self.source, "note": self.note}


@dataclass(frozen=True)
class Conflict:
    """Two sources that disagree: the fact in force and the one that it overrules."""

    kept: Fact
    ignored: Fact

    def as_dict(self) -> dict[str, Any]:
        """{key, kept: {value, source, note}, ignored: {value, source, note}}."""
        return {"key": self.kept.key, "kept": self.kept.as_dict(), "ignored": self.ignored.as_dict()}


class FactStore:
    """All that was said about one run; per key the strongest source is in force, the latest of equally strong ones.

    Nothing offered is lost: `conflicts` gives what was overruled, `rejected` what could not be a value of its key.
    """

    def __init__(self, facts: Iterable[Fact] = ()) -> None:
        self._offers: dict[str, dict[tuple[str, Any], Fact]] = {}
        self._kept: dict[str, Fact] = {}
        self._rejected: dict[tuple[str, str, str], tuple[Fact, str]] = {}
        for fact in facts:
            self.offer(fact.key, fact.value, fact.source, fact.note)

    def offer(self, key: str, value: Any, source: str, note: str | None = None) -> None:
        """Hear one statement. A value that its key cannot have is set aside with the reason (see `rejected`)."""
        fact = Fact(key, value, source, note)
        reason = KNOWN[key].problem(value) if key in KNOWN else _not_json(value)
        if reason is not None:
            self._rejected[key, source, repr(value)] = (fact, reason)
            return
        # a key that changes during a run keeps one entry per source, so that a ramp of 1,000 batches costs one
        mark = (source, None if key in KNOWN and KNOWN[key].varies else repr(value))
        offers = self._offers.setdefault(key, {})
        offers.pop(mark, None)
        offers[mark] = fact
        kept = self._kept.get(key)
        if kept is None or rank(source) <= rank(kept.source):
            self._kept[key] = fact

    def get(self, key: str) -> Fact | None:
        """The fact in force, or None."""
        return self._kept.get(key)

    def value(self, key: str, default: Any = None) -> Any:
        """The value in force, or `default`."""
        fact = self._kept.get(key)
        return default if fact is None else fact.value

    def __contains__(self, key: str) -> bool:
        return key in self._kept

    def __iter__(self) -> Iterator[Fact]:
        return iter(self._kept.values())

    def __len__(self) -> int:
        return len(self._kept)

    @property
    def conflicts(self) -> list[Conflict]:
        """Statements that differ from the fact in force, by key, in the order in which they came."""
        return [
            Conflict(kept, offer)
            for key, kept in sorted(self._kept.items())
            for offer in self._offers[key].values()
            if not same(offer.value, kept.value)
        ]

    @property
    def rejected(self) -> list[tuple[Fact, str]]:
        """Statements that are no value of their key, each with the reason."""
        return list(self._rejected.values())

    def copy(self) -> FactStore:
        """An independent store with the same content."""
        other = FactStore()
        other._offers = {key: dict(offers) for key, offers in self._offers.items()}
        other._kept, other._rejected = dict(self._kept), dict(self._rejected)
        return other

    def as_dict(self) -> dict[str, dict[str, Any]]:
        """key -> {value, source, note} of the facts in force."""
        return {key: self._kept[key].as_dict() for key in sorted(self._kept)}

    @classmethod
    def from_dict(cls, data: Mapping[str, Mapping[str, Any]]) -> FactStore:
        """The inverse of `as_dict` (conflicts are not in it)."""
        return cls(Fact(key, entry["value"], entry["source"], entry.get("note")) for key, entry in data.items())


def gather(declared: Mapping[str, Any], logged: Iterable[Mapping[str, Any]] = ()) -> FactStore:
    """Everything known about a run before anything is derived.

    Args:
        declared: a declaration as `Declaration.as_dict` gives it; its `facts` and the fields that are facts themselves
            (seq_len, tokens_per_step, planned_tokens, planned_steps) count as declared.
        logged: the token axis' `facts`: mappings with key, value, source, note, in the order they were found.
    """
    store = FactStore(Fact(fact["key"], fact["value"], fact["source"], fact.get("note")) for fact in logged)
    for key in ("seq_len", "tokens_per_step", "planned_tokens", "planned_steps"):
        if declared.get(key) is not None:
            store.offer(key, declared[key], "declared")
    for key, value in declared.get("facts", {}).items():
        store.offer(key, value, "declared")
    return store


def _not_json(value: Any) -> str | None:
    """Why `value` cannot stand in a JSON artifact; None if it can."""
    if value is None:
        return "it is null"
    if isinstance(value, float) and not math.isfinite(value):
        return f"{value} is no number"
    if isinstance(value, str | bool | int | float):
        return None
    if isinstance(value, list | tuple):
        return next((problem for item in value if (problem := _not_json(item))), None)
    if isinstance(value, dict):
        return next((problem for item in value.values() if (problem := _not_json(item))), None)
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
        if (reason := _not_json(value)) is not None:
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
    KnownFact("exit_status", "amount", "", "exit status of the training command, 128 + n when signal n ended it"),
)
# fmt: on

#: key -> what it means; other keys are carried along untouched
KNOWN: dict[str, KnownFact] = {known.key: known for known in _MODEL + _RUN}
#: keys of a model's shape, in reading order
MODEL_KEYS: tuple[str, ...] = tuple(known.key for known in _MODEL)
