"""What the page says about runs against each other: hindsight, equal tokens, batch sizes, conventions."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, Any

from tokenaxis.comparison import quantities as q
from tokenaxis.comparison.batch_size import TradeOff
from tokenaxis.comparison.headlines import orders_by_convention
from tokenaxis.comparison.hindsight import Hindsight
from tokenaxis.comparison.model import RunResult
from tokenaxis.comparison.page.pair_rows import convention_row, mfu_text
from tokenaxis.comparison.scaling import PARAMETER_FIELDS, Budget, Scaling
from tokenaxis.comparison.tables import flops_field

if TYPE_CHECKING:
    from tokenaxis.comparison.page.render import Material


#: takes what gives the rows of a table, one by one, when the page is written
Rows = Callable[[Callable[[], Iterable[str]]], Any]


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


def conventions_view(material: Material, runs: list[RunResult], rows: Rows) -> dict[str, Any]:
    """FLOP of each run under each convention, or why there are none."""
    table, focus = material.tables["conventions"], material.answers.focus
    names = sorted({row["convention"] for row in table.rows})
    key = flops_field(focus) if focus is not None else ""
    has_targets = any(row.get(key) for row in table.rows)
    shown = key if has_targets else "flops_per_token"
    numbers = {(row["run"], row["convention"]): row.get(shown) for row in table.rows}
    formulas = {row["convention"]: row["formula"] for row in table.rows if row["formula"]}
    reasons = _reasons(runs)
    common = next(iter(reasons.values())) if len(set(reasons.values())) == 1 else ""
    has_mfu = any(mfu_text(run.conventions.get("mfu")) for run in runs)

    def each() -> Iterator[str]:
        for run in runs:
            own: list[float | None] = [numbers.get((run.id, name)) for name in names]
            mfu = (run.conventions.get("mfu") or {}) if has_mfu else None
            yield convention_row(run.id, own, mfu, None if common else reasons[run.id])

    return {
        "names": names,
        "formulas": [(name, formulas.get(name, "")) for name in names],
        "focus": q.target(focus) if focus is not None else None,
        "has_targets": has_targets,
        "common_reason": common,
        "has_mfu": has_mfu,
        "rows": rows(each),
        "reasons": _by_reason(reasons),
        "orders": sorted(orders_by_convention(table, focus).items()),
    }


def _reasons(runs: list[RunResult]) -> dict[str, str]:
    """Run -> why numbers of it are missing; runs that have the same reasons share one text."""
    known: dict[int, str] = {}
    found = {}
    for run in runs:
        missing = run.conventions.get("not_available") or {}
        if id(missing) not in known:
            texts = sorted({f"{name.replace('_', ' ')}: {reason}" for name, reason in missing.items()})
            known[id(missing)] = "; ".join(texts)
        found[run.id] = known[id(missing)]
    return found


def _by_reason(reasons: dict[str, str]) -> list[tuple[str, str]]:
    """(runs, the reason that they share); of many runs the first are named."""
    groups: dict[str, list[str]] = {}
    for run, reason in reasons.items():
        groups.setdefault(reason, []).append(run)
    return [(_named(names), reason) for reason, names in groups.items() if reason]


def _named(names: list[str], most: int = 8) -> str:
    listed = ", ".join(names[:most])
    return listed if len(names) <= most else f"{listed} and {q.plural(len(names) - most, 'more run')}"
