"""Markdown that holds whatever a log may say: escaping, numbers, tables."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from tokenaxis.errors import printable

_SPECIAL = re.compile(r"([\\`*_{}\[\]|#~$!])")
NOTHING = "-"
#: numbers outside are shown with an exponent
SMALLEST_PLAIN, LARGEST_PLAIN = 1e-4, 1e12


def _one_line(text: Any) -> str:
    """The characters of `text`; `printable` looks at each of them, which most texts do not need."""
    shown = str(text)
    return shown if shown.isprintable() else printable(shown)


def plain(text: Any) -> str:
    """`text` as Markdown that shows exactly its characters, on one line: no markup, no HTML, no table cell ends.

    >>> plain("a|b `c` <script>")
    'a\\\\|b \\\\`c\\\\` &lt;script&gt;'
    """
    shown = _one_line(text).replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    return _SPECIAL.sub(r"\\\1", shown)


def code(text: Any) -> str:
    """`text` as a code span; inside a table too, so pipes are escaped. The fence is longer than any run of backticks.

    >>> code("a`b"), code("x|y")
    ('``a`b``', '`x\\\\|y`')
    """
    shown = _one_line(text).replace("|", "\\|") or " "
    fence = "`" * (max((len(run) for run in re.findall(r"`+", shown)), default=0) + 1)
    pad = " " if shown.startswith("`") or shown.endswith("`") else ""
    return f"{fence}{pad}{shown}{pad}{fence}"


def abridged(entry: Any) -> str:
    """An entry of the lineage on one line: digests and versions as they are, parameters as `name=value`."""
    if isinstance(entry, dict):
        return ", ".join(f"{key}={abridged(value)}" for key, value in sorted(entry.items()))
    return str(entry)


def block(text: str) -> list[str]:
    """`text` as a fenced block, control characters escaped."""
    lines = [printable(line) for line in text.split("\n")]
    fence = "`" * max(3, 1 + max((len(run) for line in lines for run in re.findall(r"`+", line)), default=0))
    return [fence, *lines, fence]


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> list[str]:
    """A table and the empty line after it; [] where there is no row. Cells are Markdown already."""
    lines = [f"| {' | '.join(cells)} |" for cells in rows]
    return [f"| {' | '.join(head)} |", f"| {' | '.join('---' for _ in head)} |", *lines, ""] if lines else []


def exact(number: float | None) -> str:
    """A number with all of its digits: 3.28125, 4000, 42526.47262278508."""
    if number is None:
        return NOTHING
    return f"{number:.0f}" if number == int(number) and abs(number) < 2.0**53 else repr(number)


def given(entry: Any) -> str:
    """An input of a formula, with all digits: enough to redo the arithmetic by hand."""
    if isinstance(entry, list):
        return ", ".join(map(given, entry))
    return exact(entry) if isinstance(entry, int | float) and not isinstance(entry, bool) else str(entry)


def whole(low: float, high: float | None) -> tuple[str, str]:
    """The ends of an interval between exact counts, rounded outward to whole numbers; None: unbounded."""
    return count(math.floor(low)), "unbounded" if high is None else count(math.ceil(high))


def count(number: float | None) -> str:
    """An exact count with separators: 110,906,112; one that lies between two whole numbers, to the nearer one."""
    return NOTHING if number is None else f"{number:,.0f}"


def duration(seconds: float | None) -> str:
    """Seconds in the largest sensible unit."""
    if seconds is None:
        return NOTHING
    for limit, unit in ((3600, "h"), (60, "min")):
        if seconds >= limit:
            return f"{seconds / limit:.2f} {unit}"
    return f"{seconds:.1f} s" if seconds >= 1 else f"{seconds:.2g} s"


@dataclass(frozen=True)
class Numbers:
    """How numbers are shown that are measured or estimated, and not counted.

    Attributes:
        digits: significant digits.
    """

    digits: int

    def measure(self, number: float | None, unit: str = "") -> str:
        """A measured value: 42,530; 1.366; 3.12e+14."""
        if number is None:
            return NOTHING
        return f"{self._plain(number)}{f' {unit}' if unit else ''}"

    def outward(self, low: float, high: float | None) -> tuple[str, str]:
        """The ends of an interval, rounded so that the shown one holds the other; None: unbounded."""
        shown = self._plain(self._rounded(low, math.floor))
        return shown, "unbounded" if high is None else self._plain(self._rounded(high, math.ceil))

    def flops(self, number: float | None) -> str:
        """A total of FLOPs: 1.423e+18."""
        return NOTHING if number is None else f"{number:.{self.digits - 1}e}"

    def percent(self, share: float | None) -> str:
        """A share: 37.42 %."""
        return NOTHING if share is None else f"{self._plain(share * 100)} %"

    def value(self, entry: Any) -> str:
        """A fact's value: whole numbers as counts, other numbers as measured, the rest as text."""
        if isinstance(entry, bool):
            return "yes" if entry else "no"
        if isinstance(entry, int | float):
            return count(entry) if entry == int(entry) else self.measure(entry)
        if isinstance(entry, list):
            return plain(", ".join(str(item) for item in entry)) or "none"
        return plain(entry)

    def _plain(self, number: float) -> str:
        """Significant digits without an exponent where that is readable."""
        if number == 0 or not (SMALLEST_PLAIN <= abs(number) < LARGEST_PLAIN):
            return f"{number:.{self.digits}g}"
        rounded = self._rounded(number, round)
        shown = f"{rounded:,.{max(0, self.digits - 1 - math.floor(math.log10(abs(rounded))))}f}"
        return shown.rstrip("0").rstrip(".") if "." in shown else shown

    def _rounded(self, number: float, whole: Callable[[float], int]) -> float:
        """`number` to the significant digits, by `whole`: round, math.floor or math.ceil."""
        if number == 0:
            return number
        places = self.digits - 1 - math.floor(math.log10(abs(number)))
        if places <= 0:
            return float(whole(number / 10**-places) * 10**-places)
        return whole(number * 10**places) / 10**places


def spread(entry: Mapping[str, Any] | None, show: Callable[[Any], str]) -> str:
    """{value} or {range} with `show` applied."""
    if not entry:
        return NOTHING
    if entry.get("value") is not None:
        return show(entry["value"])
    low, high = entry["range"]
    return f"{show(low)} to {show(high)}"
