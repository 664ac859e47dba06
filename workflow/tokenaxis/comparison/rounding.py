"""Arrays rounded to some significant digits, and as text: a page and two tables of them are most of a comparison."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np

#: powers of ten up to this one are exact as float64
_EXACT = 22


def rounded(values: np.ndarray, digits: int) -> np.ndarray:
    """float64 (n,) to `digits` significant decimal digits: the float that is nearest to the decimal number.

    An integer of so few digits times (or over) an exact power of ten is rounded once, so it is that float. What lies
    outside of those powers is left to Python's own rounding; NaN and infinities stay as they are.
    """
    import numpy as np

    size = np.abs(values)
    plain = (size > 10.0 ** (digits - _EXACT)) & (size < 10.0**_EXACT)
    with np.errstate(all="ignore"):
        power = np.floor(np.log10(np.where(plain, size, 1.0))).astype(np.int64) + 1 - digits
        scale = 10.0 ** np.abs(power)
        found = np.where(power > 0, np.rint(values / scale) * scale, np.rint(values * scale) / scale)
    for place in np.flatnonzero(~plain & (values != 0.0) & np.isfinite(values)):
        found[place] = float(f"{values[place]:.{digits}g}")
    return np.where(plain | ((values != 0.0) & np.isfinite(values)), found, values)


def texts(arrays: Sequence[np.ndarray], digits: int) -> list[list[str]]:
    """Each array rounded, as Python writes its numbers; "" for NaN. All at once: numpy is slow to begin."""
    import numpy as np

    numbers = rounded(np.concatenate(arrays), digits).tolist() if arrays else []
    whole = ["" if number != number else repr(number) for number in numbers]  # not equal to itself: NaN
    return [whole[first:last] for first, last in _places(arrays)]


def json_lists(arrays: Sequence[np.ndarray], digits: int) -> list[str]:
    """Each array as a JSON list, rounded; whole numbers without a point, null for what is not finite."""
    import numpy as np

    if not arrays:
        return []
    short = rounded(np.concatenate(arrays), digits)
    known = np.isfinite(short)
    filled = np.where(known, short, 0.0)
    whole = (filled == np.rint(filled)) & (np.abs(filled) < 1e15)
    integers = np.where(whole, filled, 0.0).astype(np.int64).tolist()
    numbers = [i if w else v for i, v, w in zip(integers, filled.tolist(), whole.tolist(), strict=True)]
    if known.all():
        shown = list(map(repr, numbers))
    else:
        shown = [repr(number) if k else "null" for number, k in zip(numbers, known.tolist(), strict=True)]
    return [f"[{','.join(shown[first:last])}]" for first, last in _places(arrays)]


def _places(arrays: Sequence[np.ndarray]) -> Iterator[tuple[int, int]]:
    return itertools.pairwise(itertools.accumulate(map(len, arrays), initial=0))
