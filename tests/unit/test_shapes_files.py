"""Any file that describes a model is read by one function, and a file that does not is refused by name."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.unit.test_shapes_huggingface import PUBLISHED
from tokenaxis.errors import TokenAxisError
from tokenaxis.shapes.files import read_shape

ARGUMENTS = {"n_layer": 12, "n_head": 12, "n_embd": 768, "block_size": 1024, "vocab_size": 50304}


def write(folder: Path, name: str, content: Any) -> Path:
    path = folder / name
    path.write_text(content if isinstance(content, str) else json.dumps(content), encoding="utf-8")
    return path


def test_each_kind_of_file_is_told_by_its_keys(tmp_path: Path, root: Path) -> None:
    config, published = PUBLISHED["llama-3.2-1b"]
    assert read_shape(write(tmp_path, "config.json", config))["n_params"] == published
    assert read_shape(write(tmp_path, "args.json", ARGUMENTS))["d_ff"] == 3072
    olmo = "model:\n  d_model: 768\n  n_layers: 12\n  mlp_ratio: 8\n  rope: true\n"
    assert read_shape(write(tmp_path, "olmo.yaml", olmo))["d_ff"] == 3072
    assert read_shape(root / "configs" / "models" / "gpt2-124m.yaml")["n_params"] == 124_475_904


@pytest.mark.parametrize(
    ("name", "content", "reason"),
    [
        ("model.json", "{", "cannot be parsed"),
        ("model.yaml", "a: [", "cannot be parsed"),
        ("model.json", "[1]", "no mapping"),
        ("model.json", {"model_type": "mamba"}, "not known"),
        ("model.json", {"depth": 3}, "no known trainer"),
        ("model.txt", "x", "no file that describes a model"),
        ("model.safetensors", "x", "safetensors"),
    ],
)
def test_what_describes_no_model_is_refused_by_name(tmp_path: Path, name: str, content: Any, reason: str) -> None:
    with pytest.raises(TokenAxisError, match=reason) as caught:
        read_shape(write(tmp_path, name, content))
    assert name in str(caught.value)
    with pytest.raises(TokenAxisError, match=r"absent\.json"):
        read_shape(tmp_path / "absent.json")
