"""Offline files of Weights & Biases, run-<id>.wandb.

A LevelDB log (blocks of 32 KiB; records of crc32, length uint16, type: whole, first, middle, last) behind a header of
seven bytes; each record is a protocol buffer (wandb_internal.proto): Record.history 2, config 5, run 17;
HistoryRecord.item 1; item key 1, nested_key 2, value_json 16; RunRecord.config 4, ConfigRecord.update 1. `_step` is the
number of the log call.
"""

from __future__ import annotations

import json
import struct
from collections.abc import Iterator
from typing import Any

from tokenaxis.declarations import Declaration
from tokenaxis.errors import Notice, TokenAxisError
from tokenaxis.readers.base import RawLog, Reader, Sample
from tokenaxis.readers.content import read_content
from tokenaxis.readers.protobuf import fields
from tokenaxis.readers.records import Records, flatten
from tokenaxis.readers.settings import facts_of

NAME = "wandb-offline"
_IDENT = b":W&B"
_HEADER, _BLOCK, _RECORD = 7, 32768, 7
_HISTORY, _CONFIG, _RUN = 2, 5, 17
_RUN_CONFIG = 4


def sniff(sample: Sample) -> int:
    """Certain by the file's identifier."""
    return 99 if sample.head.startswith(_IDENT) else 0


def read(path: str, declaration: Declaration) -> RawLog:
    """Read the history of an offline run.

    Raises:
        TokenAxisError: it has no history, or no loss in it.
    """
    content = read_content(path)
    records = Records(declaration.columns)
    config: dict[str, Any] = {}
    rows = whole = 0
    for number, payload in enumerate(_records(content.data), 1):
        whole = number
        try:
            parts = list(fields(payload))
        except (ValueError, IndexError):
            records.bad_lines.append(number)
            continue
        for field, value in parts:
            if not isinstance(value, bytes):
                continue
            if field == _HISTORY:
                rows += 1
                records.add(number, _items(value))
            elif field == _CONFIG:
                config |= _items(value)
            elif field == _RUN:
                for part, inner in _safe_fields(value):
                    if part == _RUN_CONFIG and isinstance(inner, bytes):
                        config |= _items(inner)
    if not rows:
        raise TokenAxisError(
            f"has no history: nothing was logged in this run ({whole} records)", remedy="remove it, or log losses"
        )
    log = records.log(NAME, list(content.notices))
    log.facts += facts_of(dict(flatten(config)), "W&B config")
    if log.names["step"] == "_step":
        message = "'_step' is the number of the log call, which is the optimizer step only if each step was logged"
        log.warnings.append(Notice("step_is_log_index", message))
    return log


def _items(message: bytes) -> dict[str, Any]:
    """key -> value of a history or config record."""
    found = {}
    for field, item in _safe_fields(message):
        if field != 1 or not isinstance(item, bytes):
            continue
        key, nested, value = "", [], None
        for part, inner in _safe_fields(item):
            if not isinstance(inner, bytes):
                continue
            if part == 1:
                key = inner.decode("utf-8", "replace")
            elif part == 2:
                nested.append(inner.decode("utf-8", "replace"))
            elif part == 16:
                try:
                    value = json.loads(inner)
                except (ValueError, RecursionError):
                    value = inner.decode("utf-8", "replace")
        name = key or ".".join(nested)
        if name:
            found[name] = value
    return found


def _safe_fields(message: bytes) -> Iterator[tuple[int, int | bytes]]:
    try:
        yield from fields(message)
    except (ValueError, IndexError):
        return


def _records(data: bytes) -> Iterator[bytes]:
    """Payload of each record of the LevelDB log; parts of a record whose beginning is lost are skipped."""
    position = _HEADER
    parts: list[bytes] = []
    while position + _RECORD <= len(data):
        left = _BLOCK - position % _BLOCK
        if left < _RECORD:
            position += left
            continue
        length, kind = struct.unpack_from("<HB", data, position + 4)
        end = position + _RECORD + length
        if kind == 0 or kind > 4 or end > len(data) or _RECORD + length > left:
            # zero padding or damage: go on with the next block
            position += left
            parts = []
            continue
        payload = data[position + _RECORD : end]
        position = end
        if kind == 1:
            yield payload
        elif kind == 2:
            parts = [payload]
        elif parts:
            parts.append(payload)
            if kind == 4:
                yield b"".join(parts)
                parts = []


READER = Reader(NAME, "offline files of Weights & Biases (.wandb)", sniff, read)
