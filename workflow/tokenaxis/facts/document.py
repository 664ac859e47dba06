"""The known facts as a table of documentation, so that the page cannot differ from the code."""

from __future__ import annotations

from tokenaxis.facts.known import KNOWN


def as_markdown() -> str:
    """A table: key, kind, unit, meaning."""
    rows = [f"| `{fact.key}` | {fact.kind} | {fact.unit} | {fact.about} |" for fact in KNOWN.values()]
    return "\n".join(["| Fact | Kind | Unit | Meaning |", "| --- | --- | --- | --- |", *rows, ""])
