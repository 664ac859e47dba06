"""Rows of the tables that set a run against others, as HTML: loss at equal tokens, FLOP under each convention."""

from __future__ import annotations

from typing import Any

from tokenaxis.comparison import quantities as q
from tokenaxis.comparison.matched import Difference
from tokenaxis.comparison.page.markup import escaped
from tokenaxis.comparison.page.names import anchor, label


def head(run: str) -> str:
    """The beginning of a row: the run, linked to its details."""
    name = escaped(run)
    link = f'<a href="#{anchor(run)}" title="{name}">{escaped(label(run))}</a>'
    return f'<tr data-run="{name}"><th scope="row">{link}</th>'


def difference_row(entry: Difference) -> str:
    """A run's loss less the baseline's."""
    basis = "tokens" if entry.basis == "tokens" else f"FLOP ({entry.basis})"
    title = f"{q.exact(entry.run_tokens)} tokens of the run, {q.exact(entry.baseline_tokens)} of the baseline"
    uneven = ' class="warn" title="one schedule is further than the other: part of the difference is due to that"'
    return (
        f'{head(entry.run)}<td class="text">{escaped(basis)}</td><td title="{title}">{q.short(entry.run_tokens)}</td>'
        f"<td>{entry.run_loss:.4f}</td><td>{entry.baseline_loss:.4f}</td>"
        f'<td data-sort="{entry.difference!r}">{entry.difference:+.4f} [{entry.low:+.4f}, {entry.high:+.4f}]</td>'
        f'<td{uneven if entry.uneven else ""}>{_rates(entry)}</td><td class="text">{entry.verdict}</td></tr>\n'
    )


def _rates(entry: Difference) -> str:
    rates = (entry.run_rate, entry.baseline_rate)
    if rates == (None, None):
        return q.MISSING
    return ", ".join(q.MISSING if rate is None else f"{100 * rate:.0f}%" for rate in rates)


def convention_row(run: str, numbers: list[float | None], mfu: dict[str, Any] | None, reason: str | None) -> str:
    """FLOP of a run under each convention; `mfu` {} where only others have one, None and a None reason: no column."""
    cells = "".join(f'<td title="{q.exact(value)} FLOP">{q.flop(value)}</td>' for value in numbers)
    cells += "" if mfu is None else f"<td>{escaped(mfu_text(mfu))}</td>"
    cells += "" if reason is None else f'<td class="text">{escaped(reason)}</td>'
    return f"{head(run)}{cells}</tr>\n"


def mfu_text(entry: dict[str, Any] | None) -> str:
    """MFU, the convention that it is by, and where the peak comes from; nothing without one."""
    if not entry:
        return ""
    span = entry.get("range")
    value = f"{q.percent(span[0])} to {q.percent(span[1])}" if span else q.percent(entry.get("value"))
    return (
        f"{value} ({entry.get('convention') or 'all conventions'}; peak from {entry.get('peak_source') or 'not known'})"
    )
