"""TensorBoard event files without TensorFlow: TFRecord framing and the few protocol buffer fields of scalars.

Framing (tensorflow/core/lib/io/record_writer.h): length uint64, masked crc32c of it, payload, masked crc32c of that.
Fields (event.proto, summary.proto, tensor.proto): Event.wall_time 1, step 2, file_version 3, summary 5; Summary.value 1;
Value.tag 1, simple_value 2, tensor 8; Tensor.dtype 1, tensor_content 4, float_val 5, double_val 6, int_val 7,
int64_val 10. Checksums are not verified.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass

_FLOAT, _DOUBLE, _INT32, _INT64 = 1, 2, 3, 9
_CONTENT = {_FLOAT: "<f", _DOUBLE: "<d", _INT32: "<i", _INT64: "<q"}
#: no scalar event is longer; a longer record (an image, a graph) is skipped
_LONGEST_SCALAR = 1 << 16


@dataclass(frozen=True)
class Scalar:
    """One scalar: `record` is the 1-based number of its record in the file."""

    record: int
    wall_time: float
    step: int
    tag: str
    value: float


def frames(data: bytes) -> Iterator[tuple[int, bytes]]:
    """(1-based number, payload) of each whole record; ends silently where one is cut."""
    position, number = 0, 0
    while position + 12 <= len(data):
        (length,) = struct.unpack_from("<Q", data, position)
        end = position + 12 + length
        if end + 4 > len(data):
            return
        number += 1
        yield number, data[position + 12 : end] if length <= _LONGEST_SCALAR else b""
        position = end + 4


def whole_bytes(data: bytes) -> int:
    """Bytes of the whole records at the file's beginning."""
    position = 0
    while position + 12 <= len(data):
        end = position + 16 + struct.unpack_from("<Q", data, position)[0]
        if end > len(data):
            break
        position = end
    return position


def scalars(data: bytes) -> Iterator[Scalar]:
    """Every scalar of an event file, in file order; records that are no valid message are skipped."""
    for number, payload in frames(data):
        if payload:
            try:
                yield from _event(number, payload)
            except (ValueError, struct.error, IndexError):
                continue


def _event(number: int, payload: bytes) -> Iterator[Scalar]:
    wall_time, step = 0.0, 0
    summaries = []
    for field, value in _fields(payload):
        if field == 1 and isinstance(value, bytes) and len(value) == 8:
            (wall_time,) = struct.unpack("<d", value)
        elif field == 2 and isinstance(value, int):
            step = value - (1 << 64) if value >> 63 else value
        elif field == 5 and isinstance(value, bytes):
            summaries.append(value)
    for summary in summaries:
        for field, value in _fields(summary):
            if field == 1 and isinstance(value, bytes):
                scalar = _value(value)
                if scalar is not None:
                    yield Scalar(number, wall_time, step, *scalar)


def _value(message: bytes) -> tuple[str, float] | None:
    tag, number = None, None
    for field, value in _fields(message):
        if not isinstance(value, bytes):
            continue
        if field == 1:
            tag = value.decode("utf-8", "replace")
        elif field == 2 and len(value) == 4:
            (number,) = struct.unpack("<f", value)
        elif field == 8:
            number = _tensor(value)
    return None if tag is None or number is None else (tag, float(number))


def _tensor(message: bytes) -> float | None:
    """The value of a tensor with one element; None for any other."""
    dtype, number = _FLOAT, None
    for field, value in _fields(message):
        if field == 1 and isinstance(value, int):
            dtype = value
        elif field == 4 and isinstance(value, bytes):
            form = _CONTENT.get(dtype)
            if form is not None and len(value) == struct.calcsize(form):
                (number,) = struct.unpack(form, value)
        elif field == 5 and isinstance(value, bytes) and len(value) == 4:
            (number,) = struct.unpack("<f", value)
        elif field == 6 and isinstance(value, bytes) and len(value) == 8:
            (number,) = struct.unpack("<d", value)
        elif field in (7, 10) and isinstance(value, int):
            number = value
    return number


def _fields(message: bytes) -> Iterator[tuple[int, int | bytes]]:
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
