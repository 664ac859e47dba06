"""A matplotlib svg as a part of the page: colours become CSS variables, so that one drawing serves light and dark."""

from __future__ import annotations

import re

from tokenaxis.comparison.figures.style import CSS_VARIABLES

_PROLOG = re.compile(rb"\A.*?(?=<svg\b)", re.DOTALL)
_METADATA = re.compile(rb"<metadata>.*?</metadata>\s*", re.DOTALL)
_GROUP_ID = re.compile(rb' id="[A-Za-z0-9.]+_\d+"')  # figure_1, axes_1 ...: repeated from figure to figure
_SIZE = re.compile(rb'<svg\b[^>]*?\bviewBox="0 0 ([0-9.]+) ([0-9.]+)"[^>]*>', re.DOTALL)
_COLOUR = re.compile(rb"#[0-9a-f]{6}\b")
_VARIABLES = {colour.encode(): f"var(--{name})".encode() for colour, name in CSS_VARIABLES.items()}
_FONT = re.compile(rb"'DejaVu Sans'")


def inline(svg: bytes, label_id: str) -> str:
    """The `<svg>` element alone, sized by its box, labelled by the element `label_id`, coloured by CSS variables.

    Only the style and colour attributes that matplotlib wrote are touched; a colour code inside a run's name is text
    between tags, which stays.
    """
    body = _GROUP_ID.sub(b"", _METADATA.sub(b"", _PROLOG.sub(b"", svg)))
    size = _SIZE.search(body)
    if size is None:
        raise ValueError("not a matplotlib svg: no viewBox")
    opening = (
        b'<svg xmlns:xlink="http://www.w3.org/1999/xlink" viewBox="0 0 %b %b" role="img" aria-labelledby="%b">'
        % (size[1], size[2], label_id.encode())
    )
    body = body[: size.start()] + opening + body[size.end() :]
    parts = re.split(rb"(<[^>]*>)", body)  # tags at odd places, text between them at even ones
    parts[1::2] = [_FONT.sub(b"var(--font)", _COLOUR.sub(_variable, tag)) for tag in parts[1::2]]
    return b"".join(parts).decode("utf-8")


def _variable(match: re.Match[bytes]) -> bytes:
    return _VARIABLES.get(match[0], match[0])
