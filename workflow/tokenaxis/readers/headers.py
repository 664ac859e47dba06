"""Headers of text logs: facts that a trainer prints before its rows, and a batch that a second header changes."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tokenaxis.readers.textlog import Rows

Fact = tuple[str, Any, str, str | None]


def line_of(data: bytes, offset: int) -> int:
    """1-based line of a byte."""
    return data.count(b"\n", 0, offset) + 1


def header_facts(
    data: bytes, pattern: re.Pattern[bytes], known: Mapping[bytes, tuple[str, Callable[[bytes], Any]]], where: str
) -> list[Fact]:
    """Facts of a header: lines `name ... value` of which some names are known.

    Args:
        data: the part of the log that holds the header.
        pattern: multi-line pattern with groups name and value.
        known: the log's name -> (fact key, conversion).
        where: what the header is called in notes.
    """
    facts: list[Fact] = []
    for match in pattern.finditer(data):
        name, text = match.group(1).strip(), match.group(2).strip()
        if name not in known:
            continue
        key, convert = known[name]
        try:
            value = convert(text)
        except (ValueError, OverflowError):
            continue
        if value is not None:
            facts.append((key, value, "emitted", f"{where}, line {line_of(data, match.start(1))}: {name.decode()}"))
    return facts


def batch_by_header(data: bytes, mark: bytes, pattern: bytes, found: Sequence[Rows], facts: list[Fact]) -> list[Fact]:
    """Facts of a log with one header; of one whose headers state different batches, each row gets that above it.

    A job that was resumed on other devices, or a second run in the same file, prints its header again.

    Args:
        data: the log.
        mark: what every header holds: a quick look whether there is more than one.
        pattern: multi-line pattern whose groups are the factors of the batch in tokens.
        found: rows, which get a column `tokens_per_step`.
        facts: facts of the first header; a batch among them is left out where it is not that of all rows.
    """
    if data.count(mark) < 2:
        return facts
    stated: dict[int, int] = {}
    for match in re.finditer(pattern, data):
        factors = [int(text.replace(b",", b"")[:18]) for text in match.groups()]
        stated[match.start()] = math.prod(factors)
    if len(set(stated.values())) < 2 or min(stated.values()) <= 0:
        return facts
    import numpy as np

    offsets, sizes = np.array([*stated]), np.array([*stated.values()], float)
    for rows in found:
        above = np.maximum(np.searchsorted(offsets, rows.offsets, side="right") - 1, 0)
        rows.columns["tokens_per_step"] = sizes[above]
    return [fact for fact in facts if fact[0] != "tokens_per_step"]


def whole(text: bytes) -> int | None:
    """A positive whole number; None for what is none."""
    value = int(float(text)) if text.strip() else 0
    return value if value > 0 else None


def amount(text: bytes) -> float:
    """A finite number."""
    value = float(text)
    if value != value or abs(value) == float("inf"):
        raise ValueError("not finite")
    return value


def words(text: bytes) -> str | None:
    """Text as it stands."""
    return text[:200].decode("utf-8", "replace") or None
