"""The wire format of protocol buffers, as far as the readers of TensorBoard and W&B files need it."""

from __future__ import annotations

from collections.abc import Iterator


def fields(message: bytes) -> Iterator[tuple[int, int | bytes]]:
    """(field number, varint or bytes) of a protocol buffer message.

    Raises:
        ValueError, IndexError: it is none.
    """
    position, end = 0, len(message)
    while position < end:
        key, position = _varint(message, position)
        field, wire = key >> 3, key & 7
        if wire == 0:
            value, position = _varint(message, position)
            yield field, value
            continue
        if wire == 2:
            length, position = _varint(message, position)
        elif wire in (1, 5):
            length = 8 if wire == 1 else 4
        else:
            raise ValueError("no such wire type")
        if position + length > end:
            raise ValueError("a field is longer than its message")
        yield field, message[position : position + length]
        position += length


def _varint(message: bytes, position: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        byte = message[position]
        value |= (byte & 0x7F) << shift
        position += 1
        if byte < 0x80:
            return value, position
        shift += 7
        if shift > 63:
            raise ValueError("a varint is too long")
