"""How runs are called on the page: short in tables, and as the target of a link."""

from __future__ import annotations

from urllib.parse import quote

from tokenaxis.comparison import quantities as q
from tokenaxis.errors import printable


def label(run: str) -> str:
    """A run's name for the first column of a table; the whole name is in the tooltip and in the run's details."""
    return q.elided(printable(run), 36)


def anchor(run: str) -> str:
    """A fragment identifier for a run: safe whatever the run is called."""
    return "run-" + quote(run, safe="", errors="surrogatepass").replace("%", "_")
