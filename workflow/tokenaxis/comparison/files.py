"""Writing the comparison's folder: whole files or none, and nothing left from an earlier comparison."""

from __future__ import annotations

import hashlib
import json
import os
from pathlib import Path
from typing import Any

#: suffixes of what this package writes into figures/
FIGURE_SUFFIXES = (".svg", ".png", ".pdf")


class Folder:
    """A folder that is being written; `hashes` holds relative name -> sha256 of every file so far."""

    def __init__(self, path: Path):
        self.path = path
        self.hashes: dict[str, str] = {}

    def write(self, name: str, content: bytes) -> None:
        """Write the file `name` (relative, with slashes)."""
        write(self.path / name, content)
        self.hashes[name] = hashlib.sha256(content).hexdigest()


def intact(folder: Path, hashes: dict[str, str]) -> bool:
    """Whether every file is there as it was written."""
    for name, expected in hashes.items():
        try:
            content = (folder / name).read_bytes()
        except OSError:
            return False
        if hashlib.sha256(content).hexdigest() != expected:
            return False
    return True


def write(path: Path, content: bytes) -> None:
    """Replace `path` in one step, so that no reader ever sees half a file."""
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(f".{path.name}.tmp-{os.getpid()}")
    try:
        temporary.write_bytes(content)
        os.replace(temporary, path)
    finally:
        temporary.unlink(missing_ok=True)


def json_bytes(data: dict[str, Any]) -> bytes:
    """Sorted keys, two spaces, no NaN; plain ASCII, so that an undecodable name is no obstacle."""
    return (json.dumps(data, indent=2, sort_keys=True, allow_nan=False) + "\n").encode("ascii")


def remove_stale_figures(folder: Path, written: set[str]) -> None:
    """Delete figures of an earlier comparison that this one has no data for."""
    for path in sorted(folder.iterdir()) if folder.is_dir() else []:
        if path.suffix in FIGURE_SUFFIXES and path.name not in written:
            path.unlink()
