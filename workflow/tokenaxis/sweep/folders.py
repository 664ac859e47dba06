"""The files of a sweep directory, and those that are ignored by name."""

from __future__ import annotations

import contextlib
import fnmatch
import os
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from tokenaxis.errors import printable
from tokenaxis.sweep.model import Discovery

AIM_FOLDER = ".aim"
AIM = "Aim's store (RocksDB), which is not read: a few lines under Aim in docs/logs.md export its runs"


def walk(root: Path, ignore: list[str], found: Discovery) -> Iterator[tuple[str, os.stat_result]]:
    """(path relative to root, stat) of every file, links followed, each folder once.

    What is ignored by name is listed, a folder without a look inside, and so are folders that hold the sweep directory
    (a link may lead back up) and the results of the pipeline; what cannot be read is refused.
    """
    visited: set[tuple[int, int]] = set()
    barred = _barred(root)
    folders = [("", os.stat(root))]
    while folders:
        folder, folder_stat = folders.pop()
        if (folder_stat.st_dev, folder_stat.st_ino) in visited:
            continue
        visited.add((folder_stat.st_dev, folder_stat.st_ino))
        try:
            entries = list(os.scandir(root / folder))
        except OSError as error:
            found.refused.append(_unreadable(folder, error))
            continue
        for entry in entries:
            path = f"{folder}/{entry.name}" if folder else entry.name
            pattern = next((pattern for pattern in ignore if fnmatch.fnmatchcase(entry.name, pattern)), None)
            if entry.name == AIM_FOLDER or pattern is not None:
                reason = AIM if entry.name == AIM_FOLDER or pattern is None else _ignored(pattern)
                found.passed_over.append({"name": printable(path), "reason": reason})
                continue
            try:
                entry_stat = entry.stat()
            except OSError as error:
                found.refused.append(_unreadable(path, error))
                continue
            if (entry_stat.st_dev, entry_stat.st_ino) in barred:
                reason = barred[entry_stat.st_dev, entry_stat.st_ino]
                found.passed_over.append({"name": printable(path), "reason": reason})
            elif stat.S_ISDIR(entry_stat.st_mode):
                folders.append((path, entry_stat))
            else:
                yield path, entry_stat


def _barred(root: Path) -> dict[tuple[int, int], str]:
    """(device, inode) of folders that are not entered -> why."""
    real = Path(os.path.realpath(root))
    folders = {folder: "a link back to a folder that holds the sweep directory" for folder in real.parents}
    results = Path("results").resolve()
    if results != real:
        folders.setdefault(results, "results of this pipeline")
    barred = {}
    for folder, reason in folders.items():
        with contextlib.suppress(OSError):
            status = os.stat(folder)
            barred[status.st_dev, status.st_ino] = reason
    return barred


def _ignored(pattern: str) -> str:
    why = "its name begins with a dot" if pattern == ".*" else f"its name fits {pattern!r}"
    return f"ignored: {why} (runs.ignore in params.yaml)"


def _unreadable(path: str, error: OSError) -> dict[str, Any]:
    return {"name": printable(path), "reason": f"cannot be read: {error.strerror}", "remedy": None}
