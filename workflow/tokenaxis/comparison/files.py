"""Writing the comparison's folder: whole files or none, and nothing left from an earlier comparison."""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from tokenaxis.errors import TokenAxisError

#: suffixes of what this package writes into figures/
FIGURE_SUFFIXES = (".svg", ".png", ".pdf")


class Folder:
    """A folder that is being written; `hashes` holds relative name -> sha256 of every file so far."""

    def __init__(self, path: Path):
        self.path = path
        self.hashes: dict[str, str] = {}

    def write(self, name: str, content: bytes) -> None:
        """Write the file `name` (relative, with slashes); one that is there with this content keeps its times."""
        self.write_parts(name, [content])

    def write_parts(self, name: str, parts: Iterable[bytes]) -> None:
        """The same for content that comes in pieces, which are written as they come."""
        self.hashes[name] = write_parts(self.path / name, parts)

    def keep(self, name: str, expected: str) -> bytes | None:
        """The content of a file that is there as it was written (its sha256), which then counts as written."""
        content = _read(self.path / name)
        if content is None or hashlib.sha256(content).hexdigest() != expected:
            return None
        self.hashes[name] = expected
        return content


def intact(folder: Path, hashes: dict[str, str]) -> bool:
    """Whether every file is there as it was written."""
    return all(_size(folder / name) is not None and _sha256(folder / name) == known for name, known in hashes.items())


def write(path: Path, content: bytes) -> None:
    """Replace `path` in one step, so that no reader ever sees half a file, unless it holds `content` already."""
    write_parts(path, [content])


def write_parts(path: Path, parts: Iterable[bytes]) -> str:
    """`write` of the pieces one behind the other. -> sha256 of the whole.

    Raises:
        TokenAxisError: the disk is full, or not to be written to.
    """
    temporary = path.with_name(f".{path.name}.tmp-{os.getpid()}")
    total, size = hashlib.sha256(), 0
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with open(temporary, "wb") as file:
            for part in parts:
                file.write(part)
                total.update(part)
                size += len(part)
        if _size(path) != size or _sha256(path) != total.hexdigest():
            os.replace(temporary, path)
    except OSError as error:
        raise TokenAxisError(f"cannot be written: {error.strerror or error}", file=str(path)) from error
    finally:
        with contextlib.suppress(OSError):
            temporary.unlink(missing_ok=True)
    return total.hexdigest()


def _size(path: Path) -> int | None:
    try:
        return path.stat().st_size
    except OSError:
        return None


def _sha256(path: Path) -> str:
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _read(path: Path) -> bytes | None:
    try:
        return path.read_bytes()
    except OSError:
        return None


def json_bytes(data: dict[str, Any]) -> bytes:
    """Sorted keys, two spaces, no NaN; plain ASCII, so that an undecodable name is no obstacle."""
    return (json.dumps(data, indent=2, sort_keys=True, allow_nan=False) + "\n").encode("ascii")


def remove_stale_figures(folder: Path, written: set[str]) -> None:
    """Delete figures of an earlier comparison that this one has no data for."""
    for path in sorted(folder.iterdir()) if folder.is_dir() else []:
        if path.suffix in FIGURE_SUFFIXES and path.name not in written:
            path.unlink()
