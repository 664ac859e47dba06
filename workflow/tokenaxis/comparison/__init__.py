"""The comparison of a sweep's runs: tables, figures, one page. `make` writes them, `console_table` prints the gist."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from tokenaxis.comparison.model import RunResult, Source, Sweep

__all__ = ["RunResult", "Source", "Sweep", "console_table", "make"]


def make(
    sweep: Sweep,
    params: dict[str, Any],
    out: Path,
    fingerprint: str = "",
    sources: Sequence[Source] | None = None,
    digests: Path | None = None,
    code: str = "",
) -> dict[str, Any]:
    """Write the comparison of `sweep` into the folder `out` and return its summary (the content of summary.json).

    Args:
        sweep: the runs' artifacts; token axes are loaded one at a time and only drawn points are kept.
        params: the section `comparison` of params.yaml.
        out: folder that gets tables, figures/, summary.json and index.html; made if missing.
        fingerprint: of the stage's inputs, kept in summary.json.
        sources: where the runs' artifacts are, in place of `sweep.runs`: only those are read that changed.
        digests: folder in which what is known of each run, and of the figures, is kept for the next time.
        code: digest of the code that this comparison is made by; digests of other code are of no use.

    Raises:
        TokenAxisError: params name a baseline that the sweep does not have.
    """
    from tokenaxis.comparison.making import make_comparison
    from tokenaxis.comparison.shelf import Shelf

    if sources is None:
        sources = [Source(run.id, run.name, None, functools.partial(_itself, run)) for run in sweep.runs]
    shelf = Shelf(digests, code)
    try:
        return make_comparison(sweep, sources, params, Path(out), fingerprint, shelf)
    finally:
        shelf.close()


def _itself(run: RunResult) -> RunResult:
    return run


def console_table(sweep_or_summary: Sweep | dict[str, Any], report: str | None = None) -> str:
    """Runs x targets as plain text of at most 100 columns, refused files, and where the report is."""
    from tokenaxis.comparison.answers import collect
    from tokenaxis.comparison.summary import summarise, table_text

    if isinstance(sweep_or_summary, Sweep):
        sweep_or_summary = summarise(sweep_or_summary, collect(sweep_or_summary, None), [], "")
    return table_text(sweep_or_summary, report)
