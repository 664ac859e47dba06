"""Fingerprints: what an artifact was made from, in one hash. An artifact is current if its fingerprint is."""

from __future__ import annotations

import functools
import hashlib
import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from tokenaxis.params import HOME
from tokenaxis.pipeline.spec import STAGES, Stage

PACKAGE = Path(__file__).resolve().parents[1]


def combine(stage: str, inputs: Any) -> str:
    """sha256 over the stage's name, its code and data, and `inputs` (JSON-ready)."""
    content = json.dumps([stage, code_digest(stage), inputs], sort_keys=True)
    return hashlib.sha256(content.encode()).hexdigest()


@functools.cache
def code_digest(stage: str) -> str:
    """sha256 over the code and data files that decide a stage's numbers."""
    return files_digest(code_files(STAGES[stage]), PACKAGE) + files_digest(data_files(STAGES[stage]), HOME)


def files_digest(files: Iterable[Path], root: Path) -> str:
    """sha256 over names (relative to `root`) and contents."""
    digest = hashlib.sha256()
    for file in files:
        content = file.read_bytes()
        digest.update(f"{file.relative_to(root).as_posix()} {len(content)}\n".encode() + content)
    return digest.hexdigest()


def code_files(stage: Stage) -> list[Path]:
    """The files of the library that decide what a stage writes, sorted; templates of the page count as code."""
    return _expand(stage.code, PACKAGE, (".py", ".j2", ".css", ".js"))


def data_files(stage: Stage) -> list[Path]:
    """The data files of the checkout that decide a stage's numbers, sorted."""
    return _expand(stage.data, HOME, (".yaml",))


def _expand(names: Iterable[str], root: Path, endings: tuple[str, ...]) -> list[Path]:
    files: set[Path] = set()
    for name in names:
        path = root / name
        if path.is_dir():
            files.update(file for file in path.rglob("*") if file.suffix in endings)
        elif path.exists():
            files.add(path)
    return sorted(files)
