"""The runs of a sweep directory: which files are logs, in which format, and why the others are not.

This runs each time the Snakefile is parsed, on the main machine and in every cluster job. So a file that was seen
before costs a stat, and nothing here imports numpy or pyarrow.
"""

from __future__ import annotations

import fnmatch
import os
import stat
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tokenaxis import readers, store
from tokenaxis.errors import TokenAxisError, printable
from tokenaxis.pipeline.hashes import file_stamp
from tokenaxis.sweep.declared import SweepDeclaration
from tokenaxis.sweep.ids import run_ids


@dataclass(frozen=True)
class LogFile:
    """One file below the sweep directory: path relative to it, bytes, and a stamp that changes with its content.

    The stamp holds mtime and ctime: tools that copy a tree restore the mtime, nothing restores the ctime.
    """

    path: str
    bytes: int
    stamp: str


@dataclass(frozen=True)
class Run:
    """One run of a sweep: its id, shown name, reader's name, files, and what was declared for it."""

    id: str
    name: str
    format: str
    files: tuple[LogFile, ...]
    declared: dict[str, Any]


@dataclass
class Discovery:
    """What was found: runs, files that look like logs but cannot be used, and files that are no logs."""

    runs: list[Run] = field(default_factory=list)
    refused: list[dict[str, Any]] = field(default_factory=list)
    passed_over: list[dict[str, str]] = field(default_factory=list)


def discover(root: Path, declared: SweepDeclaration, ignore: list[str], cache: Path | None = None) -> Discovery:
    """Look at every file below `root`.

    Args:
        root: the sweep directory.
        declared: the sweep's declarations.
        ignore: glob patterns of file and folder names that are passed over.
        cache: a file that remembers what was seen, keyed by path, size and times.

    Raises:
        TokenAxisError: `root` is not a directory.
    """
    if not root.is_dir():
        raise TokenAxisError(
            "is not a directory of raw logs", file=str(root), remedy="give one: --config logs=DIR sweep=NAME"
        )
    known = _Known(cache)
    found = Discovery()
    logs: list[tuple[LogFile, str]] = []
    for path, entry_stat in sorted(_walk(root, ignore, found)):
        name = printable(path)
        if declared.ignores(path):
            found.passed_over.append({"name": name, "reason": "ignored by declaration"})
        elif not stat.S_ISREG(entry_stat.st_mode):
            found.passed_over.append({"name": name, "reason": "not a regular file"})
        else:
            log = LogFile(path, entry_stat.st_size, file_stamp(entry_stat))
            kind, detail = known.look(root, log)
            if kind == "passed_over":
                found.passed_over.append({"name": name, "reason": detail[0]})
            elif kind == "refused" and declared.of(path).format is None:
                found.refused.append({"name": name, "reason": detail[0], "remedy": detail[1]})
            else:
                logs.append((log, detail[0]))
    for (log, format_name), run_id in zip(logs, run_ids([log.path for log, _ in logs]), strict=True):
        _add(found, log, format_name, run_id, declared)
    known.save()
    return found


def _add(found: Discovery, log: LogFile, format_name: str, run_id: str, declared: SweepDeclaration) -> None:
    name = printable(log.path)
    try:
        declaration = declared.of(log.path)
        if declaration.format is not None:
            format_name = readers.by_name(declaration.format).name
    except TokenAxisError as error:
        found.refused.append({"name": name, "reason": printable(error.reason), "remedy": error.remedy})
        return
    found.runs.append(Run(run_id, name, format_name, (log,), declaration.as_dict()))


def _walk(root: Path, ignore: list[str], found: Discovery) -> Iterator[tuple[str, os.stat_result]]:
    """(path relative to root, stat) of every file, links followed, each folder once (a link may lead back up)."""
    visited: set[tuple[int, int]] = set()
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
            if any(fnmatch.fnmatchcase(entry.name, pattern) for pattern in ignore):
                continue
            path = f"{folder}/{entry.name}" if folder else entry.name
            try:
                entry_stat = entry.stat()
            except OSError as error:
                found.refused.append(_unreadable(path, error))
                continue
            if stat.S_ISDIR(entry_stat.st_mode):
                folders.append((path, entry_stat))
            else:
                yield path, entry_stat


def _unreadable(path: str, error: OSError) -> dict[str, Any]:
    return {"name": printable(path), "reason": f"cannot be read: {error.strerror}", "remedy": None}


class _Known:
    """What was seen of a file before, so that looking again costs nothing."""

    def __init__(self, cache: Path | None):
        self.cache = cache
        stored = (store.read_json(cache) if cache else None) or {}
        self.code = readers.code_digest()
        self.files: dict[str, list[Any]] = stored.get("files", {}) if stored.get("code") == self.code else {}
        self.seen: dict[str, list[Any]] = {}

    def look(self, root: Path, log: LogFile) -> tuple[str, list[Any]]:
        """("log", [format]), ("refused", [reason, remedy]) or ("passed_over", [reason])."""
        entry = self.files.get(log.path)
        if entry is None or entry[:2] != [log.bytes, log.stamp]:
            entry = [log.bytes, log.stamp, *_recognise(root / log.path)]
        self.seen[log.path] = entry
        return entry[2], entry[3]

    def save(self) -> None:
        if self.cache is not None and self.seen != self.files:
            store.write_text(self.cache, store.to_json({"code": self.code, "files": self.seen}, indent=None))


def _recognise(path: Path) -> tuple[str, list[Any]]:
    try:
        recognition = readers.recognise(readers.sample(str(path)))
    except OSError as error:
        return "refused", [f"cannot be read: {error.strerror}", None]
    if recognition.reader is not None:
        return "log", [recognition.reader.name]
    if recognition.refused is not None:
        return "refused", [printable(recognition.refused.reason), recognition.refused.remedy]
    return "passed_over", [recognition.passed_over]
