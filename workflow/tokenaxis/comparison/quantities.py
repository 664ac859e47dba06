"""Numbers as people read them: short, with enough digits to compare, never without what they count.

Each function returns text; the caller adds the unit where the text does not hold it. The exact number belongs in a
tooltip (`exact`) or in the tables.
"""

from __future__ import annotations

import math
import re

MISSING = "—"
_PREFIXES = ((1e15, "Q"), (1e12, "T"), (1e9, "B"), (1e6, "M"), (1e3, "K"))


def short(value: float | None) -> str:
    """Three significant digits with K, M, B (1e9), T or Q: 2.31M, 1.05B, 512. Nothing known: a dash.

    >>> short(2_310_000), short(999_999), short(512), short(None)
    ('2.31M', '1.00M', '512', '—')
    """
    if value is None or not math.isfinite(value):
        return MISSING
    if value < 0:
        return "-" + short(-value)
    for size, (scale, prefix) in enumerate(_PREFIXES):
        if value >= scale * 0.9995:  # 999.5K and more rounds to 1.00M
            digits = value / scale
            if digits >= 999.5 and size == 0:
                return f"{value:.3g}"
            return _three(digits) + prefix
    return f"{value:.0f}" if value == round(value) else _three(value)


def _three(value: float) -> str:
    rounded = float(f"{value:.3g}")
    decimals = max(0, 2 - math.floor(math.log10(rounded))) if rounded > 0 else 0
    return f"{rounded:.{min(decimals, 6)}f}"


def exact(value: float | None) -> str:
    """Every digit that it takes to give the number back, with thousands separators."""
    if value is None or not math.isfinite(value):
        return "not known"
    return f"{int(value):,}" if value == int(value) and abs(value) < 1e18 else f"{value:,}"


def target(value: float) -> str:
    """A target loss with at least two decimals, and as many as it was typed with: two targets never look alike.

    >>> target(1.6), target(3.2875)
    ('1.60', '3.2875')
    """
    text = repr(float(value))
    head, point, decimals = text.partition(".")
    return f"{head}.{decimals:0<2}" if point and "e" not in text else text


def loss(value: float | None) -> str:
    """A measured loss with four significant decimals at most: 1.604."""
    return MISSING if value is None or not math.isfinite(value) else f"{value:.3f}"


def interval(low: float | None, high: float | None) -> str:
    """[2.25M, 2.38M]; an end that is not bounded is said so."""
    if low is None:
        return ""
    return f"[{short(low)}, {short(high)}]" if high is not None else f"[{short(low)}, unbounded)"


def times(value: float | None) -> str:
    """A ratio with three significant digits and the sign ×: 1.40×."""
    if value is None or not math.isfinite(value):
        return MISSING
    return f"{_three(value) if 0.001 < value < 1000 else short(value)}×"


def times_interval(low: float | None, high: float | None) -> str:
    """The interval of a ratio: [1.31, 1.49]."""
    if low is None:
        return ""
    return f"[{_three(low)}, {_three(high)}]" if high is not None else f"[{_three(low)}, unbounded)"


def flop(value: float | None) -> str:
    """FLOP in scientific notation with three digits: 1.23e18."""
    if value is None or not math.isfinite(value):
        return MISSING
    digits, _, power = f"{value:.2e}".partition("e")
    return f"{digits}e{int(power)}"


def whole(value: float | None) -> str:
    """A count with thousands separators."""
    return MISSING if value is None or not math.isfinite(value) else f"{round(value):,}"


def duration(seconds: float | None) -> str:
    """Wall time in the unit that suits it: 42.0 s, 12.5 min, 31.2 h."""
    if seconds is None or not math.isfinite(seconds):
        return MISSING
    for unit, size in (("h", 3600.0), ("min", 60.0)):
        if seconds >= size:
            return f"{_three(seconds / size)} {unit}"
    return f"{_three(seconds)} s"


def percent(fraction: float | None) -> str:
    """0.9 -> 90%."""
    return MISSING if fraction is None else f"{100 * fraction:.4g}%"


def chance(probability: float) -> str:
    """0.234 -> 23%; what is nearly certain or nearly impossible is not given digits that no model has."""
    return "<1%" if probability < 0.01 else ">99%" if probability > 0.99 else f"{probability:.0%}"


def natural(name: str) -> tuple[tuple[int, int, str], ...]:
    """Sort key that puts gpt_4Kbs before gpt_16Kbs: digits by value, the rest by alphabet; ties by the name itself."""
    parts = re.findall(r"[0-9]+|[^0-9]+", name)
    return (*((0, int(part), "") if part[0] in "0123456789" else (1, 0, part) for part in parts), (-1, 0, name))


def error(log_ratio: float | None) -> str:
    """A half-width or an error in ln(tokens) as a factor's excess: 0.0488 -> 5.0%, 1.2 -> a factor of 3.32."""
    if log_ratio is None or not math.isfinite(log_ratio):
        return MISSING
    return f"{100 * math.expm1(log_ratio):.2g}%" if log_ratio < 0.6 else f"a factor of {_three(math.exp(log_ratio))}"


def plural(count: int, noun: str, plural_noun: str | None = None) -> str:
    """1 run, 2 runs."""
    return f"{count:,} {noun if count == 1 else plural_noun or noun + 's'}"


def elided(text: str, length: int) -> str:
    """At most `length` characters, the middle left out: both the beginning and the end of a name tell runs apart."""
    if len(text) <= length:
        return text
    head = (length - 1) * 2 // 3
    return text[:head] + "…" + text[len(text) - (length - 1 - head) :]
