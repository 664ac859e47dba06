"""Facts with their provenance, and the rule that decides between two values of one key."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from tokenaxis.facts.known import ALIASES, KNOWN, not_json
from tokenaxis.redaction import redact_command, redact_line, redact_text

#: sources, strongest first: the user, the training loop's own words, a logger that was tapped, what a reader or an
#: agent found out, a measurement, and what was taken for granted. Same order as trainmeter's.
PRECEDENCE: tuple[str, ...] = ("declared", "emitted", "tapped", "detected", "measured", "assumed")

#: no source but the absence of one: what a model lacks (experts, say) counts zero, and nobody had to state it
ABSENT = "absent"

#: keys that describe a machine or a person; never taken from a log
PRIVATE: frozenset[str] = frozenset(("host", "hostname", "cwd", "user", "username", "env", "environment", "directory"))

#: relative difference up to which two numbers are the same fact: float noise of a few roundings, no rounded figure
SAME_NUMBER = 1e-9


def rank(source: str) -> int:
    """Place of `source` in PRECEDENCE, 0 the strongest; a source that is not known comes after all that are.

    ABSENT comes before all, so that it never weakens what is derived from it.
    """
    if source == ABSENT:
        return -1
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
        key: what it is about; see tokenaxis.facts.known.
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
        reason = KNOWN[key].problem(value) if key in KNOWN else not_json(value)
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

    What a log says is redacted on the way in: no artifact may hold a secret, a host or a directory.

    Args:
        declared: a declaration as `Declaration.as_dict` gives it; its `facts` (values, or {value, note}) and the fields
            that are facts themselves (seq_len, tokens_per_step, planned_tokens, planned_steps) count as declared.
        logged: the token axis' `facts`: mappings with key, value, source, note, in the order they were found.
    """
    store = FactStore()
    for fact in filter(None, map(published, logged)):
        source = fact["source"] if fact["source"] != ABSENT else "unknown"
        store.offer(ALIASES.get(fact["key"], fact["key"]), fact["value"], source, fact["note"])
    for key in ("seq_len", "tokens_per_step", "planned_tokens", "planned_steps"):
        if declared.get(key) is not None:
            store.offer(key, declared[key], "declared")
    for key, value in declared.get("facts", {}).items():
        if isinstance(value, Mapping) and set(value) == {"value", "note"}:
            store.offer(key, value["value"], "declared", value["note"])
        else:
            store.offer(key, value, "declared")
    return store


def published(fact: Mapping[str, Any]) -> dict[str, Any] | None:
    """A fact of a log as artifacts may hold it: {key, value, source, note} without secrets, hosts and directories.

    None for a fact about a machine or a person. Publishing twice changes nothing.
    """
    key, note = fact["key"], fact.get("note")
    if key in PRIVATE:
        return None
    shown = _public(key, fact["value"])
    return {"key": key, "value": shown, "source": fact["source"], "note": note and redact_text(note)}


def _public(key: str, value: Any) -> Any:
    """`value` without secrets, hosts and directories."""
    if isinstance(value, str):
        return redact_line(value) if key == "command" else redact_text(value)
    if isinstance(value, list | tuple) and key == "command":
        return redact_command([str(part) for part in value])
    return value
