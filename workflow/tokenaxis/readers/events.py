"""TensorBoard event files without TensorFlow: TFRecord framing and the few protocol buffer fields of scalars.

Framing (tensorflow/core/lib/io/record_writer.h): length uint64, its masked crc32c, payload, its masked crc32c. Fields
(event.proto, summary.proto, tensor.proto): Event.wall_time 1, step 2, file_version 3, summary 5; Summary.value 1;
Value.tag 1, simple_value 2, tensor 8; Tensor.dtype 1, tensor_content 4, float_val 5, double_val 6, int_val 7,
string_val 8, int64_val 10. Checksums are not verified.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass

from tokenaxis.readers.protobuf import fields

_FLOAT, _DOUBLE, _INT32, _INT64 = 1, 2, 3, 9
_CONTENT = {_FLOAT: "<f", _DOUBLE: "<d", _INT32: "<i", _INT64: "<q"}
#: no text that holds settings is longer; how their tags end, and where in a record
_LONGEST_TEXT = 1 << 20
_TEXT, _TEXT_HEAD = b"/text_summary", 256
#: the tag of Event.wall_time, which every writer puts first
_TIME = 0x09
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


def frame_start(data: bytes) -> int:
    """Where the first whole record begins in a piece from the end of an event file; its length where none does.

    A record is known by its length leading to another one, and so on to the end, and by its first field, the time.
    """
    return next((start for start in range(len(data)) if _is_chain(data, start)), len(data))


def _is_chain(data: bytes, start: int) -> bool:
    position, records = start, 0
    while position + 13 <= len(data):
        (length,) = struct.unpack_from("<Q", data, position)
        if not 9 <= length <= _LONGEST_SCALAR or data[position + 12] != _TIME:
            return False
        position, records = position + 16 + length, records + 1
    return records > 1 and position >= len(data) - 12 or (records > 0 and position == len(data))


def scalars(data: bytes) -> Iterator[Scalar]:
    """Every scalar of an event file, in file order; records that are no valid message are skipped."""
    for number, payload in frames(data):
        if payload:
            try:
                yield from _event(number, payload)
            except (ValueError, struct.error, IndexError):
                continue


def texts(data: bytes) -> Iterator[tuple[str, str]]:
    """(tag, text) of every text summary; Hugging Face's Trainer keeps its arguments in args/text_summary."""
    for payload in _payloads(data):
        if _TEXT in payload[:_TEXT_HEAD]:
            try:
                yield from _texts(payload)
            except (ValueError, struct.error, IndexError):
                continue


def _payloads(data: bytes) -> Iterator[bytes]:
    position = 0
    while position + 12 <= len(data):
        end = position + 12 + struct.unpack_from("<Q", data, position)[0]
        if end + 4 > len(data):
            return
        if end - position < _LONGEST_TEXT:
            yield data[position + 12 : end]
        position = end + 4


def _texts(payload: bytes) -> Iterator[tuple[str, str]]:
    for summary in _parts(payload, 5):
        for value in _parts(summary, 1):
            tag = next(_parts(value, 1), b"").decode("utf-8", "replace")
            for tensor in _parts(value, 8):
                for text in _parts(tensor, 8):
                    yield tag, text.decode("utf-8", "replace")


def _parts(message: bytes, number: int) -> Iterator[bytes]:
    return (value for field, value in fields(message) if field == number and isinstance(value, bytes))


def _event(number: int, payload: bytes) -> Iterator[Scalar]:
    wall_time, step = 0.0, 0
    summaries = []
    for field, value in fields(payload):
        if field == 1 and isinstance(value, bytes) and len(value) == 8:
            (wall_time,) = struct.unpack("<d", value)
        elif field == 2 and isinstance(value, int):
            step = value - (1 << 64) if value >> 63 else value
        elif field == 5 and isinstance(value, bytes):
            summaries.append(value)
    for summary in summaries:
        for field, value in fields(summary):
            if field == 1 and isinstance(value, bytes):
                scalar = _value(value)
                if scalar is not None:
                    yield Scalar(number, wall_time, step, *scalar)


def _value(message: bytes) -> tuple[str, float] | None:
    tag, number = None, None
    for field, value in fields(message):
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
    for field, value in fields(message):
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
