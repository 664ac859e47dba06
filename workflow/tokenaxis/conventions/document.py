"""The registry of conventions as a page of documentation, so that the page cannot differ from the code.

python -m tokenaxis.conventions.document > docs/conventions.md
"""

from __future__ import annotations

from tokenaxis.conventions.registry import ALIASES, REGISTRY, TRAINMETER_NAMES

_INTRODUCTION = """# FLOPs per token: who counts what

One run reads as anything from 37% to 42% MFU depending on who counts, so no number of FLOPs, MFU or cost stands
without its convention. Each convention below is one function of
[workflow/tokenaxis/conventions](../workflow/tokenaxis/conventions), after the source that it names. All give FLOPs
of one trained token, forward and backward. A convention whose facts are not all known is `not_available: needs
...`, never a guess; [facts.md](facts.md) says what each fact means and which can be derived from others.

- `conventions.convention` in params.yaml chooses the headline; `null` shows the range over all.
- `python scripts/count_flops.py MODEL` prints every convention for a model, beside the operators that torch counts
  in a decoder of that shape on the meta device; `module:callable` counts a model of your own. Counting sees what is
  executed: every matrix product and the full attention square, no element-wise work.
- `tied` tables are counted once among the parameters. Whether a table's matrix counts as the head's matrix product
  or as a look-up is what many of the differences come from, beside the causal half of attention and embeddings
  taken as matrices.
- The MFU of a passport divides by the dense peak of [configs/hardware](../configs/hardware), or by a declared one.
  A card that is in no data sheet gets no MFU, with the reason; sparse peaks are refused.

This page is printed by `python -m tokenaxis.conventions.document`.

"""


def page() -> str:
    """docs/conventions.md."""
    return _INTRODUCTION + as_markdown()


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


if __name__ == "__main__":
    from tokenaxis import conventions  # noqa: F401  registers them all

    print(page(), end="")
