"""JSON lines: one object a line, keys under any known alias, also inside nested objects (`train.loss`).

Reads LLaMA-Factory's trainer_log.jsonl, OLMo-, levanter-, torchtune- and litgpt-style logs and home-made ones.
"""

from __future__ import annotations

import io
import json
import re
from collections.abc import Mapping

from tokenaxis.declarations import Declaration
from tokenaxis.errors import Notice, TokenAxisError
from tokenaxis.readers import json_fast, naming
from tokenaxis.readers.base import RawLog, Reader, Sample
from tokenaxis.readers.content import Content, read_content
from tokenaxis.readers.records import Records, flatten, is_number
from tokenaxis.readers.table.finish import finish

NAME = "jsonl"
_KEY = re.compile(rb'"((?:[^"\\]|\\.){1,80})"\s*:')
_LINES_NAME = re.compile(r"\.(jsonl|ndjson|log|txt)(\.gz)?$", re.IGNORECASE)
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
        return naming.missing_column("train_loss", keys)
    if losses and "step" not in roles:
        return naming.missing_column("step", keys)
    return None


def read(path: str, declaration: Declaration) -> RawLog:
    """Read a log of JSON lines.

    Raises:
        TokenAxisError: no record has a step and a loss.
    """
    content = read_content(path)
    if len(content.data) >= json_fast.WORTH:
        log = _read_fast(content, declaration)
        if log is not None:
            return log
    return _read_slow(content, declaration)


def _read_fast(content: Content, declaration: Declaration) -> RawLog | None:
    """The log by pyarrow.json; None when a line but the last is no plain object."""
    data, torn = content.data, None
    if not data.endswith(b"\n"):
        start = data.rfind(b"\n") + 1
        torn = data[start:]
        data = data[:start]
    parsed = json_fast.parse(data, declaration.columns)
    if parsed is None:
        return None
    columns, found = parsed
    columns.notices[:0] = content.notices
    if torn is not None and torn.strip(b" \t\r\0"):
        if torn.rstrip().endswith(b"}"):
            # whole, as some writers end without a line end
            return None
        line = data.count(b"\n") + 1
        columns.bad_lines.append(line)
        columns.notices.append(_torn(line))
    return finish(columns, found, NAME)


def _read_slow(content: Content, declaration: Declaration) -> RawLog:
    records = Records(declaration.columns)
    decode = json.JSONDecoder().decode
    ends_whole = content.data.endswith(b"\n")
    line, bad_last = 0, False
    for line, raw in enumerate(io.BytesIO(content.data), 1):
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
    if bad_last and not ends_whole:
        notices.append(_torn(line))
    middle = len(records.bad_lines) - (1 if bad_last and not ends_whole else 0)
    if middle:
        shown = ", ".join(str(bad) for bad in records.bad_lines[:5])
        notices.append(Notice("not_json", f"{middle} lines are no JSON object and were left out (lines {shown})"))
    return records.log(NAME, notices)


def _torn(line: int) -> Notice:
    return Notice("torn_last_line", f"line {line}, the last, is torn (cut inside); left out")


READER = Reader(
    NAME, "JSON lines whose keys name a step and a loss (LLaMA-Factory, OLMo, litgpt, ...)", sniff, read, lacks
)
