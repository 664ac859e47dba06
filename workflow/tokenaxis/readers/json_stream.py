"""Large JSON documents piece by piece: objects of all their numbers would take many times the file."""

from __future__ import annotations

import json
import math
from array import array
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

#: characters of a list of numbers that are split at a time
_BLOCK = 1 << 16
_BLANK = " \t\r\n"
#: what a list of plain numbers does not hold
_NO_NUMBERS = frozenset('[{"')


@dataclass
class Curve:
    """One list of numbers: its values (NaN where there is none), and the places of nan and of infinity."""

    values: array = field(default_factory=lambda: array("d"))
    nan: list[int] = field(default_factory=list)
    inf: list[int] = field(default_factory=list)


def elements(text: str) -> Iterator[Any]:
    """Each element of a document that is a list.

    Raises:
        ValueError: it is no valid JSON, or goes on behind the list.
    """
    decode = json.JSONDecoder().raw_decode
    position = _skip(text, _skip(text, 0) + 1)
    if text[position : position + 1] == "]":
        _end(text, position + 1)
        return
    while True:
        element, position = decode(text, position)
        yield element
        position = _skip(text, position)
        if text[position : position + 1] != ",":
            break
        position = _skip(text, position + 1)
    if text[position : position + 1] != "]":
        raise ValueError(f"Expecting ',' or ']': char {position}")
    _end(text, position + 1)


def curves(text: str) -> dict[str, Curve] | None:
    """The lists of plain numbers of a document that is an object; None where it is not made of such lists and scalars.

    What is None need not be valid JSON.
    """
    decode = json.JSONDecoder().raw_decode
    found: dict[str, Curve] = {}
    position = _skip(text, 0)
    if text[position : position + 1] != "{":
        return None
    try:
        while True:
            key, position = decode(text, _skip(text, position + 1))
            position = _skip(text, position)
            if not isinstance(key, str) or text[position] != ":":
                return None
            position = _skip(text, position + 1)
            if text[position] == "[":
                end = text.index("]", position)
                curve = _numbers(text, position + 1, end)
                if curve is None:
                    return None
                found[key], position = curve, end + 1
            elif text[position] == "{":
                return None
            else:
                _, position = decode(text, position)
            position = _skip(text, position)
            if text[position] != ",":
                break
        if text[position] != "}":
            return None
        _end(text, position + 1)
    except (ValueError, IndexError, RecursionError):
        return None
    return found


def _numbers(text: str, start: int, end: int) -> Curve | None:
    curve = Curve()
    while start < end:
        stop = end if end - start <= _BLOCK else text.rindex(",", start, start + _BLOCK)
        block = text[start:stop]
        if not _NO_NUMBERS.isdisjoint(block):
            return None
        for number in block.split(","):
            value = math.nan if (plain := number.strip()) == "null" else float(plain)
            if not math.isfinite(value):
                if plain != "null":
                    (curve.nan if value != value else curve.inf).append(len(curve.values))
                value = math.nan
            curve.values.append(value)
        start = stop + 1
    return curve


def _skip(text: str, position: int) -> int:
    while position < len(text) and text[position] in _BLANK:
        position += 1
    return position


def _end(text: str, position: int) -> None:
    if _skip(text, position) != len(text):
        raise ValueError(f"Extra data: char {position}")
