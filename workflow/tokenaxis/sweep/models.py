"""`model:` of a sweep's declaration: the facts of a file of configs/models, or of a file that describes a model."""

from __future__ import annotations

import functools
import hashlib
import json
from pathlib import Path
from typing import Any

from tokenaxis import params, store
from tokenaxis.errors import TokenAxisError, printable
from tokenaxis.redaction import redact_text

#: endings that tell a path from a name of configs/models
ENDINGS = (".json", ".yaml", ".yml", ".safetensors", ".pt", ".pth", ".bin", ".ckpt")


def facts(model: str, root: Path | None, cache: Path | None) -> dict[str, dict[str, Any]]:
    """Fact -> {value, note}; the note names the file, never its folder outside of the sweep or the checkout.

    Args:
        model: a name of configs/models, or the path of a config.json, an argument dump, a .safetensors or a torch
            checkpoint, below the sweep directory or the working directory.
        root: the sweep directory.
        cache: a folder that remembers what was read (this runs whenever the Snakefile is parsed).

    Raises:
        TokenAxisError: there is no such file, or it describes no model.
    """
    if model.endswith(ENDINGS):
        path = _found(model, root)
        shown = path.name if Path(model).is_absolute() or ".." in Path(model).parts else model
        return _noted(_read(path, shown, cache), shown)
    path = params.find(f"configs/models/{model}.yaml")
    if "/" in model or not path.exists():
        known = sorted(file.stem for file in (params.HOME / "configs" / "models").glob("*.yaml"))
        raise TokenAxisError(
            f"declares model {model!r}, and configs/models has no such file",
            remedy=f"one of: {', '.join(known)}; or the path of a config.json or a checkpoint",
        )
    return _noted((params.load_yaml(path) or {}).get("facts", {}), f"configs/models/{model}.yaml")


def _noted(found: dict[str, Any], file: str) -> dict[str, dict[str, Any]]:
    return {key: {"value": value, "note": f"from {printable(file)}"} for key, value in found.items()}


def _found(model: str, root: Path | None) -> Path:
    for folder in (root, Path()):
        if folder is not None and (folder / model).is_file():
            return folder / model
    raise TokenAxisError(
        f"declares model {Path(model).name!r}, and there is no such file below the sweep or the working directory",
        remedy="give its path relative to one of them",
    )


def _read(path: Path, shown: str, cache: Path | None) -> dict[str, Any]:
    """The file's facts, from the cache where it is as it was."""
    stat = path.stat()
    stamp = [str(path.resolve()), stat.st_size, stat.st_mtime_ns, stat.st_ctime_ns, _code()]
    known = None
    if cache is not None:
        known = cache / f"model-{hashlib.sha256(json.dumps(stamp).encode()).hexdigest()[:32]}.json"
        if isinstance(stored := store.read_json(known), dict):
            return stored
    from tokenaxis.shapes.files import read_shape

    try:
        found = read_shape(path)
    except TokenAxisError as error:
        raise TokenAxisError(f"model {shown}: {redact_text(error.reason)}", remedy=error.remedy) from error
    if known is not None:
        store.write_json(known, found)
    return found


@functools.cache
def _code() -> str:
    """sha256 of the code that reads shapes."""
    digest = hashlib.sha256()
    for file in sorted((Path(__file__).resolve().parents[1] / "shapes").glob("*.py")):
        digest.update(file.read_bytes())
    return digest.hexdigest()
