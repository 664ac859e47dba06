"""Markdown that holds whatever a log may say: escaping, numbers, tables."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Any

from tokenaxis.errors import printable

_SPECIAL = re.compile(r"([\\`*_{}\[\]|#~$!])")
NOTHING = "-"


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


def count(number: float | None) -> str:
    """A count exactly, with separators: 110,906,112; at most four digits behind the point."""
    if number is None:
        return NOTHING
    return f"{number:,.0f}" if number == int(number) else f"{number:,.4f}".rstrip("0")


def position(number: float | None) -> str:
    """A place on the token or step axis, which may lie between two steps, to the nearest whole number."""
    return count(None if number is None else round(number))


def measure(number: float | None, unit: str = "") -> str:
    """A measured value to five digits."""
    return NOTHING if number is None else f"{number:.5g}{f' {unit}' if unit else ''}"


def flops(number: float | None) -> str:
    """A total of FLOPs: 1.423e+18."""
    return NOTHING if number is None else f"{number:.3e}"


def percent(share: float | None) -> str:
    """A share: 37.42 %."""
    return NOTHING if share is None else f"{share * 100:.2f} %"


def duration(seconds: float | None) -> str:
    """Seconds in the largest sensible unit."""
    if seconds is None:
        return NOTHING
    for limit, unit in ((3600, "h"), (60, "min")):
        if seconds >= limit:
            return f"{seconds / limit:.2f} {unit}"
    return f"{seconds:.1f} s"


def value(entry: Any) -> str:
    """A fact's value: numbers as counts, the rest as text."""
    if isinstance(entry, bool):
        return "yes" if entry else "no"
    if isinstance(entry, int | float):
        return count(entry)
    if isinstance(entry, list):
        return plain(", ".join(str(item) for item in entry)) or NOTHING
    return plain(entry)


def spread(entry: dict[str, Any] | None, show: Any) -> str:
    """{value} or {range} with `show` applied."""
    if not entry:
        return NOTHING
    if entry.get("value") is not None:
        return str(show(entry["value"]))
    low, high = entry["range"]
    return f"{show(low)} to {show(high)}"
