"""The index of a shard: run id -> fingerprint, status, and what the artifacts were like when they were made.

It is what Snakemake sees of a job. It also saves opening artifacts: one whose size and mtime are still those in the
index need not be looked into; one that was touched must still have its sha256. A missing index costs time, and the
artifacts are then believed by the fingerprint that they carry.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tokenaxis import store


@dataclass
class Ledger:
    """Entries by run id: {"fingerprint", "status": "ok" | "refused" | "failed", "files": {name: see `record`}}."""

    path: Path
    entries: dict[str, dict[str, Any]] = field(default_factory=dict)

    @classmethod
    def load(cls, path: Path) -> Ledger:
        """The index at `path`, or the one that was dropped there; empty if it is missing or damaged."""
        data = store.read_json(path) or store.read_json(_dropped(path))
        entries = data.get("runs") if isinstance(data, dict) else None
        return cls(path, entries if isinstance(entries, dict) else {})

    def save(self, stage: str) -> None:
        """Write the index, also when nothing changed: its mtime tells Snakemake that the job ran."""
        store.write_text(self.path, store.to_json({"stage": stage, "runs": self.entries}, indent=None))
        _dropped(self.path).unlink(missing_ok=True)

    def intact(self, run_id: str, folder: Path) -> bool:
        """Whether all artifacts of a run are there as they were left, by size and mtime."""
        entry = self.entries.get(run_id)
        return entry is not None and all(stamp(folder / name) == seen[:2] for name, seen in entry["files"].items())

    def same_content(self, run_id: str, folder: Path) -> bool:
        """Whether all artifacts of a run still have the bytes that they were left with."""
        entry = self.entries.get(run_id)
        return entry is not None and all(
            (now := record(folder / name)) is not None and [now[0], now[2]] == [seen[0], *seen[2:]]
            for name, seen in entry["files"].items()
        )


def stamp(path: Path) -> list[int] | None:
    """[bytes, mtime_ns], or None if there is no such file."""
    try:
        status = path.stat()
    except OSError:
        return None
    return [status.st_size, status.st_mtime_ns]


def record(path: Path) -> list[Any] | None:
    """[bytes, mtime_ns, sha256], or None if there is no such file."""
    seen = stamp(path)
    if seen is None:
        return None
    with open(path, "rb") as file:
        return [*seen, hashlib.file_digest(file, "sha256").hexdigest()]


def _dropped(index: Path) -> Path:
    return index.with_suffix(".dropped")


def is_touched(index: Path, folder: Path) -> bool:
    """Whether an artifact of an index is missing or was touched since: a stat per file."""
    ledger = Ledger.load(index)
    return not all(ledger.intact(run_id, folder) for run_id in ledger.entries)


def put_aside(index: Path) -> None:
    """Take an index out of the engine's sight; the next job still reads in it which bytes were left."""
    with contextlib.suppress(FileNotFoundError):
        os.replace(index, _dropped(index))
