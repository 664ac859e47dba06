"""A model's parameters from the names and shapes in a checkpoint; no weight is read."""

from __future__ import annotations

import json
import math
import os
import re
from collections.abc import Mapping, Sequence
from typing import Any

from tokenaxis.errors import TokenAxisError

#: largest header that the safetensors format allows (its README: 100 MB)
MAX_HEADER = 100_000_000

_TOKEN_TABLE = re.compile(r"(^|\.)(embed_tokens|wte|tok_embeddings|embed_in|word_embeddings)\.weight$")
_POSITIONS = re.compile(r"(^|\.)(wpe|position_embeddings|embed_positions)\.weight$")
_HEAD = re.compile(r"(^|\.)(lm_head|embed_out|output)\.weight$")
_LAYER = re.compile(r"(?:^|\.)(?:layers|h|blocks)\.(\d+)\.")
#: buffers that old checkpoints hold beside the parameters
_BUFFER = re.compile(r"(\.attn\.(bias|masked_bias)|attention\.(bias|masked_bias)|rotary_emb\.inv_freq)$")
#: what compilers and wrappers put before a parameter's name
_PREFIX = re.compile(r"^(_orig_mod\.|module\.)+")


def from_shapes(shapes: Mapping[str, Sequence[int]]) -> dict[str, Any]:
    """Facts from parameter names and shapes: n_params, tables, depth and width as far as the names tell.

    A head that is stored beside its table counts as untied; one that is not stored is tied, if there is a table.
    """
    named = {_PREFIX.sub("", name): shape for name, shape in shapes.items() if not _BUFFER.search(name)}
    if not named:
        raise TokenAxisError("the checkpoint holds no parameters")
    facts: dict[str, Any] = {"n_params": sum(math.prod(shape) for shape in named.values())}
    tokens = _only(named, _TOKEN_TABLE)
    positions = _only(named, _POSITIONS)
    layers = {int(match[1]) for name in named if (match := _LAYER.search(name))}
    if layers:
        facts["n_layers"] = max(layers) + 1
    if positions is not None:
        facts |= {"position_embedding": "learned", "max_positions": positions[0]}
        facts["n_position_params"] = math.prod(positions)
    if tokens is not None:
        facts |= {"padded_vocab_size": tokens[0], "d_model": tokens[1], "tied_embeddings": _only(named, _HEAD) is None}
        looked_up = 0 if facts["tied_embeddings"] else math.prod(tokens)
        facts["n_embedding_params"] = looked_up + facts.get("n_position_params", 0)
    return facts


def from_safetensors(path: str | os.PathLike[str]) -> dict[str, Any]:
    """Facts from the header of a .safetensors file (8 bytes of length, then JSON).

    Raises:
        TokenAxisError: it is no such file.
    """
    try:
        with open(path, "rb") as file:
            length = int.from_bytes(file.read(8), "little")
            if not 2 <= length <= MAX_HEADER:
                raise ValueError("no header of a sensible length")
            header = json.loads(file.read(length))
        shapes = {name: entry["shape"] for name, entry in header.items() if name != "__metadata__"}
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise TokenAxisError(f"not a safetensors file: {error}", file=str(path)) from error
    return _within(path, shapes)


def from_torch(path: str | os.PathLike[str]) -> dict[str, Any]:
    """Facts from a torch checkpoint.

    Read as `weights_only`, so that no code in it runs, and memory-mapped, so that no weight is read. A state dict may
    stand under "model" or "state_dict". Where two names share one storage, it counts once.

    Raises:
        TokenAxisError: torch is not installed, or the file is not such a checkpoint.
    """
    try:
        import torch
    except ImportError as error:
        raise TokenAxisError("torch is not installed", file=str(path), remedy="pip install tokenaxis[torch]") from error
    try:
        loaded = torch.load(path, map_location="cpu", weights_only=True, mmap=True)
    except Exception as error:  # torch raises RuntimeError, UnpicklingError and others for what it cannot read
        reason = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise TokenAxisError(f"not a checkpoint that torch can read safely: {reason}", file=str(path)) from error
    for key in ("model", "state_dict", "model_state_dict"):
        if isinstance(loaded, dict) and isinstance(loaded.get(key), dict):
            loaded = loaded[key]
    if not isinstance(loaded, dict):
        raise TokenAxisError("the checkpoint holds no state dict", file=str(path))
    shapes, storages = {}, set()
    for name, tensor in loaded.items():
        if isinstance(tensor, torch.Tensor) and (tensor.data_ptr(), tuple(tensor.shape)) not in storages:
            storages.add((tensor.data_ptr(), tuple(tensor.shape)))
            shapes[str(name)] = tuple(tensor.shape)
    return _within(path, shapes)


def _within(path: str | os.PathLike[str], shapes: Mapping[str, Sequence[int]]) -> dict[str, Any]:
    try:
        return from_shapes(shapes)
    except TokenAxisError as error:
        raise error.within(str(path)) from error


def _only(named: Mapping[str, Sequence[int]], pattern: re.Pattern[str]) -> Sequence[int] | None:
    """Shape of the one matrix whose name fits, or None."""
    found = [shape for name, shape in named.items() if pattern.search(name) and len(shape) == 2]
    return found[0] if len(found) == 1 else None
