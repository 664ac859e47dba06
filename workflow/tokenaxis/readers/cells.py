"""One cell of a messy table as a number."""

from __future__ import annotations

import math

from tokenaxis import units

#: what loggers write where there is no value
BLANKS = frozenset(("", "-", "--", "none", "null", "na", "n/a", "#n/a", "nil", "<na>", "?"))
_COUNTS = frozenset(("step", "tokens", "tokens_per_step"))
NAN = math.nan
#: characters; no number is longer, and patterns must not be given more
_LONGEST = 100


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
