"""The index of a shard: run id -> fingerprint, status, and size and mtime of the artifacts when they were made.

It is what Snakemake sees of a job. It also saves opening artifacts: one whose size and mtime are still those in the
index need not be looked into. It is never trusted beyond that; a missing index costs time, not correctness.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tokenaxis import store


@dataclass
class Ledger:
    """Entries by run id: {"fingerprint": str, "status": "ok" | "refused", "files": {name: [bytes, mtime_ns]}}."""

    path: Path
    entries: dict[str, dict[str, Any]] = field(default_factory=dict)

    @classmethod
    def load(cls, path: Path) -> Ledger:
        """The index at `path`; empty if it is missing or damaged."""
        data = store.read_json(path)
        entries = data.get("runs") if isinstance(data, dict) else None
        return cls(path, entries if isinstance(entries, dict) else {})

    def save(self, stage: str) -> None:
        """Write the index, also when nothing changed: its mtime tells Snakemake that the job ran."""
        store.write_text(self.path, store.to_json({"stage": stage, "runs": self.entries}, indent=None))

    def intact(self, run_id: str, folder: Path) -> bool:
        """Whether all artifacts of a run are there as they were left."""
        entry = self.entries.get(run_id)
        return entry is not None and all(stamp(folder / name) == seen for name, seen in entry["files"].items())


def stamp(path: Path) -> list[int] | None:
    """[bytes, mtime_ns], or None if there is no such file."""
    try:
        status = path.stat()
    except OSError:
        return None
    return [status.st_size, status.st_mtime_ns]


def drop_if_touched(index: Path, folder: Path) -> bool:
    """Delete an index of which an artifact is missing or was touched, so that its job runs again. -> whether it did."""
    ledger = Ledger.load(index)
    if all(ledger.intact(run_id, folder) for run_id in ledger.entries):
        return False
    index.unlink(missing_ok=True)
    return True
