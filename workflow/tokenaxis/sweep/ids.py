"""Run ids and shards: a run's safe name, and which job it belongs to."""

from __future__ import annotations

import hashlib
import os
import re
from collections import Counter
from collections.abc import Sequence

#: longest id before its tail is replaced by a hash; file systems allow 255 bytes with suffixes
_LONGEST = 100
_LOG_ENDINGS = re.compile(r"(\.(csv|tsv|txt|log|jsonl|json|out|dat))?(\.gz)?$", re.IGNORECASE)
_RESERVED = re.compile(r"^(con|prn|aux|nul|com\d|lpt\d)(\.|$)", re.IGNORECASE)


def run_ids(paths: Sequence[str]) -> list[str]:
    """A safe, unique id for each path (relative to the sweep directory).

    An id is the path without its ending, folders joined by `--`. Where characters had to go, where it would be too
    long, hidden or a device name, or where two ids would differ in case only, 8 hex digits of the path's sha256 are
    added. An id depends on other paths only in the last case, so ids stay as runs are added.
    """
    slugs = [_slug(path) for path in paths]
    taken = Counter(slug.lower() for slug in slugs)
    return [
        slug if taken[slug.lower()] == 1 else f"{slug}-{_digest(path)}" for slug, path in zip(slugs, paths, strict=True)
    ]


def without_ending(path: str) -> str:
    """A log's path without `.csv`, `.jsonl.gz` and the like."""
    return _LOG_ENDINGS.sub("", path.replace(os.sep, "/"), count=1)


def _slug(path: str) -> str:
    stem = without_ending(path).strip("/")
    plain = stem.replace("/", "--")
    slug = re.sub(r"[^A-Za-z0-9._-]+", "-", plain).lstrip(".-")[:_LONGEST]
    if slug != plain or not slug or _RESERVED.match(slug):
        slug = f"{slug or 'run'}-{_digest(path)}"
    return slug


def _digest(path: str) -> str:
    return hashlib.sha256(os.fsencode(path)).hexdigest()[:8]


def shard_of(run_id: str, shards: int) -> int:
    """The shard (0 .. shards-1) of a run: by hash, so that it stays when runs are added.

    sha256 since crc32 modulo 8 left half of the shards empty on run00000, run00001, ...
    """
    return int.from_bytes(hashlib.sha256(run_id.encode()).digest()[:4], "big") % shards
