"""Digests of runs in a few files, and where a comparison finds them.

A file holds the digests of the runs that hash to it: a line with the sha256 of all that follows, a line of JSON (run ->
key and the places of its parts), then the parts. Whatever is not whole, or not of the key that is asked for, is made
again from the artifacts. The files are state of the engines: they may be deleted at any time.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from tokenaxis.comparison import files
from tokenaxis.comparison.digest import PARTS, Digest, Recipe, read, record
from tokenaxis.comparison.model import Source

#: runs of a file, and files at most (each stays open while a page is written)
RUNS_PER_FILE, MOST_FILES = 128, 256
HELD = ("known", "numbers")


class Shelf:
    """The digests of the runs of one comparison.

    Args:
        folder: where the files are; None: nothing is kept, and the parts stay in memory.
        code: digest of the code that makes them.
    """

    def __init__(self, folder: Path | None = None, code: str = ""):
        self.folder, self.code = folder, code
        self._places: dict[str, tuple[Any, dict[str, list[int]]]] = {}  # run -> (its open file, part -> [from, to])
        self._open: list[Any] = []
        self._pool: dict[str, Any] = {}

    def digests(self, sources: Sequence[Source], recipe: Recipe) -> Iterator[Digest]:
        """The digest of each run, file by file; those that are missing are made and kept."""
        groups = _groups(sources)
        names = [f"{number:03d}-of-{len(groups):03d}.digests" for number in range(len(groups))]
        if self.folder is not None:
            _remove_others(self.folder, set(names) | {FIGURES})
        for name, group in zip(names, groups, strict=True):
            yield from self._group(name, group, recipe)

    def part(self, run: str, name: str) -> bytes:
        """One of PARTS of a run that `digests` has given."""
        held, places = self._places[run]
        first, last = places[name]
        return held[first:last] if isinstance(held, bytes) else os.pread(held.fileno(), last - first, first)

    def close(self) -> None:
        """Close the files."""
        for file in self._open:
            file.close()

    def _group(self, name: str, group: list[Source], recipe: Recipe) -> Iterator[Digest]:
        path = None if self.folder is None else self.folder / name
        if not group:
            if path is not None:
                path.unlink(missing_ok=True)
            return
        index, body = ({}, b"") if path is None else _load(path)
        about = [self.code, repr(recipe)]
        keys = {source.id: _key(source, about) for source in group}
        current = {run for run, key in keys.items() if key is not None and index.get(run, [None])[0] == key}
        if len(current) < len(group) or len(index) != len(group):
            records = {run: {part: body[a:b] for part, (a, b) in index[run][1].items()} for run in current}
            for source in group:
                if source.id not in current:
                    records[source.id] = record(source.load(), recipe)
            index, body = _joined(records, keys)
            if path is not None:
                head = _with_sum(index, body)
                files.write(path, head + body)
        self._keep(path, index, body)
        for source in group:
            places = index[source.id][1]
            held = {part: body[places[part][0] : places[part][1]] for part in HELD}
            yield read(held, self._same)

    def _keep(self, path: Path | None, index: dict[str, Any], body: bytes) -> None:
        """Remember where the parts are; without a file they are here."""
        if path is None:
            self._places |= {run: (body, places) for run, (_, places) in index.items()}
            return
        file = open(path, "rb")  # noqa: SIM115 - stays open: another process may replace the path
        self._open.append(file)
        start = os.fstat(file.fileno()).st_size - len(body)
        for run, (_, places) in index.items():
            self._places[run] = (file, {part: [start + a, start + b] for part, (a, b) in places.items()})

    def _same(self, value: Any) -> Any:
        return self._pool.setdefault(json.dumps(value, sort_keys=True), value)


#: what `keeping` notes in the same folder
FIGURES = "figures.json"


def _groups(sources: Sequence[Source]) -> list[list[Source]]:
    """The runs by file: by hash, so that a run stays in its file when others come, unless their number doubles."""
    count = 1
    while count * RUNS_PER_FILE < len(sources) and count < MOST_FILES:
        count *= 2
    groups: list[list[Source]] = [[] for _ in range(count)]
    for source in sources:
        digest = hashlib.sha256(source.id.encode("utf-8", "surrogatepass")).digest()
        groups[int.from_bytes(digest[:4], "big") % count].append(source)
    return groups


def _key(source: Source, about: list[str]) -> str | None:
    if source.key is None:
        return None
    return hashlib.sha256(json.dumps([*about, source.id, source.name, source.key]).encode("ascii")).hexdigest()


def _joined(records: dict[str, dict[str, bytes]], keys: dict[str, str | None]) -> tuple[dict[str, Any], bytes]:
    index: dict[str, Any] = {}
    pieces: list[bytes] = []
    end = 0
    for run in sorted(records):
        places = {}
        for part in PARTS:
            piece = records[run][part]
            places[part] = [end, end + len(piece)]
            end += len(piece)
            pieces.append(piece)
        index[run] = [keys[run], places]
    return index, b"".join(pieces)


def _with_sum(index: dict[str, Any], body: bytes) -> bytes:
    head = json.dumps(index, separators=(",", ":")).encode("ascii") + b"\n"
    return checksum(head, body) + b"\n" + head


def checksum(*pieces: bytes) -> bytes:
    """sha256 of the pieces one behind the other, in hexadecimal digits."""
    total = hashlib.sha256()
    for piece in pieces:
        total.update(piece)
    return total.hexdigest().encode("ascii")


def _load(path: Path) -> tuple[dict[str, Any], bytes]:
    """(index, parts) of a file; nothing of one that is missing, damaged or edited."""
    try:
        content = path.read_bytes()
    except OSError:
        return {}, b""
    expected, _, rest = content.partition(b"\n")
    if checksum(rest) != expected:
        return {}, b""
    head, _, body = rest.partition(b"\n")
    return json.loads(head), body


def _remove_others(folder: Path, names: set[str]) -> None:
    """Delete the files of another number of runs, and what a killed comparison left."""
    for path in sorted(folder.iterdir()) if folder.is_dir() else []:
        if path.name not in names:
            path.unlink(missing_ok=True)
