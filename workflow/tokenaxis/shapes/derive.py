"""Completing a shape: every quantity that follows from the facts, with the source and the arithmetic of each."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from tokenaxis.facts import ABSENT, Fact, FactStore, weakest
from tokenaxis.shapes import attention, feed_forward, tables
from tokenaxis.shapes.rule import Rule

_RULES: dict[str, list[Rule]] = {}
for _rule in (*attention.RULES, *feed_forward.RULES, *tables.RULES):
    _RULES.setdefault(_rule.key, []).append(_rule)

#: largest share of the parameters that norms, biases and the like make up in a model wide enough to be trained
#: (GPT-2 124M: 0.1 %, a 64-wide toy: 1.2 %); a larger difference means that a stated number is wrong
VECTORS_SHARE = 0.03


@dataclass(frozen=True)
class Derivation:
    """How a quantity was derived: `formula` in the names of `inputs`, in Python's notation, and what it assumes."""

    formula: str
    inputs: tuple[str, ...]
    assumes: str | None = None


@dataclass
class Shape:
    """Facts and what follows from them.

    Attributes:
        facts: the given facts and the derived ones.
        derivations: key -> how it was derived, of the derived ones only.
    """

    facts: FactStore
    derivations: dict[str, Derivation] = field(default_factory=dict)

    def missing(self, key: str) -> tuple[str, ...]:
        """The given facts that `key` would still need, on the way that needs fewest; () if it is there."""
        return tuple(sorted(_missing(key, self.facts, frozenset())))


def complete(given: FactStore) -> Shape:
    """Derive all that can be derived; what was given is never replaced, and `given` itself stays as it is.

    A derived value's source is the weakest of its inputs', "assumed" where the rule takes something for granted, or
    ABSENT where it only says that the model lacks something; its note is the formula.
    """
    shape = Shape(given.copy())
    for key in _RULES:
        _resolve(key, given, shape, frozenset())
    return shape


def check(shape: Shape) -> str | None:
    """Whether the stated parameter count fits the stated shape; None if so or if it cannot be told.

    The count from the shape leaves norms, biases and other vectors out; see VECTORS_SHARE.
    """
    facts = shape.facts
    keys = ("n_params", "block_matmul_params", "inactive_params", "table_params")
    if "n_params" in shape.derivations or any(key not in facts for key in keys) or "tied_embeddings" not in facts:
        return None
    stated, body, inactive, table = (facts.value(key) for key in keys)
    counted = body + inactive + table
    if facts.value("tied_embeddings") is False:
        if "head_params" not in facts:
            return None
        counted += facts.value("head_params")
    if abs(stated - counted) <= VECTORS_SHARE * counted:
        return None
    return (
        f"n_params says {stated:,.0f} and the stated shape has {counted:,.0f} in its matrices and tables: "
        f"{abs(stated / counted - 1):.1%} apart, more than norms and biases explain"
    )


def _applicable(key: str, given: FactStore) -> list[Rule]:
    return [rule for rule in _RULES.get(key, ()) if rule.when is None or rule.when(given)]


def _resolve(key: str, given: FactStore, shape: Shape, pending: frozenset[str]) -> Fact | None:
    """The fact `key`, derived now if it must be; `pending` are the keys whose derivation asked for it."""
    if (known := shape.facts.get(key)) is not None:
        return known
    if key in pending:
        return None
    for rule in _applicable(key, given):
        inputs = [_resolve(need, given, shape, pending | {key}) for need in rule.needs]
        if any(fact is None for fact in inputs):
            continue
        present = [fact for fact in inputs if fact is not None]
        _offer(rule, present, shape)
        return shape.facts.get(key)
    return None


def _offer(rule: Rule, inputs: list[Fact], shape: Shape) -> None:
    value: Any = rule.compute(*(fact.value for fact in inputs))
    source = "assumed" if rule.assumes else weakest(fact.source for fact in inputs) if inputs else ABSENT
    remarks = (f"assumed: {rule.assumes}" if rule.assumes else None, rule.note)
    note = "; ".join((f"= {rule.formula}", *(remark for remark in remarks if remark)))
    shape.facts.offer(rule.key, value, source, note)
    shape.derivations[rule.key] = Derivation(rule.formula, rule.needs, rule.assumes)


def _missing(key: str, facts: FactStore, pending: frozenset[str]) -> frozenset[str]:
    if key in facts:
        return frozenset()
    ways = [
        frozenset().union(*(_missing(need, facts, pending | {key}) for need in rule.needs))
        for rule in _applicable(key, facts)
        if key not in pending and not pending & set(rule.needs)
    ]
    return min(ways, key=lambda way: (len(way), sorted(way)), default=frozenset({key}))
