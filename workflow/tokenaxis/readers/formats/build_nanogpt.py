"""log.txt of karpathy/build-nanogpt: `N train X`, `N val X`, `N hella ACCURACY`.

N updates were done before either loss was computed. hella is an accuracy, not a loss.
"""

from __future__ import annotations

import re

from tokenaxis.declarations import Declaration
from tokenaxis.readers.base import RawLog, Reader, Sample
from tokenaxis.readers.content import read_content
from tokenaxis.readers.textlog import broken_rows, build, find_rows, torn_offset

NAME = "build-nanogpt"
_FIRST = rb"(?m)^\d+ (?:train|val|hella) [-+.\dnaif]+\r?$"
_ROW = rb"(?m)^(\d+) (?:train ([^\s]+)|val ([^\s]+))(?=\s|\Z)"
_START = rb"(?m)^\d+ (?:train|val)\b|^\d+(?: [a-z]{0,4})?\Z"
_NAMES = {"step": "step", "train_loss": "train", "val_loss": "val"}


def sniff(sample: Sample) -> int:
    """Certain when two of the first lines are of the form."""
    head = sample.head[:512]
    if b" train " not in head and b" val " not in head:
        return 0
    return 90 if len(re.findall(_FIRST, head)) >= 2 else 0


def read(path: str, declaration: Declaration) -> RawLog:
    """Read log.txt.

    Raises:
        TokenAxisError: no row.
    """
    content = read_content(path)
    data = content.data
    pattern = re.compile(_ROW)
    rows = find_rows(data, pattern, ("step", "train_loss", "val_loss"))
    broken = broken_rows(data, re.compile(_START), [rows])
    return build(
        NAME, content, [rows], _NAMES, broken=broken, torn=torn_offset(data, [pattern]), what="`N train X` line"
    )


READER = Reader(NAME, "build-nanogpt log.txt", sniff, read)
