"""Logs of karpathy/build-nanogpt: log.txt (`N train X`, `N val X`, `N hella ACCURACY`) and its standard output.

N updates were done before either loss was computed. hella is an accuracy, not a loss. On standard output a
`validation loss: X` bears no step; train_gpt2.py prints it before the line of the step at which it was computed.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from tokenaxis import units
from tokenaxis.declarations import Declaration
from tokenaxis.readers.base import RawLog, Reader, Sample
from tokenaxis.readers.content import Content, read_content
from tokenaxis.readers.headers import Fact, batch_by_header, line_of
from tokenaxis.readers.lines import LEAD, NOTHING_MORE, lead, readable, visible
from tokenaxis.readers.textlog import Rows, broken_rows, build, find_rows, torn_offset

if TYPE_CHECKING:
    import numpy as np

NAME = "build-nanogpt"
_FIRST = rb"(?m)^\d+ (?:train|val|hella) [-+.\dnaif]+\r?$"
_ROW = rb"(?m)^(\d+) (?:train ([^\s]+)|val ([^\s]+))(?=\s|\Z)"
_START = rb"(?m)^\d+ (?:train|val)\b|^\d+(?: [a-z]{0,4})?\Z"
_NAMES = {"step": "step", "train_loss": "train", "val_loss": "val"}

_LINE = rb"step +\d+ \| loss: "
_STDOUT = rb"step +(\d+) \| loss: ([^\s|]+) \|(?: lr:? ([^\s|]+) \|)?(?: norm: ?([^\s|]+) \|)?"
_VAL = rb"validation loss: ([^\s|]+)(?=\s|\Z)"
_STDOUT_NAMES = {
    "step": "step",
    "train_loss": "loss",
    "val_loss": "validation loss",
    "lr": "lr",
    "grad_norm": "norm",
}
_BATCH = rb"total desired batch size: ([\d,]+)"


def sniff(sample: Sample) -> int:
    """Certain when two of the first lines are of log.txt, or one of standard output."""
    head = sample.head[:512]
    if (b" train " in head or b" val " in head) and len(re.findall(_FIRST, head)) >= 2:
        return 90
    for part in (sample.head, sample.tail):
        if b"| loss: " in part and re.search(
            rb"(?m)^" + LEAD + _STDOUT + NOTHING_MORE + rb"[^\n]*\| tok/sec: ", visible(part)
        ):
            return 89
    return 0


def read(path: str, declaration: Declaration) -> RawLog:
    """Read log.txt or standard output.

    Raises:
        TokenAxisError: no row.
    """
    content = read_content(path)
    if re.search(_FIRST, content.data[: 1 << 16]) is None:
        return _read_stdout(content)
    data = content.data
    pattern = re.compile(_ROW)
    rows = find_rows(data, pattern, ("step", "train_loss", "val_loss"))
    return build(
        NAME,
        content,
        [rows],
        _NAMES,
        broken=broken_rows(data, re.compile(_START), [rows]),
        torn=torn_offset(data, [pattern]),
        what="`N train X` line",
        timed=False,
    )


def _read_stdout(content: Content) -> RawLog:
    data = readable(content)
    begin = rb"(?m)^" + lead(data, _LINE)
    pattern = re.compile(begin + _STDOUT)
    train = find_rows(data, pattern, ("step", "train_loss", "lr", "grad_norm"))
    val = find_rows(data, re.compile(begin + _VAL), ("val_loss",))
    val.columns = {"step": _following(train, val), **val.columns}
    return build(
        NAME,
        content,
        [train, val],
        _STDOUT_NAMES,
        broken=broken_rows(data, re.compile(begin + _LINE), [train]),
        torn=torn_offset(data, [pattern]),
        facts=batch_by_header(data, b"total desired batch size", _BATCH, [train, val], _facts(data[: 1 << 16])),
        what="`step N | loss: X` line",
    )


def _following(train: Rows, val: Rows) -> np.ndarray:
    """Step of the train line below each validation line; of the last, one more than that of the line above."""
    import numpy as np

    if not len(train.offsets):
        return np.full(len(val.offsets), np.nan)
    below = np.searchsorted(train.offsets, val.offsets)
    steps = train.columns["step"]
    return np.where(below < len(steps), steps[np.minimum(below, len(steps) - 1)], steps[-1] + 1)


def _facts(head: bytes) -> list[Fact]:
    match = re.search(_BATCH, head)
    value = None if match is None else units.count(match.group(1).decode())
    if match is None or not value:
        return []
    note = f"line {line_of(head, match.start())}: total desired batch size"
    return [("tokens_per_step", int(value), "emitted", note)]


READER = Reader(NAME, "build-nanogpt log.txt and standard output", sniff, read)
