"""JSON lines: one object a line, keys under any known alias, also inside nested objects (`train.loss`).

Reads LLaMA-Factory's trainer_log.jsonl, OLMo-, levanter-, torchtune- and litgpt-style logs and home-made ones.
"""

from __future__ import annotations

import io
import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import BinaryIO

from tokenaxis.declarations import Declaration
from tokenaxis.errors import Notice, TokenAxisError
from tokenaxis.readers import json_fast, naming, remedies
from tokenaxis.readers.base import RawLog, Reader, Sample
from tokenaxis.readers.content import Content, read_content, stays_on_disk
from tokenaxis.readers.records import Records, flatten, is_number
from tokenaxis.readers.table.finish import finish

NAME = "jsonl"
_KEY = re.compile(rb'"((?:[^"\\]|\\.){1,80})"\s*:')
_LINES_NAME = re.compile(r"\.(jsonl|ndjson|log|txt)(\.gz)?$", re.IGNORECASE)
#: bytes that are parsed at a time
_BLOCK = 8 << 20
#: lines at the top that are looked at
_LOOK = 40


def _roles(lines: list[bytes], columns: Mapping[str, str]) -> tuple[int, dict[str | None, str]]:
    """Number of whole objects among lines, and role -> key of what holds a number in them."""
    objects = 0
    roles: dict[str | None, str] = {}
    for line in lines[:_LOOK]:
        if line[:1] != b"{" or not line.rstrip().endswith(b"}"):
            continue
        try:
            record = json.loads(line)
        except (ValueError, RecursionError):
            continue
        objects += 1
        for key, value in flatten(record):
            role = naming.role(key, columns)
            if role not in roles and role is not None and is_number(value, role):
                roles[role] = key
    return objects, roles


def _looked(sample: Sample) -> tuple[int, dict[str | None, str]]:
    head = sample.head.lstrip()
    if head[:1] != b"{":
        # noise may stand above the first object
        if b"\n{" not in head[:2048]:
            return 0, {}
        head = head[head.index(b"\n{") + 1 :]
    objects, roles = _roles(head.split(b"\n"), sample.columns)
    if objects and sample.tail and roles.keys().isdisjoint(("train_loss", "val_loss")):
        # a header record or an evaluation may fill the head
        more, later = _roles(sample.tail.split(b"\n")[1:], sample.columns)
        objects, roles = objects + more, later | roles
    return objects, roles


def sniff(sample: Sample) -> int:
    """Confident when lines are objects in which a step and a loss hold numbers."""
    objects, roles = _looked(sample)
    if objects == 0 or (objects == 1 and sample.name.endswith(".json")):
        return 0
    return 75 if "step" in roles and not roles.keys().isdisjoint(("train_loss", "val_loss")) else 0


def lacks(sample: Sample) -> TokenAxisError | None:
    """What is missing in lines of objects that hold only a step or only a loss."""
    if not _LINES_NAME.search(sample.name):
        return None
    objects, roles = _looked(sample)
    if not objects:
        return None
    keys = list(dict.fromkeys(key.decode("utf-8", "replace") for key in _KEY.findall(sample.head)))
    losses = not roles.keys().isdisjoint(("train_loss", "val_loss"))
    if "step" in roles and not losses:
        return remedies.missing_column("train_loss", keys, sample.columns)
    if losses and "step" not in roles:
        return remedies.missing_column("step", keys, sample.columns)
    return None


def read(path: str, declaration: Declaration) -> RawLog:
    """Read a log of JSON lines.

    Raises:
        TokenAxisError: no record has a step and a loss.
    """
    if stays_on_disk(path):
        content, source = Content(b""), _Lines(path)
        worth = True
    else:
        content = read_content(path)
        source, worth = _Lines(content.data), len(content.data) >= json_fast.WORTH
    log = _read_fast(source, content, declaration) if worth else None
    return _read_slow(source, content, declaration) if log is None else log


@dataclass
class _Lines:
    """The lines of a log, in memory or in a file that stays on disk.

    Attributes:
        source: the content, or the path of the file that holds just it.
        ends_whole: the last line has a line end; known once the lines, or blocks, were gone through.
        rest: what follows the last line end, after `blocks`.
    """

    source: bytes | str
    ends_whole: bool = True
    rest: bytes = b""

    def blocks(self) -> Iterator[bytes]:
        """Whole lines, _BLOCK bytes or so at a time."""
        rest = b""
        with self._opened() as stream:
            while block := stream.read(_BLOCK):
                block = rest + block
                end = block.rfind(b"\n") + 1
                if not end and len(block) > 4 * _BLOCK:
                    end = len(block)  # no lines at all: whoever reads this finds that out
                rest = block[end:]
                if end:
                    yield block[:end]
        if rest.rstrip(b" \t\r\0").endswith(b"}"):
            yield rest + b"\n"  # whole, as some writers end without a line end
            rest = b""
        self.rest = rest

    def numbered(self) -> Iterator[tuple[int, bytes]]:
        """(1-based number, line with its end)."""
        with self._opened() as stream:
            line = b"\n"
            for number, line in enumerate(stream, 1):
                yield number, line
        self.ends_whole = line.endswith(b"\n")

    def _opened(self) -> BinaryIO:
        return io.BytesIO(self.source) if isinstance(self.source, bytes) else open(self.source, "rb")


def _read_fast(source: _Lines, content: Content, declaration: Declaration) -> RawLog | None:
    """The log by pyarrow.json; None when a line but the last is no plain object."""
    parsed = json_fast.parse(source.blocks(), declaration.columns)
    if parsed is None:
        return None
    columns, found, lines = parsed
    columns.notices[:0] = content.notices
    if source.rest.strip(b" \t\r\0"):
        columns.bad_lines.append(lines + 1)
        columns.notices.append(_torn(lines + 1))
    return finish(columns, found, NAME)


def _read_slow(source: _Lines, content: Content, declaration: Declaration) -> RawLog:
    records = Records(declaration.columns)
    decode = json.JSONDecoder().decode
    line, bad_last = 0, False
    for line, raw in source.numbered():
        text = raw.strip(b" \t\r\n\0,")
        if not text:
            continue
        bad_last = False
        try:
            record = decode(text.decode("utf-8", "replace"))
        except (ValueError, RecursionError):
            # comments, brackets of a list written line by line
            if text[:1] not in (b"#", b"/") and text not in (b"[", b"]"):
                records.bad_lines.append(line)
                bad_last = True
            continue
        if isinstance(record, dict):
            records.add(line, record)
        else:
            records.bad_lines.append(line)
    notices = list(content.notices)
    torn = bad_last and not source.ends_whole
    if torn:
        notices.append(_torn(line))
    middle = len(records.bad_lines) - torn
    if middle:
        shown = ", ".join(str(bad) for bad in records.bad_lines[:5])
        notices.append(Notice("not_json", f"{middle} lines are no JSON object and were left out (lines {shown})"))
    return records.log(NAME, notices)


def _torn(line: int) -> Notice:
    return Notice("torn_last_line", f"line {line}, the last, is torn (cut inside); left out")


READER = Reader(
    NAME, "JSON lines whose keys name a step and a loss (LLaMA-Factory, OLMo, litgpt, ...)", sniff, read, lacks
)
