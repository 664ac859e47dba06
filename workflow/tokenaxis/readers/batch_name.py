"""The batch size that a file's name states: `_0.5Mbs`, `_16Kbs`, `_512bs`."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass

from tokenaxis.errors import TokenAxisError
from tokenaxis.readers.remedies import declare

_REMEDY = f"{declare('tokens_per_step: 524288')}, pass --batch-size 524288, or rename the file, e.g. run_0.5Mbs.csv"
_UNITS = {"": 1.0, "K": 1e3, "M": 1e6}
_BATCH = re.compile(r"_([\d.]+)([MK]?)bs(?![a-z0-9])", re.IGNORECASE)


@dataclass(frozen=True)
class NamedBatch:
    """A batch read from a name: `tokens_per_step`, the `text` it was read from, `plain` when it bears no unit."""

    tokens_per_step: float
    text: str
    plain: bool


def batch_in_name(name: str) -> NamedBatch | None:
    """The batch that one path component states, or None when it states none.

    Raises:
        TokenAxisError: the name states a batch that is no positive number, or two different ones.
    """
    found: dict[float, NamedBatch] = {}
    for match in _BATCH.finditer(name):
        value = _number(match[1]) * _UNITS[match[2].upper()]
        if not (math.isfinite(value) and value > 0):
            raise TokenAxisError(
                f"the batch size in the file's name, '{match[0]}', is not a positive number", remedy=_REMEDY
            )
        found.setdefault(value, NamedBatch(value, match[0], not match[2]))
    if any(not batch.plain for batch in found.values()):  # `_8bs_0.5Mbs`: the one with a unit is in tokens
        found = {value: batch for value, batch in found.items() if not batch.plain}
    if len(found) > 1:
        texts = " and ".join(f"'{batch.text}'" for batch in found.values())
        raise TokenAxisError(f"the file's name states more than one batch size: {texts}", remedy=_REMEDY)
    return next(iter(found.values()), None)


def _number(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        return math.nan
