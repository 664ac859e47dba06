"""FLOPs per token of one model under every convention."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from tokenaxis.conventions.registry import REGISTRY
from tokenaxis.facts import FactStore, weakest
from tokenaxis.shapes import Shape, complete


@dataclass
class Counts:
    """FLOPs per token of one model.

    Attributes:
        flops_per_token: convention -> FLOPs per token, forward and backward; in the registry's order.
        sources: convention -> source of that number, the weakest of its inputs'.
        not_available: convention -> "needs d_ff, mlp": the facts that are missing.
    """

    flops_per_token: dict[str, float] = field(default_factory=dict)
    sources: dict[str, str] = field(default_factory=dict)
    not_available: dict[str, str] = field(default_factory=dict)


def count(shape: Shape) -> Counts:
    """Apply every registered convention to a completed shape."""
    counts = Counts()
    for name, convention in REGISTRY.items():
        inputs = [shape.facts.get(key) for key in convention.needs]
        present = [fact for fact in inputs if fact is not None]
        if len(present) < len(inputs):
            counts.not_available[name] = needs(shape, convention.needs)
            continue
        flops = convention.compute(*(fact.value for fact in present))
        if not flops > 0:
            counts.not_available[name] = "the facts contradict each other: no positive number comes out"
            continue
        counts.flops_per_token[name] = whole(flops)
        counts.sources[name] = weakest(fact.source for fact in present)
    return counts


def compute(facts: FactStore) -> dict[str, Any]:
    """FLOPs per token of the model that `facts` describe.

    Returns:
        flops_per_token: convention -> number · formulas: convention -> text · not_available: convention -> reason.
    """
    counts = count(complete(facts))
    return {
        "flops_per_token": counts.flops_per_token,
        "formulas": {name: REGISTRY[name].formula for name in counts.flops_per_token},
        "not_available": counts.not_available,
    }


def needs(shape: Shape, keys: tuple[str, ...]) -> str:
    """The reason that names the given facts still missing for `keys`: "needs d_ff, mlp"."""
    return "needs " + ", ".join(sorted({fact for key in keys for fact in shape.missing(key)}))


def whole(number: float) -> float:
    """An integral float as an integer, so that artifacts show 741120 and not 741120.0."""
    return int(number) if number == int(number) else number
