"""One cell of a messy table as a number."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence

from tokenaxis import units

#: what loggers write where there is no value
BLANKS = frozenset(("", "-", "--", "none", "null", "na", "n/a", "#n/a", "nil", "<na>", "?"))
_COUNTS = frozenset(("step", "tokens", "tokens_per_step"))
NAN = math.nan
#: characters; no number is longer, and patterns must not be given more
_LONGEST = 100
#: sign and digits, point, decimals, digits of the exponent
_PARTS = re.compile(r"([-+]?\d{1,20})(?:([.])(\d{0,30}))?(?:[eE][-+]?(\d{0,4}))?")
#: share of a number by which a cut may falsify it: below the noise of any loss
_MATTERS = 1e-4


def number(text: str, canonical: str, decimal_comma: bool = False) -> tuple[float, str | None]:
    """The value of a cell that plain `float` refused, and what is wrong with it.

    Args:
        text: the cell.
        canonical: the column's canonical name, which decides what units make sense.
        decimal_comma: commas are decimal points.

    Returns:
        (value, None); (NaN, None) for a blank; (NaN, "nan" | "inf" | "text") for what is no finite number.
    """
    text = text.strip().strip("\"'").strip()
    if len(text) > _LONGEST:
        return NAN, "text"
    if text.lower() in BLANKS:
        return NAN, None
    if decimal_comma:
        text = text.replace(",", ".")
    value: float | None
    try:
        value = float(text)
    except ValueError:
        value = _with_units(text, canonical)
        if value is None:
            return NAN, "text"
    return (value, None) if math.isfinite(value) else (NAN, kind_of(value))


def kind_of(value: float) -> str:
    """ "nan" or "inf"."""
    return "nan" if value != value else "inf"


def _with_units(text: str, canonical: str) -> float | None:
    if canonical in _COUNTS:
        return units.count(text)
    if canonical == "elapsed_s":
        return units.seconds(text)
    return units.grouped(text)


def may_be_cut(last: str, earlier: Sequence[str]) -> bool:
    """Whether the last cell of a file without a last line end may have lost its end.

    A number that is shorter than all before it lost some. One that is only shorter than some may be short by itself
    (2.5 among 2.512): it counts as cut where what could be missing matters.

    Args:
        last: the cell.
        earlier: cells of its column above it, oldest first; at least one.
    """
    lengths = [len(cell) for cell in earlier]
    if len(last) < min(lengths):
        return True
    found = _PARTS.fullmatch(last)
    if len(last) >= max(lengths) or found is None:
        return False
    point, decimals, exponent = found.group(2), found.group(3), found.group(4)
    exponents = [parts.group(4) for cell in earlier if (parts := _PARTS.fullmatch(cell)) and parts.group(4)]
    if exponents:
        return exponent is None or len(exponent) < min(map(len, exponents))
    if point is None:
        whole = all("." not in cell for cell in earlier)
        return not whole or len(last) < len(earlier[-1])
    return 10 ** -len(decimals) > _MATTERS * abs(float(last))
