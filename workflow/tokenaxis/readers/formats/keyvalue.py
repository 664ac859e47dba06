"""Text logs of any trainer that writes names and numbers.

`step=100 loss=3.5 lr=1e-4`, `Step 100 | loss: 3.5`, `step 100/900, train loss 3.5`: the last resort before a text is
called no log. Only lines that name both a step and a loss are rows. Steps are taken as the log counts them.
"""

from __future__ import annotations

import re
from functools import cache
from typing import Any

from tokenaxis import units
from tokenaxis.columns import normalise
from tokenaxis.declarations import Declaration
from tokenaxis.errors import Notice, TokenAxisError
from tokenaxis.readers import naming
from tokenaxis.readers.base import RawLog, Reader, Sample
from tokenaxis.readers.content import read_content
from tokenaxis.readers.records import Records
from tokenaxis.readers.textlog import line_of

NAME = "key-value"
_NUMBER = (
    r"(?:\d{1,3} days?, )?\d{1,6}:\d\d(?::\d\d(?:\.\d+)?)?"
    r"|[-+]?(?:\d(?:[\d,_]*\d)?\.?\d*(?:e[-+]?\d+)?|\.\d+|nan|inf(?:inity)?)"
)
_PAIR = re.compile(
    r"(?<![\w.])([A-Za-z_][\w/.\-]*(?: (?:loss|step|rate|norm|tokens|lr|train|val|valid))?)"
    r"[\"']?(?: *[:=] *| +)\[?[\"']?"
    rf"({_NUMBER})(K|M|B|T|ms|s|min|h)?(?:/\d+)?(?![\w.])",
    re.IGNORECASE,
)
_CANDIDATE = re.compile(rb"(?mi)^(?=[^\n]{0,400}(?:step|iter|update))(?=[^\n]{0,400}loss)[^\n]+")
#: lines that must be of the kind, and bytes of a line that are looked at
_NEEDED, _LONGEST = 2, 1000
_COLOUR = re.compile(rb"\x1b\[[0-9;]*m")


def sniff(sample: Sample) -> int:
    """Hesitant: two lines of the head or the tail name a step and a loss, each with a number."""
    for part in (sample.head, sample.tail):
        if b"oss" not in part and b"OSS" not in part:
            continue
        found = 0
        for match in _CANDIDATE.finditer(part):
            if _row(match.group()[:_LONGEST].decode("utf-8", "replace"), sample.columns) is not None:
                found += 1
                if found == _NEEDED:
                    return 51
    return 0


def read(path: str, declaration: Declaration) -> RawLog:
    """Read the lines that name a step and a loss.

    Raises:
        TokenAxisError: there is no such line.
    """
    content = read_content(path)
    data = _COLOUR.sub(b"", content.data)
    records = Records(declaration.columns)
    line, counted = 1, 0
    for match in _CANDIDATE.finditer(data):
        row = _row(match.group()[:_LONGEST].decode("utf-8", "replace"), declaration.columns)
        if row is not None:
            line += data.count(b"\n", counted, match.start())
            counted = match.start()
            records.add(line, row)
    if not records.lines:
        raise TokenAxisError(
            "has no line that names a step and a loss", remedy="convert it to CSV with the columns step and train_loss"
        )
    notice = Notice("read_by_names", "no reader knows this format: lines were read by the names before their numbers")
    log = records.log(NAME, [*content.notices, notice], what="line")
    tokens = re.search(rb"(?i)tokens per (?:iteration|step|batch)[^\d\n]{0,30}([\d,_]+)", data[: 1 << 16])
    if tokens is not None:
        value = units.count(tokens.group(1).decode())
        if value:
            log.facts.append(("tokens_per_step", value, "emitted", f"line {line_of(data, tokens.start())}"))
    return log


def _row(text: str, columns: dict[str, str] | Any) -> dict[str, str] | None:
    """Names and numbers of a line; None unless a step and a loss are among them."""
    row: dict[str, str] = {}
    roles = set()
    for name, number, suffix in _PAIR.findall(text):
        declared = tuple(sorted(columns.items()))
        role = _role(name, declared)
        if role is None and " " in name:
            # the word before belongs to the text, not to the name: "INFO step=100"
            name = name.rsplit(" ", 1)[1]
            role = _role(name, declared)
        if role is None or role == "kind" or name in row:
            continue
        row[name] = number + suffix
        roles.add(role)
    return row if "step" in roles and not roles.isdisjoint(("train_loss", "val_loss")) else None


@cache
def _role(name: str, declared: tuple[tuple[str, str], ...]) -> str | None:
    if len(name) > 80 or normalise(name) in ("time", "epoch"):
        return None
    return naming.role(name, dict(declared))


READER = Reader(NAME, "any text whose lines name a step and a loss before numbers", sniff, read, last_resort=True)
