"""The registry of conventions as a page of documentation, so that the page cannot differ from the code."""

from __future__ import annotations

from tokenaxis.conventions.registry import ALIASES, REGISTRY, TRAINMETER_NAMES


def as_markdown() -> str:
    """One section a convention: formula, what it counts and leaves out, what it needs, where it comes from."""
    lines = []
    for name, convention in sorted(REGISTRY.items()):
        others = [f"`{alias}`" for alias, ours in ALIASES.items() if ours == name]
        others += [f"trainmeter's `{theirs}`" for theirs, ours in TRAINMETER_NAMES.items() if ours == name]
        lines += [
            f"## {name}",
            "",
            f"`{convention.formula}`",
            "",
            f"- Counts: {convention.counts}.",
            f"- Leaves out: {convention.leaves_out}.",
            f"- Needs: {', '.join(f'`{key}`' for key in convention.needs)}.",
            f"- Source: {convention.source}.",
            *([f"- Also known as: {', '.join(others)}."] if others else []),
            "",
        ]
    return "\n".join(lines)
