"""A picture as PNG (W3C PNG specification, third edition), written for drawings: mostly paper, few colours.

Rows are left unfiltered, which suits flat colours; libraries try all filters on each row, in twice the time, for files
that are a sixth larger.
"""

from __future__ import annotations

import struct
import zlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np

_INCH_IN_METRES = 0.0254
#: of zlib, 1 to 9: beyond 6 it is slow and no smaller by much
_EFFORT = 6
_EIGHT_BITS, _TRUECOLOUR = 8, 2


def png_bytes(pixels: np.ndarray, dpi: float) -> bytes:
    """uint8 (height, width, red green blue) as a PNG file without a date or a program's name."""
    import numpy as np

    height, width, _ = pixels.shape
    rows = np.zeros((height, 1 + 3 * width), dtype=np.uint8)  # the first byte of a row: its filter, 0
    rows[:, 1:] = pixels.reshape(height, 3 * width)
    per_metre = round(dpi / _INCH_IN_METRES)
    return b"".join((
        b"\x89PNG\r\n\x1a\n",
        _chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, _EIGHT_BITS, _TRUECOLOUR, 0, 0, 0)),
        _chunk(b"pHYs", struct.pack(">IIB", per_metre, per_metre, 1)),
        _chunk(b"IDAT", zlib.compress(rows.tobytes(), _EFFORT)),
        _chunk(b"IEND", b""),
    ))  # fmt: skip


def _chunk(kind: bytes, content: bytes) -> bytes:
    return struct.pack(">I", len(content)) + kind + content + struct.pack(">I", zlib.crc32(kind + content))
