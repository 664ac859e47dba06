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
        lacking: key -> what `missing` said of it.
    """

    facts: FactStore
    derivations: dict[str, Derivation] = field(default_factory=dict)
    lacking: dict[str, tuple[str, ...]] = field(default_factory=dict, repr=False, compare=False)

    def missing(self, key: str) -> tuple[str, ...]:
        """The given facts that `key` would still need, on the way that needs fewest; () if it is there."""
        if key not in self.lacking:
            self.lacking[key] = tuple(sorted(_missing(key, self.facts, frozenset())))
        return self.lacking[key]


def complete(given: FactStore) -> Shape:
    """Derive all that can be derived; what was given is never replaced, and `given` itself stays as it is.

    A derived value's source is the weakest of its inputs', "assumed" where the rule takes something for granted, or
    ABSENT where it only says that the model lacks something; its note is the formula.
    """
    shape = Shape(given.copy())
    for key in _RULES:
        _resolve(key, given, shape, frozenset())
    return shape


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
