"""Standard output of allenai/OLMo and OLMo-core: `... [step=10/739328]`, then an indented `name=value` a line.

The step counts the updates done, and so do `throughput/total_tokens`: a block's training loss is of the batch before.
Evaluations come in blocks without a step of their own and belong to the step last named.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from tokenaxis import units
from tokenaxis.declarations import Declaration
from tokenaxis.errors import Notice
from tokenaxis.readers import naming
from tokenaxis.readers.base import IntervalMean, RawLog, Reader, Sample
from tokenaxis.readers.content import read_content
from tokenaxis.readers.records import Records

NAME = "olmo-stdout"
_STEP = re.compile(rb"\[step=(\d{1,15})/(\d{1,15})[,\]]")
_BLOCK = re.compile(rb"(?m)\[step=\d{1,15}/\d{1,15}[,\]][^\n]{0,200}\n(?:\x1b\[\d+m)? {2,}[A-Za-z][\w/ .()-]*=")
_VALUE = re.compile(rb"\s+([A-Za-z][\w/ .()@-]{0,120}?)=\s*(\S+)\s*$")
_COLOUR = re.compile(rb"\x1b\[[0-9;]*m")


def sniff(sample: Sample) -> int:
    """Certain when a step in brackets is followed by an indented `name=value`."""
    return 92 if any(_BLOCK.search(part) for part in (sample.head, sample.tail)) else 0


def read(path: str, declaration: Declaration) -> RawLog:
    """Read the standard output of a run.

    Raises:
        TokenAxisError: no block with a step and a loss.
    """
    content = read_content(path)
    records = Records(declaration.columns)
    planned = 0
    for line, row, total in _blocks(_COLOUR.sub(b"", content.data)):
        planned = total or planned
        records.add(line, row)
    log = records.log(NAME, list(content.notices), what="block")
    if planned:
        log.facts.append(("planned_steps", planned, "emitted", "[step=N/TOTAL]"))
    log.means["train_loss"] = IntervalMean(1.0, counted_after=True)
    if "tokens" not in log.columns:
        log.warnings.append(Notice("no_total_tokens", "its blocks have no throughput/total_tokens"))
    return log


def _blocks(data: bytes) -> Iterator[tuple[int, dict[str, Any], int]]:
    """(line, values, planned steps or 0) of each block that holds a value which is known."""
    step: bytes | None = None
    total, start = 0, 0
    row: dict[str, Any] = {}
    for number, line in enumerate(data.split(b"\n"), 1):
        value = _VALUE.fullmatch(line[:400]) if line[:1] in (b" ", b"\t") else None
        if value is not None and step is not None:
            name = value.group(1).decode("utf-8", "replace")
            if naming.role(name, {}) not in (None, "step", "kind"):
                row[name] = _number(value.group(2).decode("utf-8", "replace"))
            continue
        if row:
            yield start, {"step": int(step or b"0"), **row}, total
        row, start = {}, number
        found = _STEP.search(line)
        if found is not None:
            step, total = found.group(1), int(found.group(2))
    if row:
        yield start, {"step": int(step or b"0"), **row}, total


def _number(text: str) -> float | str:
    value = units.grouped(text)
    return text if value is None else value


READER = Reader(NAME, "standard output of OLMo", sniff, read)
