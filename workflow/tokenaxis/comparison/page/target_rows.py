"""The table of runs and targets: one row a run, as HTML."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from tokenaxis.comparison import quantities as q
from tokenaxis.comparison.answers import Answer
from tokenaxis.comparison.curves import Curve
from tokenaxis.comparison.model import RunResult
from tokenaxis.comparison.page.markup import escaped
from tokenaxis.comparison.page.names import anchor, label

if TYPE_CHECKING:
    from tokenaxis.comparison.page.render import Material

STATUS_WORDS = {
    "reached": "reached",
    "predicted": "predicted",
    "unreachable": "unreachable",
    "not_available": "no answer",
}
_BASELINE = ' class="baseline"'
_DOTS = {
    status: f'<span class="dot {status}" title="{word}" aria-hidden="true">{"●" if status == "reached" else "○"}</span>'
    f'<span class="visually-hidden">{word}: </span>'
    for status, word in STATUS_WORDS.items()
}


def target_row(
    material: Material, run: RunResult, targets: list[float], hours: Mapping[tuple[str, float], float | None]
) -> str:
    """The row of `run`: a cell for each of `targets`."""
    answers, name, baseline = material.answers, escaped(run.id), run.id == material.answers.baseline
    marks = " <small>baseline</small>" if baseline else ""
    if answers.mixed and run.fits.get("loss"):
        marks += f' <small class="line">{escaped(run.fits["loss"].replace("_", " "))}</small>'
    cells = []
    for target in targets:
        cell = answers.cells.get((run.id, target))
        if cell is None:
            cells.append(_not_asked(material.curves[run.id], target))
        else:
            cells.append(_answered(cell, hours.get((run.id, target)), answers.baseline) if cell.answered else _no(cell))
    return (
        f'<tr data-run="{name}"{_BASELINE if baseline else ""}>'
        f'<th scope="row" data-sort="{name}"><a href="#{anchor(run.id)}" title="{name} ({escaped(run.name)})">'
        f"{escaped(label(run.id))}</a>{marks}</th>{''.join(cells)}</tr>\n"
    )


def _answered(cell: Answer, hours: float | None, baseline: str | None) -> str:
    parts = [
        f'<td class="{cell.status}" data-sort="{cell.tokens!r}"><span class="head">{_DOTS[cell.status]}'
        f'<span class="value" title="{escaped(_title(cell))}">{q.short(cell.tokens)}<small> tokens</small></span>'
        "</span>"
    ]
    if cell.low is not None:
        parts.append(f'<span class="interval">{q.interval(cell.low, cell.high)}</span>')
    parts += [f'<span class="line keep">{escaped(line)}</span>' for line in _lines(cell, hours, baseline)]
    if cell.verdict and cell.verdict != "REACHED":
        seen = f"{q.times(cell.horizon)} seen · " if cell.status == "predicted" and cell.horizon else ""
        reason = escaped(cell.verdict_reason)
        parts.append(f'<span class="line keep verdict" title="{reason}">{seen}{escaped(cell.verdict.lower())}</span>')
    if cell.crossed_back:
        parts.append('<span class="line warn">rose above it again later</span>')
    if cell.warnings:
        parts.append(_warnings(cell.warnings))
    return "".join(parts) + "</td>"


def _title(cell: Answer) -> str:
    title = f"{q.exact(cell.tokens)} tokens"
    if cell.low is not None:
        high = q.exact(cell.high) if cell.high is not None else "unbounded"
        title += f", {q.percent(cell.level)} interval from {q.exact(cell.low)} to {high}"
    return f"{title}; {cell.calibration}" if cell.calibration else title


def _lines(cell: Answer, hours: float | None, baseline: str | None) -> list[str]:
    place = [f"step {q.whole(cell.step)}"] if cell.step is not None else []
    place += [q.duration(hours * 3600)] if hours is not None else []
    lines = [" · ".join(place)] if place else []
    if cell.ratio is not None and cell.run != baseline:
        lines.append(f"{q.times(cell.ratio)} baseline {q.times_interval(cell.ratio_low, cell.ratio_high)}".rstrip())
    if cell.reached_by_end is not None and cell.status == "predicted":
        lines.append(f"{q.chance(cell.reached_by_end)} by the planned end")
    if cell.low_calibrated is not None:
        lines.append(f"calibrated {q.interval(cell.low_calibrated, cell.high_calibrated)}")
    return lines


def _warnings(codes: tuple[str, ...]) -> str:
    words = escaped("; ".join(code.replace("_", " ") for code in codes))
    count = f"{len(codes)} warning{'s' if len(codes) > 1 else ''}"
    return f'<span class="line warn" title="{words}">{count}<span class="visually-hidden">: {words}</span></span>'


def _no(cell: Answer) -> str:
    reason = cell.reason or cell.verdict_reason
    line = f'<span class="line">{escaped(reason)}</span>' if reason else ""
    return _chip(cell.status, STATUS_WORDS[cell.status], cell.reason or "", line)


def _not_asked(curve: Curve, target: float) -> str:
    """Why a run has nothing to say about a target of other runs: automatic targets lie around where it stands."""
    word, why = "not asked", "this target is not one of the run's"
    if len(curve.smooth.value):
        low, high = float(curve.smooth.value.min()), float(curve.smooth.value.max())
        if target > high:
            word, why = "starts below", "the run's first logged losses lie below this target already"
        elif target > low:
            word, why = "passed early", "the run passed this loss long before its end: not one of its automatic targets"
        else:
            word, why = "too far", "too far below the run's last loss to be one of its automatic targets"
    return _chip("not_asked", word, f"{why}; fits.targets asks all runs")


def _chip(status: str, word: str, title: str, line: str = "") -> str:
    return (
        f'<td class="{status}" data-sort=""><span class="head">'
        f'<span class="chip {status}" title="{escaped(title)}">{word}</span></span>{line}</td>'
    )
