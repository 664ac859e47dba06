"""sha256 of raw logs, computed again only when a file's size or times changed."""

from __future__ import annotations

import hashlib
import os
from dataclasses import dataclass, field
from pathlib import Path

from tokenaxis import store
from tokenaxis.errors import TokenAxisError

#: bytes that are read at a time
_PART = 1 << 20


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
                entry = list(_stamp_and_digest(file))
                self.known[name], self.changed = entry, True
        except OSError as error:
            raise TokenAxisError(f"cannot be read: {error.strerror}", file=str(file)) from error
        return entry[1]

    def bytes_of(self, file: Path) -> int:
        """How many bytes `sha256` was taken of; a log may have grown since."""
        self.sha256(file)
        return int(self.known[os.path.abspath(file)][0].split(":")[0])

    def save(self) -> None:
        """Write what was learnt."""
        if self.changed:
            store.write_text(self.path, store.to_json(self.known, indent=None))


def _stamp_and_digest(file: Path) -> tuple[str, str]:
    """The stamp of a file and the sha256 of the bytes that the stamp is about: not what is appended meanwhile."""
    total = hashlib.sha256()
    with open(file, "rb", buffering=0) as opened:
        status = os.fstat(opened.fileno())
        left = status.st_size
        while left > 0 and (part := opened.read(min(left, _PART))):
            total.update(part)
            left -= len(part)
    return file_stamp(status), total.hexdigest()
