"""What to declare about a log that was refused, as YAML for configs/sweeps/<sweep>.yaml."""

from __future__ import annotations

import json
import re
from typing import Any

from tokenaxis.readers.remedies import glob_of

#: keys of the top level of configs/sweeps/<sweep>.yaml that remedies name beside `defaults` and `runs`
_TOP = frozenset(("groups", "separate", "ignore"))
_EXAMPLES = {
    "tokens_per_step": "an example: tokens in one optimizer step = sequences x sequence length x ranks x accumulation",
    "columns": "the file's own name of the column",
    "format": "name of a reader",
    "seq_len": "tokens per sequence",
    "batch_schedule": "an example: start in tokens, tokens per step",
    "tokens_convention": "what the tokens column counts",
}


def to_declare(path: str, remedy: str | None) -> str | None:
    """YAML that declares what a remedy asks for; None where it asks for no declaration.

    Args:
        path: the log's path below the sweep directory.
        remedy: of its refusal; the first declaration in backquotes is taken.
    """
    if remedy is None:
        return None
    import yaml

    for snippet in re.findall(r"`([a-z_]+: [^`]*)`", remedy):
        try:
            declared = yaml.safe_load(snippet)
        except yaml.YAMLError:
            continue
        if isinstance(declared, dict) and len(declared) == 1:
            return _as_yaml(path, *next(iter(declared.items())))
    return None


def _as_yaml(path: str, key: str, value: Any) -> str | None:
    if key not in ("defaults", "runs"):
        return f"{key}: {json.dumps(value)}\n" if key in _TOP else None
    keys = {name: inner for name, inner in (value if key == "defaults" else value[0]).items() if name != "match"}
    lines = ["runs:", f"  - match: {json.dumps(glob_of(path))}"]
    for name, inner in keys.items():
        about = _EXAMPLES.get(name)
        lines.append(f"    {name}: {json.dumps(inner)}" + (f" # {about}" if about else ""))
    return "\n".join(lines) + "\n"
