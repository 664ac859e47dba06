"""Text as HTML, quickly: what the template does with texts, for rows of which there are thousands."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from tokenaxis.errors import printable

_READ_BY_HTML = re.compile("[&<>\"']")
_REFERENCES = {"&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&#34;", "'": "&#39;"}
#: stands in the template's output for what is written later; no text can hold it, as control characters are spelled out
_PLACE = re.compile("\x00([0-9]+)\x00")


def escaped(value: Any) -> str:
    """`value` as text of an element or of a quoted attribute, control characters spelled out; nothing for None."""
    if value is None:
        return ""
    text = printable(value if isinstance(value, str) else str(value))
    return _READ_BY_HTML.sub(_reference, text) if _READ_BY_HTML.search(text) else text


def _reference(match: re.Match[str]) -> str:
    return _REFERENCES[match[0]]


class Parts:
    """The pieces of a page that are written as they are made, so that the whole page is never in memory."""

    def __init__(self) -> None:
        self._makers: list[Callable[[], Iterable[bytes]]] = []

    def later(self, maker: Callable[[], Iterable[bytes]]) -> str:
        """A place for the template; `maker` is called when the page is written."""
        self._makers.append(maker)
        return f"\x00{len(self._makers) - 1}\x00"

    def filled(self, text: str) -> Iterator[bytes]:
        """The template's output piece by piece, the places filled in."""
        for index, piece in enumerate(_PLACE.split(text)):
            if index % 2:
                yield from self._makers[int(piece)]()
            else:
                yield piece.encode("utf-8")
