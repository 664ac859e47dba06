"""sha256 of raw logs, computed again only when a file's size or times changed."""

from __future__ import annotations

import hashlib
import os
from dataclasses import dataclass, field
from pathlib import Path

from tokenaxis import store
from tokenaxis.errors import TokenAxisError


def file_stamp(status: os.stat_result) -> str:
    """Size, mtime and ctime in one string: what must be equal for a file to be taken as unchanged."""
    return f"{status.st_size}:{status.st_mtime_ns}:{status.st_ctime_ns}"


@dataclass
class Hashes:
    """Known hashes by path: [stamp, sha256]."""

    path: Path
    known: dict[str, list[str]] = field(default_factory=dict)
    changed: bool = False

    @classmethod
    def load(cls, path: Path) -> Hashes:
        """The hashes remembered at `path`; none if it is missing or damaged."""
        data = store.read_json(path)
        return cls(path, data if isinstance(data, dict) else {})

    def sha256(self, file: Path) -> str:
        """sha256 of a file.

        Raises:
            TokenAxisError: it cannot be read.
        """
        name = os.path.abspath(file)
        try:
            stamp = file_stamp(os.stat(file))
            entry = self.known.get(name)
            if entry is None or entry[0] != stamp:
                with open(file, "rb") as opened:
                    entry = [stamp, hashlib.file_digest(opened, "sha256").hexdigest()]
                self.known[name], self.changed = entry, True
        except OSError as error:
            raise TokenAxisError(f"cannot be read: {error.strerror}", file=str(file)) from error
        return entry[1]

    def save(self) -> None:
        """Write what was learnt."""
        if self.changed:
            store.write_text(self.path, store.to_json(self.known, indent=None))
