"""main.log of karpathy/llm.c: `s:N trl:LOSS lr:LR norm:NORM`, `s:N tel:LOSS`, `s:N eval:ACCURACY`.

train_gpt2.cu writes the train line of update N+1 under `s:N`, so N updates were done before its loss: 0-based.
`tel` is the validation loss after N updates, `eval` the HellaSwag accuracy, which is no loss.
"""

from __future__ import annotations

import re

from tokenaxis.declarations import Declaration
from tokenaxis.readers.base import RawLog, Reader, Sample
from tokenaxis.readers.content import read_content
from tokenaxis.readers.textlog import broken_rows, build, find_rows, torn_offset

NAME = "llmc-main"
_FIRST = rb"(?m)^s:\d+ (?:trl|tel|eval):"
_ROW = rb"(?m)^s:(\d+) (?:tel:([^\s:]+)|trl:([^\s:]+)(?: lr:([^\s:]+))?(?: norm:([^\s:]+))?)(?=\s|\Z)"
_START = rb"(?m)^s:(?!\d+ eval:)"
_COLUMNS = ("step", "val_loss", "train_loss", "lr", "grad_norm")
_NAMES = {"step": "s", "val_loss": "tel", "train_loss": "trl", "lr": "lr", "grad_norm": "norm"}


def sniff(sample: Sample) -> int:
    """Certain when a line begins `s:N trl:` or its kin."""
    return 95 if b"s:" in sample.head and re.search(_FIRST, sample.head) else 0


def read(path: str, declaration: Declaration) -> RawLog:
    """Read main.log.

    Raises:
        TokenAxisError: no row.
    """
    content = read_content(path)
    data = content.data
    pattern = re.compile(_ROW)
    rows = find_rows(data, pattern, _COLUMNS)
    broken = broken_rows(data, re.compile(_START), [rows])
    return build(
        NAME,
        content,
        [rows],
        _NAMES,
        broken=broken,
        torn=torn_offset(data, [pattern]),
        what="`s:N trl:` line",
        timed=False,
    )


READER = Reader(NAME, "llm.c main.log", sniff, read)
