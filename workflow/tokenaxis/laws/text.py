"""What the console shows of a fit report and its verdicts."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from tokenaxis.errors import printable
from tokenaxis.laws.answers import FitReport, TargetAnswer
from tokenaxis.stability import StabilityReport

#: windows of a sweep that are shown per target
SHOWN_WINDOWS = 12


def lines(name: str, report: FitReport, swept: StabilityReport | None = None) -> Iterator[str]:
    """One run: what was fitted, a line per target, verdicts, warnings."""
    seen = report.observed
    yield printable(name)
    yield (
        f"  {report.loss} ({report.loss_reason}), {report.rows:,} rows; last: step {seen['step']:,.0f}, "
        f"{seen['tokens']:,.0f} tokens, smoothed loss {seen['loss']:.4f}"
    )
    yield f"  {_fit(report)}"
    verdicts = {} if swept is None else {verdict.target: verdict for verdict in swept.verdicts}
    for target in report.targets:
        yield f"  {_target(target)}"
        if target.target in verdicts:
            verdict = verdicts[target.target]
            yield f"      verdict: {verdict.verdict} -- {verdict.reason} ({verdict.windows} windows)"
            if swept is not None and target.status != "reached":
                yield from _windows(swept, target.target)
    if report.end is not None:
        yield f"  {_end(report.end)}"
    for notice in report.warnings:
        yield f"  ! {notice.code}: {printable(notice.message)}"


def _fit(report: FitReport) -> str:
    if report.fit is None:
        return f"no law: {report.fit_not_available}"
    fit: dict[str, Any] = report.fit
    return (
        f"law {report.law} ({report.law_reason}) from step {report.fit_start_step:,}: "
        f"L0 {fit['irreducible_loss']:.4f}, A {fit['coefficient']:.4f}, alpha {fit['exponent']:.4f}"
    )


def _target(answer: TargetAnswer) -> str:
    head = f"target {answer.target:<8g} {answer.status.upper():<13}"
    if answer.tokens is None:
        return f"{head} {answer.reason}"
    text = f"{head} step {answer.step:,.0f}, {answer.tokens:,.0f} tokens"
    if answer.interval is not None:
        low, high = answer.interval
        bound = "unbounded" if high is None else f"{high:,.0f}"
        text += f" [{low:,.0f} .. {bound}] at {answer.interval_level:.0%}"
    if answer.status == "predicted":
        text += f", {answer.horizon:.2f} times the observed tokens"
    if answer.reached_by_end is not None:
        text += f"; reached by the planned end with probability {answer.reached_by_end:.2f}"
    return text


def _end(end: dict[str, Any]) -> str:
    band = f"{end['loss']:.4f} [{end['low']:.4f} .. {end['high']:.4f}]"
    return f"at the planned end ({end['tokens']:,.0f} tokens): loss {band}"


def _windows(swept: StabilityReport, target: float) -> Iterator[str]:
    table = swept.table
    rows = [i for i, value in enumerate(table["target"].tolist()) if value == target]
    yield f"      {'window to step':>16} {'predicted tokens':>20} {'low':>20} {'high':>20}"
    for i in rows[:: max(1, -(-len(rows) // SHOWN_WINDOWS))][:-1] + rows[-1:]:
        values = [float(table[name][i]) for name in ("predicted_tokens", "low", "high")]
        shown = " ".join(f"{'--':>20}" if value != value else f"{value:>20,.0f}" for value in values)
        yield f"      {int(table['window_step'][i]):>16,} {shown}"
