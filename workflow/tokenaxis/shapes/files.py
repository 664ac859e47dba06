"""A model's shape from whatever file describes it: one door for configurations, argument dumps and checkpoints."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tokenaxis.errors import TokenAxisError
from tokenaxis.shapes.arguments import from_arguments
from tokenaxis.shapes.checkpoints import from_safetensors, from_torch
from tokenaxis.shapes.huggingface import from_config

_TORCH = (".pt", ".pth", ".bin", ".ckpt")


def read_shape(path: Path) -> dict[str, Any]:
    """Facts from a file, told by its ending and its keys; keys as in tokenaxis.facts.

    .json and .yaml: `facts:` of configs/models, a Hugging Face config.json (`model_type`), or a trainer's arguments.
    .safetensors: its header. .pt, .pth, .bin, .ckpt: a torch checkpoint (needs torch); no code in it runs.

    Raises:
        TokenAxisError: the file cannot be read or understood; it names the file.
    """
    if path.suffix == ".safetensors":
        return from_safetensors(path)
    if path.suffix in _TORCH:
        return from_torch(path)
    if path.suffix not in (".json", ".yaml", ".yml"):
        remedy = f"give a .json, .yaml, .safetensors or one of {', '.join(_TORCH)}"
        raise TokenAxisError("no file that describes a model", file=str(path), remedy=remedy)
    document = _document(path)
    try:
        return from_document(document)
    except TokenAxisError as error:
        raise error.within(str(path)) from error


def from_document(document: Mapping[str, Any]) -> dict[str, Any]:
    """Facts from a parsed configuration.

    Raises:
        TokenAxisError: it is none of the known kinds.
    """
    if isinstance(document.get("facts"), Mapping):
        return dict(document["facts"])
    if "model_type" in document or isinstance(document.get("text_config"), Mapping):
        return from_config(document)
    nested = document.get("model")
    return from_arguments(nested if isinstance(nested, Mapping) else document)


def _document(path: Path) -> Mapping[str, Any]:
    try:
        text = path.read_bytes()
        if path.suffix == ".json":
            document = json.loads(text)
        else:
            import yaml

            document = yaml.safe_load(text)
    except OSError as error:
        raise TokenAxisError(f"cannot be read: {error.strerror}", file=str(path)) from error
    except Exception as error:  # json and yaml each have their own errors, and none of them names the file
        raise TokenAxisError(f"cannot be parsed: {str(error).splitlines()[0]}", file=str(path)) from error
    if not isinstance(document, Mapping):
        raise TokenAxisError("holds no mapping", file=str(path))
    return document
