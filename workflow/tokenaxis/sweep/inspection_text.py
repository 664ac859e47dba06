"""An inspection of logs as text for people."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

#: stages of a batch that are shown; a batch may differ from step to step
_STAGES = 8


def to_text(content: dict[str, Any]) -> str:
    """All that `inspection.inspect` found, run by run, then what was refused and passed over."""
    blocks = [*map(_run, content["runs"]), *map(_refused, content["refused"])]
    if content["passed_over"]:
        lines = [f"  {entry['name']}: {entry['reason']}" for entry in content["passed_over"]]
        blocks.append("\n".join(["passed over:", *lines]))
    return "\n\n".join(blocks) + "\n" if blocks else "no log found\n"


def _run(run: dict[str, Any]) -> str:
    lines = [f"{run['name']}: {run['format']} ({run['format_about']})"]
    if len(run["files"]) > 1 or run["grouped_because"]:
        names = ", ".join(file["path"] for file in run["files"])
        lines.append(f"  files     {names}" + (f" ({run['grouped_because']})" if run["grouped_because"] else ""))
    if run["facts_from"]:
        lines.append(f"  settings  {', '.join(run['facts_from'])}")
    return "\n".join([*lines, *_described(run)])


def _described(run: dict[str, Any]) -> Iterator[str]:
    rows = run["rows"]
    counts = ", ".join(f"{rows[key]:,} {key}" for key in ("read", "kept", "superseded", "merged", "bad"))
    yield f"  rows      {counts}"
    yield f"  columns   {_pairs(run['columns'].items())}"
    ends, logged = [run["first"]["step"], run["last"]["step"]], run["logged_steps"]
    counted = "" if ends == logged else f" (as the log counts them: {logged[0]:,} to {logged[1]:,})"
    yield f"  steps     {ends[0]:,} to {ends[1]:,}{counted}"
    if run["tokens"] is not None:
        tokens = run["tokens"]
        yield (
            f"  tokens    {_number(tokens['first'])} to {_number(tokens['last'])} before the step; from "
            f"{tokens['source']}, counts {tokens['convention']} the step ({tokens['convention_source']})"
        )
        shown = run["batch"]["stages"][:_STAGES]
        stages = "; ".join(f"{_number(stage['tokens_per_step'])} from step {stage['first_step']:,}" for stage in shown)
        more = len(run["batch"]["stages"]) - len(shown)
        stages += f"; {more:,} more" if more else ""
        yield f"  batch     {stages} tokens per step ({run['batch']['source']})"
    for name, loss in run["losses"].items():
        first, best, last = (loss[place] for place in ("first", "best", "last"))
        yield (
            f"  {name:<9} {loss['rows']:,} values: {first['loss']:.6g} at step {first['step']:,}, best "
            f"{best['loss']:.6g} at {best['step']:,}, last {last['loss']:.6g} at {last['step']:,}"
        )
    for number, attempt in enumerate(run["attempts"]) if len(run["attempts"]) > 1 else ():
        yield (
            f"  attempt {number} steps {attempt['first_step']:,} to {attempt['last_step']:,}, {attempt['rows']:,} rows"
            f", {attempt['superseded_rows']:,} superseded"
        )
    for column, count in run["non_finite"].items():
        yield f"  {column}: {count:,} values are not finite, or beyond 1e6"
    for fact in run["facts"]:
        note = f": {fact['note']}" if fact["note"] else ""
        yield f"  fact      {fact['key']} = {_number(fact['value'])} ({fact['source']}{note})"
    for warning in run["warnings"]:
        yield f"  warning   {warning['message']}"
    yield from _table(run["first_rows"])


def _table(rows: list[dict[str, Any]]) -> Iterator[str]:
    names = list(rows[0]) if rows else []
    cells = [names, *([_number(row[name]) for name in names] for row in rows)]
    widths = [max(len(line[column]) for line in cells) for column in range(len(names))]
    for line in cells:
        yield "  | " + "  ".join(cell.rjust(width) for cell, width in zip(line, widths, strict=True))


def _refused(entry: dict[str, Any]) -> str:
    lines = [f"{entry['name']}: refused: {entry['reason']}"]
    if entry.get("seen"):
        lines += ["  what can be said without it:", *_described(entry["seen"])]
    if entry["declare"]:
        lines += ["  to paste into configs/sweeps/<sweep>.yaml:", "", *entry["declare"].rstrip().split("\n")]
    elif entry["remedy"]:
        lines.append(f"  {entry['remedy']}")
    return "\n".join(lines)


def _pairs(items: Iterable[tuple[str, str]]) -> str:
    return ", ".join(name if own == name else f"{name} = {own!r}" for name, own in items)


def _number(value: Any) -> str:
    if value is None:
        return "-"
    if isinstance(value, bool) or not isinstance(value, int | float):
        return str(value)
    return f"{value:,.0f}" if value == int(value) and abs(value) < 1e15 else f"{value:.6g}"
