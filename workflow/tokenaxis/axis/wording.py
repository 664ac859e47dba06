"""How counts and lines stand in messages."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np

_SHOWN = 5


def counted(count: int, what: str) -> str:
    """`1 row`, `1,200 rows`."""
    return f"{count:,} {what}" if count == 1 else f"{count:,} {what}s"


def shown(what: str, values: Sequence[int] | np.ndarray) -> str:
    """`line 7`, or `lines 3, 4, 5, ...`: at most five."""
    listed = ", ".join(str(int(value)) for value in values[:_SHOWN]) + (", ..." if len(values) > _SHOWN else "")
    return f"{what} {listed}" if len(values) == 1 else f"{what}s {listed}"
