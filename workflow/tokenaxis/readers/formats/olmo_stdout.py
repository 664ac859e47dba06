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
from tokenaxis.readers.headers import Fact, line_of
from tokenaxis.readers.lines import readable, visible
from tokenaxis.readers.records import Records

NAME = "olmo-stdout"
#: OLMo-core writes ??? where it does not know the end
_STEP = re.compile(rb"\[step=([\d,]{1,20})/([\d,]{1,20}|\?+)(?:,[a-z]|\])")
_BLOCK = re.compile(
    rb"\[step=[\d,]{1,20}/[\d,?]{1,20}(?:\]|,[a-z])[^\n]{0,200}\n[^\n=]{0,40}?\s{2,}[A-Za-z][\w/ .()-]*="
)
_VALUE = re.compile(rb"\s+([A-Za-z][\w/ .()@-]{0,120}?)=\s*(\S+)\s*$")
#: OLMo-core's names of the learning rate of one group of parameters
_LR = re.compile(r"optim/(?:LR|learning[ _]rate) \(group 0\)", re.IGNORECASE)
#: what OLMo prints before it trains (OLMo-core prints none of it): pattern -> fact
_HEADER = {
    rb"Total number of parameters: ([\d,]{1,20})": "n_params",
    rb"\bmax_sequence_length=(\d{1,9})\b": "seq_len",
    rb"\bglobal_train_batch_size=(\d{1,9})\b": "global_batch_sequences",
    rb"\bModelConfig\(d_model=(\d{1,9})\b": "d_model",
    rb"\bn_layers=(\d{1,6})\b": "n_layers",
    rb"\bn_heads=(\d{1,6})\b": "n_heads",
    rb"\bvocab_size=(\d{1,9})\b": "vocab_size",
}
#: ranks before each line of a block
_LEAD = re.compile(rb"(?:\[?(?:rank|default)?\d{1,5}\]?:)(?=\s)")


def sniff(sample: Sample) -> int:
    """Certain when a step in brackets is followed by an indented `name=value`."""
    parts = (part for part in (sample.head, sample.tail) if b"[step=" in part)
    return 92 if any(_BLOCK.search(visible(part)) for part in parts) else 0


def read(path: str, declaration: Declaration) -> RawLog:
    """Read the standard output of a run.

    Raises:
        TokenAxisError: no block with a step and a loss.
    """
    content = read_content(path)
    records = Records(declaration.columns)
    planned = 0
    data = readable(content)
    for line, row, total in _blocks(data):
        planned = total or planned
        records.add(line, row)
    log = records.log(NAME, list(content.notices), what="block")
    facts = _facts(data[: 1 << 18])
    log.facts += [fact for fact in facts if fact[0] != "tokens_per_step" or "tokens" not in log.columns]
    if planned:
        log.facts.append(("planned_steps", planned, "emitted", "[step=N/TOTAL]"))
    log.means["train_loss"] = IntervalMean(1.0, counted_after=True)
    if "tokens" not in log.columns:
        log.warnings.append(Notice("no_total_tokens", "its blocks have no throughput/total_tokens"))
    return log


def _facts(head: bytes) -> list[Fact]:
    facts: list[Fact] = []
    for pattern, key in _HEADER.items():
        match = re.search(pattern, head)
        value = 0 if match is None else _whole(match.group(1))
        if match is not None and value:
            facts.append((key, value, "emitted", f"line {line_of(head, match.start())}"))
    values = {key: value for key, value, *_ in facts}
    if "seq_len" in values and "global_batch_sequences" in values:
        tokens = values["seq_len"] * values["global_batch_sequences"]
        facts.append(("tokens_per_step", tokens, "emitted", "global_train_batch_size * max_sequence_length"))
    return facts


def _blocks(data: bytes) -> Iterator[tuple[int, dict[str, Any], int]]:
    """(line, values, planned steps or 0) of each block that holds a value which is known."""
    step: bytes | None = None
    total, start = 0, 0
    row: dict[str, Any] = {}
    led_by_ranks = re.search(rb"(?m)^" + _LEAD.pattern + rb"[^\n]*\[step=", data) is not None
    for number, line in enumerate(data.split(b"\n"), 1):
        led = _LEAD.match(line) if led_by_ranks else None
        if led is not None:
            line = line[led.end() :]
        value = _VALUE.fullmatch(line[:400]) if line[:1] in (b" ", b"\t") else None
        if value is not None and step is not None:
            name = value.group(1).decode("utf-8", "replace")
            name = "lr" if _LR.fullmatch(name) else name
            if naming.role(name, {}) not in (None, "step", "kind"):
                row[name] = _number(value.group(2).decode("utf-8", "replace"))
            continue
        if row:
            yield start, {"step": int(step or b"0"), **row}, total
        row, start = {}, number
        found = _STEP.search(line)
        if found is not None:
            step, total = found.group(1).replace(b",", b""), _whole(found.group(2))
    if row:
        yield start, {"step": int(step or b"0"), **row}, total


def _whole(text: bytes) -> int:
    digits = text.replace(b",", b"")
    return int(digits) if digits.isdigit() else 0


def _number(text: str) -> float | str:
    value = units.grouped(text)
    return text if value is None else value


READER = Reader(NAME, "standard output of OLMo and OLMo-core", sniff, read)
