"""What was seen of a file before, so that looking again costs nothing: by path, size, times and declared names."""

from __future__ import annotations

import hashlib
import json
import zlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tokenaxis import readers, store
from tokenaxis.errors import TokenAxisError, printable
from tokenaxis.readers.base import SAMPLE_BYTES, Sample
from tokenaxis.readers.extent import Extent, extent
from tokenaxis.sweep.model import LogFile

#: event files may begin with texts (the arguments of a Trainer) that are longer than other first looks
_EVENT_BYTES = 1 << 16
_BYTES, _STAMP, _KIND, _DETAIL, _CHECKSUM, _EXTENT, _SHA256 = range(7)


class Known:
    """The cache; it is dropped as a whole when the code that recognises files changed."""

    def __init__(self, root: Path, cache: Path | None):
        self.root, self.cache = root, cache
        stored = (store.read_json(cache) if cache else None) or {}
        self.code = readers.code_digest()
        self.files: dict[str, list[Any]] = stored.get("files", {}) if stored.get("code") == self.code else {}
        self.seen: dict[str, list[Any]] = {}
        self.changed = False

    def look(self, log: LogFile, columns: Mapping[str, str] | None = None) -> tuple[str, list[Any]]:
        """("log", [format, parts]), ("refused", [reason, remedy]) or ("passed_over", [reason]).

        Args:
            log: the file.
            columns: declared columns, with which it is looked at.
        """
        entry = self._entry(log, columns)
        return entry[_KIND], entry[_DETAIL]

    def checksum(self, log: LogFile) -> int:
        """Of the file's beginning and end: two files with different ones are different."""
        return self._entry(log, None)[_CHECKSUM]

    def sha256(self, log: LogFile) -> str | None:
        """sha256 of the whole file; None where it cannot be read any more."""
        entry = self._entry(log, None)
        if entry[_SHA256] is None:
            try:
                with open(self.root / log.path, "rb") as stream:
                    entry[_SHA256] = hashlib.file_digest(stream, "sha256").hexdigest()
            except OSError:
                return None
            self.changed = True
        return entry[_SHA256]

    def extent(self, log: LogFile, reader: str) -> Extent | None:
        """From which step to which the log reaches, as far as its first look shows."""
        entry = self._entry(log, None)
        if entry[_EXTENT] is None:
            try:
                found = extent(readers.sample(str(self.root / log.path), _look_at(reader)), reader)
            except OSError:
                found = None
            entry[_EXTENT] = [] if found is None else [found.first, found.last, found.interval]
            self.changed = True
        return Extent(*entry[_EXTENT]) if entry[_EXTENT] else None

    def sample(self, log: LogFile, reader: str) -> Sample | None:
        """A first look at a log of a format; None where it cannot be read any more."""
        try:
            return readers.sample(str(self.root / log.path), _look_at(reader))
        except OSError:
            return None

    def save(self) -> None:
        """Write what was learnt, if anything was."""
        if self.cache is not None and (self.changed or self.seen.keys() != self.files.keys()):
            store.write_text(self.cache, store.to_json({"code": self.code, "files": self.seen}, indent=None))

    def _entry(self, log: LogFile, columns: Mapping[str, str] | None) -> list[Any]:
        key = log.path if not columns else f"{log.path}\0{json.dumps(columns, sort_keys=True)}"
        entry = self.seen.get(key)
        if entry is None:
            entry = self.files.get(key)
            if entry is None or entry[_BYTES] != log.bytes or entry[_STAMP] != log.stamp:
                entry = [log.bytes, log.stamp, *self._recognised(log, columns), None, None]
                self.changed = True
            self.seen[key] = entry
        return entry

    def _recognised(self, log: LogFile, columns: Mapping[str, str] | None) -> tuple[str, list[Any], int]:
        path = str(self.root / log.path)
        try:
            sample = readers.sample(path)
            checksum = zlib.crc32(sample.tail, zlib.crc32(sample.head))
            return *_recognise(path, sample, columns), checksum
        except OSError as error:
            return "refused", [f"cannot be read: {error.strerror}", None], 0


def _look_at(reader: str) -> int:
    """Bytes of each end of a log of some format in which its first and last rows are looked for."""
    return _EVENT_BYTES if reader == "tensorboard" else SAMPLE_BYTES


def _recognise(path: str, sample: Sample, columns: Mapping[str, str] | None) -> tuple[str, list[Any]]:
    """Kind and detail, see `Known.look`."""
    recognition = readers.recognise(sample, None, columns)
    if recognition.reader is not None:
        parts = recognition.reader.parts
        try:
            return "log", [recognition.reader.name, [] if parts is None else parts(path)]
        except TokenAxisError as error:
            return "refused", [printable(error.reason), error.remedy]
    if recognition.refused is not None:
        return "refused", [printable(recognition.refused.reason), recognition.refused.remedy]
    return "passed_over", [recognition.passed_over]
