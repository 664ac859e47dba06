"""Writing the comparison's folder: whole files or none, and nothing left from an earlier comparison."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

#: suffixes of what this package writes into figures/
FIGURE_SUFFIXES = (".svg", ".png", ".pdf")


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
