"""Numbers as people and loggers write them: 1.2K, 5B, 1,200, 0:32:48, 9 days, 21:39:23, 12.5%, 350ms."""

from __future__ import annotations

import math
import re

_SUFFIXES = {"": 1.0, "k": 1e3, "m": 1e6, "g": 1e9, "b": 1e9, "t": 1e12}
_SECONDS = {"us": 1e-6, "µs": 1e-6, "ms": 1e-3, "s": 1.0, "sec": 1.0, "secs": 1.0, "second": 1.0, "seconds": 1.0}
_SECONDS |= {"m": 60.0, "min": 60.0, "mins": 60.0, "minute": 60.0, "minutes": 60.0}
_SECONDS |= {"h": 3600.0, "hr": 3600.0, "hrs": 3600.0, "hour": 3600.0, "hours": 3600.0}
_SECONDS |= {"d": 86400.0, "day": 86400.0, "days": 86400.0}
#: characters; no number is longer, and the patterns must not be given more
_LONGEST = 100
_GROUPED = r"[+-]?\d{1,3}(?P<sep>[,_ '’\u00a0\u202f])\d{3}(?:(?P=sep)\d{3})*(?:\.\d+)?"
_PLAIN = r"[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?"
_COUNT = re.compile(
    rf"(?P<number>{_GROUPED}|{_PLAIN})\s*(?P<suffix>[kmgbt]?)(?:\s*(?:tokens?|toks?|steps?|samples?))?", re.IGNORECASE
)
_CLOCK = re.compile(r"(?:(\d+)\s*(?:days?|d)\s*,?\s*)?(\d+):(\d{1,2})(?::(\d{1,2}(?:\.\d+)?))?", re.IGNORECASE)
_TERM = re.compile(rf"({_PLAIN})\s*([a-zµ]+)\s*,?\s*", re.IGNORECASE)


def grouped(text: str) -> float | None:
    """A number with thousands separators: "1,200" -> 1200.0; None when it is not one."""
    text = text.strip()
    match = re.fullmatch(_GROUPED, text) if len(text) <= _LONGEST else None
    return None if match is None else float(text.replace(match["sep"], ""))


def count(text: str) -> float | None:
    """A number of tokens, steps or samples: plain, grouped, or with K, M, B (or G), T for 1e3, 1e6, 1e9, 1e12.

    >>> count("1.2K"), count("3.4M"), count("5B"), count("1,200"), count("about 5")
    (1200.0, 3400000.0, 5000000000.0, 1200.0, None)
    """
    match = _COUNT.fullmatch(text.strip()) if len(text) <= _LONGEST else None
    if match is None:
        return None
    number, separator = match["number"], match["sep"]
    value = float(number.replace(separator, "") if separator else number)
    # one rounding, so that 1.1M is exactly 1100000
    value = round(value * _SUFFIXES[match["suffix"].lower()], 6)
    return value if math.isfinite(value) else None


def seconds(text: str) -> float | None:
    """A duration in seconds: "0:32:48", "9 days, 21:39:23", "350ms", "1h 5m", or a plain number of seconds.

    >>> seconds("0:32:48"), seconds("9 days, 21:39:23"), seconds("250ms"), seconds("1h 5m")
    (1968.0, 855563.0, 0.25, 3900.0)
    """
    text = text.strip()
    try:
        return float(text)
    except ValueError:
        pass
    if len(text) > _LONGEST:
        return None
    clock = _CLOCK.fullmatch(text)
    if clock is not None:
        days, first, second, third = clock.groups()
        if third is None:
            # two fields are minutes and seconds
            return float(days or 0) * 86400 + int(first) * 60 + int(second)
        return float(days or 0) * 86400 + int(first) * 3600 + int(second) * 60 + float(third)
    total, position = 0.0, 0
    while position < len(text):
        term = _TERM.match(text, position)
        if term is None or term.group(2).lower() not in _SECONDS:
            return None
        total += float(term.group(1)) * _SECONDS[term.group(2).lower()]
        position = term.end()
    return total if text else None


def fraction(text: str) -> float | None:
    """A share: "12.5%" -> 0.125; a plain number stays as it is."""
    text = text.strip()
    try:
        return float(text[:-1]) / 100 if text.endswith("%") else float(text)
    except ValueError:
        return None
