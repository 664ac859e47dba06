"""Tables of what the comparison works out itself: hindsight, equal tokens, batch sizes, the scaling law."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import asdict

from tokenaxis.comparison.batch_size import TradeOff
from tokenaxis.comparison.hindsight import Hindsight
from tokenaxis.comparison.matched import Difference
from tokenaxis.comparison.scaling import PARAMETER_FIELDS, Scaling
from tokenaxis.comparison.tables import Field, Table

DIFFERENCE_FIELDS = (
    Field("run", "text", "run id"),
    Field("basis", "text", "what is equal: tokens, or FLOP under the convention named"),
    Field("run_tokens", "number", "tokens at which the run is read"),
    Field("baseline_tokens", "number", "tokens at which the baseline run is read"),
    Field("run_loss", "number", "smoothed loss of the run there, nats per token"),
    Field("baseline_loss", "number", "smoothed loss of the baseline run there, nats per token"),
    Field("difference", "number", "loss of the run less that of the baseline, nats per token"),
    Field("low", "number", "lower end of the difference's interval"),
    Field("high", "number", "upper end of the difference's interval"),
    Field("verdict", "text", "lower | higher | within noise"),
    Field("run_rate", "number", "learning rate of the run there over its peak"),
    Field("baseline_rate", "number", "learning rate of the baseline run there over its peak"),
)
HINDSIGHT_FIELDS = (
    Field("horizon", "number", "tokens to the target over tokens seen"),
    Field("predictions", "integer", "predictions, at most one per run and target"),
    Field("unanswered", "integer", "windows that had no answer"),
    Field("median_error", "number", "median of |ln(predicted / true tokens)|"),
    Field("high_error", "number", "90% quantile of |ln(predicted / true tokens)|"),
    Field("held", "integer", "intervals that hold the crossing"),
    Field("intervals", "integer", "intervals"),
)
BATCH_FIELDS = (
    Field("target", "number", "target loss, nats per token"),
    Field("critical_batch", "number", "E_min / S_min, tokens per step (McCandlish et al. 2018)"),
    Field("low", "number", "lower end of its interval; blank beside a number: down to 0"),
    Field("high", "number", "upper end of its interval; blank beside a number: unbounded"),
    Field("interval_level", "number", "nominal coverage of the interval"),
    Field("tokens_min", "number", "E_min, tokens with a batch near zero"),
    Field("steps_min", "number", "S_min, optimizer steps with a batch beyond all bounds"),
    Field("batch_sizes", "integer", "batch sizes that the fit rests on"),
    Field("runs", "text", "runs that the fit rests on, separated by semicolons"),
    Field("reason", "text", "why there is no number, or what qualifies it"),
)
POINT_FIELDS = (
    Field("run", "text", "run id"),
    Field("n_params", "number", "parameters of the model"),
    Field("tokens", "number", "tokens at the end of the run"),
    Field("loss", "number", "smoothed loss there, nats per token"),
    Field("fitted", "number", "loss by the law, nats per token"),
    Field("residual", "number", "ln(loss / fitted)"),
    Field("reason", "text", "why the fit leaves the run out"),
)
LAW_FIELDS = (
    Field("parameter", "text", "name"),
    Field("about", "text", "what it is, and its unit"),
    Field("value", "number", "value of the fit"),
    Field("low", "number", "lower end of its bootstrap interval"),
    Field("high", "number", "upper end of its bootstrap interval"),
    Field("interval_level", "number", "nominal coverage of the interval"),
)
BUDGET_FIELDS = (
    Field("flop", "number", "compute, 6 x parameters x tokens, FLOP"),
    Field("beyond", "number", "that over the compute of the sweep's largest run; above 1: extrapolated"),
    *(
        Field(f"{name}{end}", "number", f"{about}{where}")
        for name, about in (
            ("n_params", "best number of parameters"),
            ("tokens", "best number of tokens"),
            ("loss", "loss with both, nats per token"),
        )
        for end, where in (("", ""), ("_low", ", lower end"), ("_high", ", upper end"))
    ),
)


def build(
    differences: Sequence[Difference], past: Sequence[Hindsight], found: Sequence[TradeOff], scaling: Scaling
) -> dict[str, Table]:
    """The tables by name; one without rows is still a table, so that no file of an earlier comparison stays."""
    tables = (
        Table("differences", DIFFERENCE_FIELDS, [asdict(entry) | {"verdict": entry.verdict} for entry in differences]),
        Table("hindsight", HINDSIGHT_FIELDS, [asdict(entry) for entry in past]),
        Table("critical_batch", BATCH_FIELDS, [_batch_row(entry) for entry in found]),
        Table("scaling_points", POINT_FIELDS, _point_rows(scaling)),
        Table("scaling_law", LAW_FIELDS, _law_rows(scaling)),
        Table("scaling_budgets", BUDGET_FIELDS, _budget_rows(scaling)),
    )
    return {table.name: table for table in tables}


def _batch_row(entry: TradeOff) -> dict[str, object]:
    critical = entry.critical
    return {
        "target": entry.target,
        "critical_batch": critical.batch,
        "low": critical.low,
        "high": critical.high,
        "interval_level": critical.level,
        "tokens_min": critical.tokens_min,
        "steps_min": critical.steps_min,
        "batch_sizes": critical.points,
        "runs": "; ".join(point.cell.run for point in entry.used),
        "reason": critical.reason,
    }


def _point_rows(scaling: Scaling) -> list[dict[str, object]]:
    rows: list[dict[str, object]] = []
    for point in scaling.points:
        row: dict[str, object] = {
            "run": point.run,
            "n_params": point.n_params,
            "tokens": point.tokens,
            "loss": point.loss,
        }
        fitted = None
        if scaling.fit is not None and point.n_params and point.tokens:
            fitted = float(scaling.fit.law.loss(point.n_params, point.tokens))
        residual = math.log(point.loss / fitted) if fitted and point.loss else None
        rows.append(row | {"fitted": fitted, "residual": residual, "reason": point.reason or scaling.reason})
    return rows


def _law_rows(scaling: Scaling) -> list[dict[str, object]]:
    return [
        {"parameter": PARAMETER_FIELDS[name][0], "about": PARAMETER_FIELDS[name][1], "value": value, "low": low,
         "high": high, "interval_level": scaling.level}
        for name, (value, low, high) in scaling.parameters.items()
    ]  # fmt: skip


def _budget_rows(scaling: Scaling) -> list[dict[str, object]]:
    rows: list[dict[str, object]] = []
    for budget in scaling.budgets:
        row: dict[str, object] = {"flop": budget.flop, "beyond": budget.beyond}
        for name in ("n_params", "tokens", "loss"):
            value, low, high = getattr(budget, name)
            row |= {name: value, f"{name}_low": low, f"{name}_high": high}
        rows.append(row)
    return rows
