"""The lines of a table below its header, in memory or, for large files, left on disk."""

from __future__ import annotations

import io
import os
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, BinaryIO

if TYPE_CHECKING:
    import pyarrow as pa

_BLOCK = 1 << 20
#: bytes with which a row may be more or less than a line
_ODD = (b"\r", b'"')


@dataclass
class Body:
    """Bytes `start` to `end` of a file's content.

    Attributes:
        content: the content, or the path of the file that holds just it.
        start, end: the part.
    """

    content: bytes | str
    start: int
    end: int

    @cached_property
    def odd_ends(self) -> bool:
        """Whether a carriage return or a quote is in it, so that rows may not be lines.

        Of a file on disk only the first block is looked at: another pass would cost more than the line numbers in
        messages are worth, which are all that a later one would shift.
        """
        if isinstance(self.content, bytes):
            return any(self.content.find(byte, self.start, self.end) >= 0 for byte in _ODD)
        with open(self.content, "rb") as stream:
            stream.seek(self.start)
            block = stream.read(min(_BLOCK, self.size))
        return any(byte in block for byte in _ODD)

    @cached_property
    def lines(self) -> int:
        """Number of lines; the last may lack its line end."""
        if self.start >= self.end:
            return 0
        if isinstance(self.content, bytes):
            return self.content.count(b"\n", self.start, self.end) + (self.content[self.end - 1] != 10)
        ends, last = 0, b""
        with open(self.content, "rb") as stream:
            stream.seek(self.start)
            left = self.size
            while left > 0 and (block := stream.read(min(_BLOCK, left))):
                ends += block.count(b"\n")
                left -= len(block)
                last = block[-1:]
        return ends + (last != b"\n")

    @property
    def size(self) -> int:
        """Bytes."""
        return max(0, self.end - self.start)

    def raw_lines(self) -> Iterator[bytes]:
        """Each line with its line end."""
        with self._open() as stream:
            stream.seek(self.start)
            position = self.start
            for line in stream:
                position += len(line)
                if position >= self.end:
                    yield line[: len(line) - (position - self.end)]
                    return
                yield line

    def arrow(self) -> pa.NativeFile:
        """The part as a file for pyarrow."""
        import pyarrow as pa

        if isinstance(self.content, bytes):
            return pa.BufferReader(pa.py_buffer(memoryview(self.content)[self.start : self.end]))
        if self.end == os.path.getsize(self.content):
            stream = pa.OSFile(self.content)
            stream.seek(self.start)
            return stream
        return pa.PythonFile(_Part(self.content, self.start, self.end), mode="r")

    def _open(self) -> BinaryIO:
        return io.BytesIO(self.content) if isinstance(self.content, bytes) else open(self.content, "rb")


class _Part(io.RawIOBase):
    """A part of a file on disk, as a file of its own."""

    def __init__(self, path: str, start: int, end: int):
        self._stream = open(path, "rb", buffering=0)  # noqa: SIM115 (closed with this object)
        self._stream.seek(start)
        self._left = end - start

    def readable(self) -> bool:
        return True

    def read(self, size: int = -1) -> bytes:
        data = self._stream.read(self._left if size < 0 else min(size, self._left)) or b""
        self._left -= len(data)
        return data

    def close(self) -> None:
        self._stream.close()
        super().close()
