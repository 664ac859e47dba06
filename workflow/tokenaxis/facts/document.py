"""The known facts as a page of documentation, so that the page cannot differ from the code.

python -m tokenaxis.facts.document > docs/facts.md
"""

from __future__ import annotations

from tokenaxis.facts.known import ALIASES, KNOWN

_INTRODUCTION = """# Facts

A fact is a key, a value, a source and, where there is something to say, a note. Sources, strongest first:

| Source | Who says so |
| --- | --- |
| `declared` | you, in configs/sweeps/NAME.yaml: `facts:`, or a file that `model:` names |
| `emitted` | the training loop, in its own words |
| `tapped` | a logger that the loop wrote to |
| `detected` | a reader or an agent that looked |
| `measured` | computed from the log, e.g. tokens per second from its wall times |
| `assumed` | taken for granted, and said so |

The strongest source is in force, the latest of equally strong ones. A value that is derived from others has the
weakest of their sources. What was overruled stands under `conflicts` in the passport, with both values; what cannot
be a value of its key (a negative count, NaN, text for a number) is set aside with a warning. `absent` is no source:
it says that the model lacks the part (no experts, say), which counts zero.

`model:` in configs/sweeps/NAME.yaml takes the name of a file of [configs/models](../configs/models), or the path,
below the sweep directory or the working directory, of a Hugging Face `config.json`, an argument dump (Megatron,
nanoGPT, OLMo), a `.safetensors` (only its header is read) or a torch checkpoint (no code in it runs; needs torch).
Of several `model:` entries that fit a run the last one counts; `facts:` beside it goes before it. With DVC keep
such files below the sweep directory or configs/models, which it watches.

Command lines and notes of logs are redacted on the way in: secrets, hosts, users and directories never reach an
artifact.

"""


def page() -> str:
    """docs/facts.md."""
    others = [f"- `{theirs}` is read as `{ours}`" for theirs, ours in ALIASES.items()]
    closing = ["", "Other names, as trainmeter gives them:", "", *others, ""]
    printed = ["This page is printed by `python -m tokenaxis.facts.document`.", ""]
    return _INTRODUCTION + as_markdown() + "\n".join([*closing, *printed])


def as_markdown() -> str:
    """A table: key, kind, unit, meaning."""
    rows = [f"| `{fact.key}` | {fact.kind} | {fact.unit} | {fact.about} |" for fact in KNOWN.values()]
    return "\n".join(["| Fact | Kind | Unit | Meaning |", "| --- | --- | --- | --- |", *rows, ""])


if __name__ == "__main__":
    print(page(), end="")
