"""Bytes of a log: gzip, byte-order marks and UTF-16 are undone here, so that readers see UTF-8 text."""

from __future__ import annotations

import codecs
import os
import zlib
from contextlib import suppress
from dataclasses import dataclass, field

from tokenaxis.errors import Notice, TokenAxisError
from tokenaxis.readers import sqlite
from tokenaxis.readers.base import SAMPLE_BYTES, Sample

#: bytes from which a plain file is not read into memory as a whole
_ON_DISK = 8 << 20
_GZIP = b"\x1f\x8b"
_UTF16 = {codecs.BOM_UTF16_LE: "utf-16-le", codecs.BOM_UTF16_BE: "utf-16-be"}


@dataclass
class Content:
    """A file's content.

    Attributes:
        data: UTF-8 (bytes that are not stay as they are), without byte-order mark.
        notices: oddities of the container, e.g. a gzip file that was cut off.
        cut: the container ends before its end, so the last line is not whole.
    """

    data: bytes
    notices: list[Notice] = field(default_factory=list)
    cut: bool = False


def sample(path: str, size_of_end: int = SAMPLE_BYTES) -> Sample:
    """The first look at a file: at most two reads. Of a SQLite file the tail is its schema.

    Args:
        path: the file.
        size_of_end: bytes of each end.

    Raises:
        OSError: it cannot be opened.
    """
    with open(path, "rb", buffering=0) as stream:
        size = os.fstat(stream.fileno()).st_size
        head = stream.read(size_of_end)
        tail = b""
        compressed = head.startswith(_GZIP)
        if size > size_of_end and not compressed:
            stream.seek(-min(size_of_end, size - size_of_end), os.SEEK_END)
            tail = stream.read(size_of_end)
    whole = size <= len(head)
    if compressed:
        head, whole = _gunzip_head(head)
    elif head.startswith(sqlite.MAGIC):
        tail = sqlite.schema(path)
    return Sample(os.path.basename(path), _as_utf8(head), tail, size, whole)


def read_content(path: str) -> Content:
    """All of a file, decompressed and as UTF-8.

    Raises:
        TokenAxisError: it is empty, or no byte of a gzip file can be decompressed.
    """
    with open(path, "rb") as stream:
        data = stream.read()
    content = _gunzip(data) if data.startswith(_GZIP) else Content(data)
    content.data = _as_utf8(content.data)
    if not content.data.strip():
        raise TokenAxisError("is empty", remedy="remove it, or put the log in its place")
    return content


def stays_on_disk(path: str) -> bool:
    """Whether a file is so large, and so plain (not compressed, not marked), that it is read piece by piece."""
    if os.path.getsize(path) < _ON_DISK:
        return False
    with open(path, "rb") as stream:
        head = stream.read(4096)
    plain = not head.startswith((_GZIP, codecs.BOM_UTF8, *_UTF16))
    return plain and b"\n" in head


def _as_utf8(data: bytes) -> bytes:
    if data.startswith(codecs.BOM_UTF8):
        return data[len(codecs.BOM_UTF8) :]
    encoding = _UTF16.get(data[:2])
    if encoding is None:
        return data
    return data[2:].decode(encoding, "replace").encode("utf-8", "replace")


def _gunzip_head(data: bytes) -> tuple[bytes, bool]:
    """The beginning of a gzip stream, and whether that was all of it."""
    stream = zlib.decompressobj(wbits=31)
    try:
        head = stream.decompress(data, SAMPLE_BYTES)
    except zlib.error:
        return b"", False
    return head, stream.eof and not stream.unused_data


def _gunzip(data: bytes) -> Content:
    """Every member of a gzip file; what can be had of one that was cut off or damaged, with a notice."""
    parts, trouble = [], None
    rest = data
    while rest.startswith(_GZIP):
        stream = zlib.decompressobj(wbits=31)
        try:
            parts.append(stream.decompress(rest))
        except zlib.error as error:
            parts.append(_salvage(rest))
            trouble = f"the gzip stream is damaged ({error})"
            break
        if not stream.eof:
            trouble = "the gzip stream is truncated: its end is missing"
            break
        rest = stream.unused_data.lstrip(b"\0")
    plain = b"".join(parts)
    if trouble is None:
        return Content(plain)
    if not plain:
        raise TokenAxisError(trouble, remedy="copy the file again")
    message = f"{trouble}; {len(plain):,} bytes before that were read"
    return Content(plain, [Notice("gzip_truncated", message)], cut=True)


def _salvage(data: bytes) -> bytes:
    """What comes out of a damaged gzip stream before the damage."""
    stream = zlib.decompressobj(wbits=31)
    plain: list[bytes] = []
    with suppress(zlib.error):
        plain.extend(stream.decompress(data[start : start + 256]) for start in range(0, len(data), 256))
    return b"".join(plain)
