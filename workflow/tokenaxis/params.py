"""params.yaml and configs/sweeps/<sweep>.yaml: read and checked, with messages that name the key."""

from __future__ import annotations

import contextlib
import hashlib
import json
import math
from pathlib import Path
from typing import Any

from tokenaxis.errors import TokenAxisError

#: root of the checkout that this code belongs to (scripts/, workflow/, configs/ and params.yaml are there)
HOME = Path(__file__).resolve().parents[2]
SCHEMAS = HOME / "workflow" / "schemas"


def find(name: str) -> Path:
    """A file of the user's working directory, else the one of the checkout."""
    return Path(name) if Path(name).exists() else HOME / name


def load_yaml(path: Path) -> Any:
    """A YAML file.

    Raises:
        TokenAxisError: it is missing or not YAML, with the line.
    """
    import yaml

    try:
        text = path.read_bytes()
    except OSError as error:
        raise TokenAxisError(f"cannot be read: {error.strerror}", file=str(path)) from error
    try:
        return yaml.load(text, Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader))
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        mark = getattr(error, "problem_mark", None)
        problem = getattr(error, "problem", None) or "not UTF-8 text"
        raise TokenAxisError(
            f"not valid YAML: {problem}", file=str(path), line=None if mark is None else mark.line + 1
        ) from error


def load(path: Path, results: Path, sweep: str | None = None, logs: str | None = None) -> dict[str, Any]:
    """All parameters, checked.

    Args:
        path: params.yaml.
        results: folder of results; what was found valid is remembered below it.
        sweep, logs: in place of those of the file; a sweep without logs is looked for in sweeps/<sweep>.

    Raises:
        TokenAxisError: a key is unknown, missing or of the wrong type.
    """
    data = load_yaml(path)
    if isinstance(data, dict) and sweep is not None and sweep != data.get("sweep"):
        data = data | {"sweep": sweep, "logs": f"sweeps/{sweep}"}
    if isinstance(data, dict) and logs is not None:
        data = data | {"logs": logs}
    return check(data, str(path), results)


def check(data: Any, file: str, results: Path) -> dict[str, Any]:
    """Parameters that were read already, checked; see `load`."""
    sweep = data.get("sweep") if isinstance(data, dict) else None
    seen = results / sweep / ".engine" / "valid" if isinstance(sweep, str) and sweep.strip("./") == sweep else None
    return validate(data, "params.schema.json", file, seen)


def validate(data: Any, schema_name: str, file: str, seen: Path | None = None) -> Any:
    """`data`, if it fits the schema.

    Args:
        data: parsed YAML.
        schema_name: file in workflow/schemas.
        file: what the message names.
        seen: a folder where what was found valid is remembered (jsonschema takes 0.1 s to import).

    Raises:
        TokenAxisError: naming the key, what stands there and what should.
    """
    _refuse_non_finite(data, file)
    schema_text = (SCHEMAS / schema_name).read_bytes()
    known = None
    if seen is not None:
        content = json.dumps(data, sort_keys=True, default=str).encode()
        known = seen / f"{hashlib.sha256(schema_text + content).hexdigest()[:32]}.valid"
        if known.exists():
            return data
    from jsonschema import Draft202012Validator
    from jsonschema.exceptions import best_match

    error = best_match(Draft202012Validator(json.loads(schema_text)).iter_errors(data))
    if error is not None:
        key = ".".join(str(part) for part in error.absolute_path) or "the top level"
        raise TokenAxisError(f"{key}: {_in_words(error)}", file=file)
    if known is not None:
        with contextlib.suppress(OSError):  # read-only results: it will be looked at again, and that is all
            known.parent.mkdir(parents=True, exist_ok=True)
            known.touch()
    return data


def _refuse_non_finite(data: Any, file: str, key: str = "") -> None:
    """JSON Schema takes nan and infinity for numbers; no parameter may be one.

    Raises:
        TokenAxisError: naming the key.
    """
    if isinstance(data, float) and not math.isfinite(data):
        raise TokenAxisError(f"{key}: {data} is not a finite number", file=file)
    if isinstance(data, dict):
        for name, value in data.items():
            _refuse_non_finite(value, file, f"{key}.{name}".lstrip("."))
    elif isinstance(data, list):
        for number, value in enumerate(data):
            _refuse_non_finite(value, file, f"{key}.{number}")


def _in_words(error: Any) -> str:
    """A validation error as a user would say it."""
    shown = json.dumps(error.instance, default=str)[:80]
    about = error.schema.get("description", "") if isinstance(error.schema, dict) else ""
    hint = f" ({about})" if about else ""
    if error.validator == "additionalProperties":
        known = ", ".join(sorted(error.schema.get("properties", {})))
        return f"{error.message.split('(')[-1].rstrip(')')}; known keys: {known}"
    if isinstance(error.instance, str) and _looks_like_yaml_1_2_number(error.instance):
        return f"{shown} is text, not a number; YAML 1.1 wants a dot and a sign: write 1.0e+9, not 1e9"
    if error.validator == "type":
        return f"{shown} is not of type {error.validator_value}{hint}"
    if error.validator == "enum":
        return f"{shown} is not one of {', '.join(map(str, error.validator_value))}{hint}"
    return f"{error.message[:160]}{hint}"


def _looks_like_yaml_1_2_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True
