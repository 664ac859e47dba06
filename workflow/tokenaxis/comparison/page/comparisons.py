"""What the page says about runs against each other: hindsight, equal tokens, batch sizes, conventions."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tokenaxis.comparison import quantities as q
from tokenaxis.comparison.batch_size import TradeOff
from tokenaxis.comparison.headlines import orders_by_convention
from tokenaxis.comparison.hindsight import Hindsight
from tokenaxis.comparison.matched import Difference
from tokenaxis.comparison.model import RunResult
from tokenaxis.comparison.page.names import anchor, label
from tokenaxis.comparison.scaling import PARAMETER_FIELDS, Budget, Scaling
from tokenaxis.comparison.tables import flops_field

if TYPE_CHECKING:
    from tokenaxis.comparison.page.render import Material


def hindsight_view(entry: Hindsight) -> dict[str, Any]:
    share = f" ({100 * entry.held / entry.intervals:.0f}%)" if entry.intervals else ""
    held = f"{entry.held} of {entry.intervals}{share}" if entry.intervals else q.MISSING
    return {
        "horizon": q.times(entry.horizon),
        "predictions": entry.predictions,
        "unanswered": entry.unanswered,
        "median": q.error(entry.median_error),
        "high": q.error(entry.high_error),
        "held": held,
    }


def difference_view(entry: Difference) -> dict[str, Any]:
    return {
        "run": entry.run,
        "label": label(entry.run),
        "anchor": anchor(entry.run),
        "basis": "tokens" if entry.basis == "tokens" else f"FLOP ({entry.basis})",
        "tokens": q.short(entry.run_tokens),
        "title": f"{q.exact(entry.run_tokens)} tokens of the run, {q.exact(entry.baseline_tokens)} of the baseline",
        "loss": f"{entry.run_loss:.4f}",
        "baseline": f"{entry.baseline_loss:.4f}",
        "difference": f"{entry.difference:+.4f} [{entry.low:+.4f}, {entry.high:+.4f}]",
        "sort": repr(entry.difference),
        "rates": _rates(entry),
        "uneven": entry.uneven,
        "verdict": entry.verdict,
    }


def _rates(entry: Difference) -> str:
    rates = (entry.run_rate, entry.baseline_rate)
    if rates == (None, None):
        return q.MISSING
    return ", ".join(q.MISSING if rate is None else f"{100 * rate:.0f}%" for rate in rates)


def trade_off_view(entry: TradeOff) -> dict[str, Any]:
    critical = entry.critical
    low = q.short(critical.low) if critical.low is not None else "0"
    high = f"{q.short(critical.high)}]" if critical.high is not None else "unbounded)"
    return {
        "target": q.target(entry.target),
        "batch": f"{q.short(critical.batch)} [{low}, {high}" if critical.batch else q.MISSING,
        "title": f"{q.exact(critical.batch)} tokens per step",
        "tokens_min": q.short(critical.tokens_min),
        "steps_min": q.short(critical.steps_min),
        "points": critical.points,
        "runs": ", ".join(point.cell.run for point in entry.used),
        "reason": critical.reason or "",
    }


def scaling_view(scaling: Scaling) -> dict[str, Any]:
    """Parameters and budgets in words; only a reason where there is no law."""
    parameters = [
        (_greek(PARAMETER_FIELDS[name][0]), PARAMETER_FIELDS[name][1], f"{value:.4g} [{low:.4g}, {high:.4g}]")
        for name, (value, low, high) in scaling.parameters.items()
    ]
    return {
        "reason": scaling.reason,
        "caution": scaling.caution,
        "level": q.percent(scaling.level),
        "runs": len(scaling.used),
        "sizes": len({point.n_params for point in scaling.used}),
        "loss": (scaling.loss_name or "loss").replace("_", " "),
        "size_fact": scaling.size_fact,
        "residual": _root_mean_square(scaling),
        "parameters": parameters,
        "budgets": [_budget_view(budget) for budget in scaling.budgets],
        "left_out": [(point.run, point.reason) for point in scaling.points if point.reason],
    }


def _greek(name: str) -> str:
    return name.replace("alpha", "α").replace("beta", "β")


def _root_mean_square(scaling: Scaling) -> str:
    if scaling.fit is None:
        return ""
    return f"{100 * float((scaling.fit.residual**2).mean()) ** 0.5:.2g}%"


def _budget_view(budget: Budget) -> dict[str, str]:
    value, low, high = budget.loss
    return {
        "flop": q.flop(budget.flop),
        "beyond": f"{q.times(budget.beyond)}, extrapolated" if budget.beyond > 1 else q.times(budget.beyond),
        "n_params": f"{q.short(budget.n_params[0])} {q.interval(*budget.n_params[1:])}",
        "tokens": f"{q.short(budget.tokens[0])} {q.interval(*budget.tokens[1:])}",
        "per_parameter": f"{budget.tokens[0] / budget.n_params[0]:.3g}",
        "loss": f"{value:.3f} [{low:.3f}, {high:.3f}]",
    }


def conventions_view(material: Material, runs: list[RunResult]) -> dict[str, Any]:
    table, focus = material.tables["conventions"], material.answers.focus
    names = sorted({row["convention"] for row in table.rows})
    by_run = {(row["run"], row["convention"]): row for row in table.rows}
    key = flops_field(focus) if focus is not None else ""
    formulas = {row["convention"]: row["formula"] for row in table.rows if row["formula"]}
    rows = []
    for run in runs:
        found = [by_run.get((run.id, name), {}) for name in names]
        missing = run.conventions.get("not_available") or {}
        reasons = sorted({f"{name.replace('_', ' ')}: {reason}" for name, reason in missing.items()})
        rows.append({
            "run": run.id,
            "label": label(run.id),
            "anchor": anchor(run.id),
            "per_token": [_number(row.get("flops_per_token")) for row in found],
            "to_target": [_number(row.get(key)) for row in found],
            "mfu": _mfu(run.conventions.get("mfu")),
            "reason": "; ".join(reasons),
        })  # fmt: skip
    return {
        "names": names,
        "formulas": [(name, formulas.get(name, "")) for name in names],
        "focus": q.target(focus) if focus is not None else None,
        "has_targets": any(row.get(key) for row in table.rows),
        "common_reason": rows[0]["reason"] if len({row["reason"] for row in rows}) == 1 else "",
        "has_mfu": any(row["mfu"] for row in rows),
        "rows": rows,
        "orders": sorted(orders_by_convention(table, focus).items()),
    }


def _number(value: float | None) -> tuple[str, str]:
    return q.flop(value), q.exact(value) + " FLOP"


def _mfu(entry: dict[str, Any] | None) -> str:
    if not entry:
        return ""
    span = entry.get("range")
    value = f"{q.percent(span[0])} to {q.percent(span[1])}" if span else q.percent(entry.get("value"))
    return (
        f"{value} ({entry.get('convention') or 'all conventions'}; peak from {entry.get('peak_source') or 'not known'})"
    )
