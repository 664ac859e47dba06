"""The artifacts of one run that a passport is made of, and small things that its sections share."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

#: name of the FLOPs of one token in formulas and in `explain`
PER_TOKEN = "flops_per_token"


@dataclass(frozen=True)
class Evidence:
    """Parsed artifacts of one run; see docs/artifacts.md for their keys. A mapping may be empty, none is missing.

    Attributes:
        run: its entry in runs.json.
        axis: metadata of its token axis.
        fits, stability, conventions: the artifacts.
        lineage: what made this passport (code version, digests of parameters and artifacts), JSON-ready.
    """

    run: Mapping[str, Any]
    axis: Mapping[str, Any]
    fits: Mapping[str, Any]
    stability: Mapping[str, Any]
    conventions: Mapping[str, Any]
    lineage: Mapping[str, Any]

    @property
    def facts(self) -> Mapping[str, Mapping[str, Any]]:
        """key -> {value, source, note}, the derived ones among them."""
        return self.conventions.get("facts") or {}

    def fact(self, key: str) -> Any:
        """The value of a fact, or None."""
        return (self.facts.get(key) or {}).get("value")

    @property
    def stages(self) -> list[Mapping[str, Any]]:
        """Stretches of constant batch, oldest first."""
        return (self.axis.get("batch") or {}).get("stages") or []

    @property
    def chosen(self) -> str | None:
        """The headline convention, if one was chosen and could be computed."""
        name = self.conventions.get("convention")
        return name if name in (self.conventions.get("flops_per_token") or {}) else None


def given(evidence: Evidence, key: str) -> dict[str, Any]:
    """A fact as an input of a formula: {value, source[, ref]}, with a reference where it is derived itself."""
    fact = evidence.facts[key]
    entry = {"value": fact["value"], "source": fact["source"]}
    return entry | {"ref": key} if key in (evidence.conventions.get("derived") or {}) else entry


def sourced(fact: Mapping[str, Any] | None) -> dict[str, Any] | None:
    """{value, source[, note]} of a fact, as passports write it; None for None."""
    if fact is None:
        return None
    entry = {"value": fact["value"], "source": fact["source"]}
    return entry | {"note": fact["note"]} if fact.get("note") else entry


def present(entries: Mapping[str, Any]) -> dict[str, Any]:
    """`entries` without those that are None: what is absent stands in `not_available` with its reason."""
    return {key: value for key, value in entries.items() if value is not None}
