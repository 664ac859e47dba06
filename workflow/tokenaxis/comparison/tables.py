"""The comparison's tables as rows of plain values, with what each column means: what csv, parquet and page show."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from tokenaxis.comparison.answers import Answers
from tokenaxis.comparison.curves import Curve, hours_to
from tokenaxis.comparison.model import RunResult, Sweep
from tokenaxis.comparison.quantities import natural
from tokenaxis.comparison.quantities import target as target_text


@dataclass(frozen=True)
class Field:
    """A column of a table: `kind` is "text", "number", "integer" or "flag"; `about` says what it holds and its unit."""

    name: str
    kind: str
    about: str


@dataclass(frozen=True)
class Table:
    """A table: rows are dictionaries with a value or None for every field's name."""

    name: str
    fields: tuple[Field, ...]
    rows: list[dict[str, Any]]

    def columns(self) -> list[list[Any]]:
        """The values field by field."""
        return [[row[field.name] for row in self.rows] for field in self.fields]


TARGET_FIELDS = (
    Field("run", "text", "run id"),
    Field("target", "number", "target loss, nats per token"),
    Field("status", "text", "reached | predicted | unreachable | not_available"),
    Field("step", "number", "optimizer step at which the target is reached"),
    Field("tokens", "number", "tokens consumed when the target is reached"),
    Field("low", "number", "lower end of the interval, tokens"),
    Field("high", "number", "upper end of the interval, tokens; blank beside a low: unbounded"),
    Field("interval_level", "number", "nominal coverage of the interval"),
    Field("law", "text", "law that the prediction comes from"),
    Field("horizon", "number", "tokens of the target over tokens observed"),
    Field("verdict", "text", "verdict of the stability sweep"),
    Field("ratio_to_baseline", "number", "tokens over the baseline run's tokens"),
    Field("warnings", "text", "codes of warnings, separated by semicolons"),
    Field("ratio_low", "number", "lower end of the ratio's interval"),
    Field("ratio_high", "number", "upper end of the ratio's interval"),
    Field("reason", "text", "why there is no number, or what qualifies it"),
    Field("loss", "text", "loss that the target refers to; ratios are between runs with the same one"),
    Field("hours", "number", "wall time to the target, hours; past the log's end at the pace of its second half"),
    Field("low_calibrated", "number", "lower end of the interval after calibration on the sweep's other runs, tokens"),
    Field("high_calibrated", "number", "upper end of the same; blank beside a low: unbounded"),
    Field("calibration", "text", "what the calibration rests on, or why there is none"),
    Field("reached_by_end", "number", "probability that the target is reached by the run's planned end"),
)
CONVENTION_FIELDS = (
    Field("run", "text", "run id"),
    Field("convention", "text", "name of the counting convention"),
    Field("chosen", "flag", "whether params.yaml names it as the headline number"),
    Field("flops_per_token", "number", "FLOP per token, forward and backward"),
    Field("flops_spent", "number", "FLOP of the tokens observed"),
    Field("formula", "text", "formula of FLOP per token"),
    Field("reason", "text", "why there is no number"),
)
RUN_FIELDS = (
    Field("run", "text", "run id"),
    Field("name", "text", "log file, relative to the sweep directory"),
    Field("format", "text", "reader"),
    Field("rows_read", "integer", "data rows in the log"),
    Field("rows_kept", "integer", "rows of the token axis"),
    Field("rows_bad", "integer", "rows that could not be read"),
    Field("rows_superseded", "integer", "rows that a later attempt repeated"),
    Field("rows_merged", "integer", "rows joined with another row of the same step"),
    Field("attempts", "integer", "stretches between a start and an interruption"),
    Field("superseded_tokens", "number", "tokens that were trained again after a resume"),
    Field("last_step", "number", "last optimizer step"),
    Field("last_tokens", "number", "tokens consumed before the last step"),
    Field("batch_first", "number", "tokens per step at the start"),
    Field("batch_last", "number", "tokens per step at the end"),
    Field("batch_stages", "integer", "stretches of constant batch"),
    Field("batch_source", "text", "where the batch comes from"),
    Field("last_train_loss", "number", "last training loss, nats per token"),
    Field("last_val_loss", "number", "last validation loss, nats per token"),
    Field("loss", "text", "loss that targets refer to"),
    Field("smoothed_loss", "number", "that loss at the last row, smoothed, nats per token"),
    Field("irreducible_loss", "number", "fitted irreducible loss, nats per token"),
    Field("exponent", "number", "fitted exponent"),
    Field("lr_peak", "number", "highest learning rate"),
    Field("warnings", "text", "codes of warnings, separated by semicolons"),
)
REFUSED_FIELDS = (
    Field("name", "text", "file, relative to the sweep directory"),
    Field("reason", "text", "why it cannot be used"),
    Field("remedy", "text", "what to do about it"),
)


def in_order(runs: Iterable[RunResult]) -> list[RunResult]:
    """Runs in the natural order of their ids."""
    return sorted(runs, key=lambda run: natural(run.id))


def build(sweep: Sweep, answers: Answers, curves: dict[str, Curve]) -> dict[str, Table]:
    """Every table of the comparison by name, rows in a fixed order: by run id, then by target from high to low."""
    runs = in_order(sweep.runs)
    refused = sorted(sweep.refused, key=lambda entry: str(entry.get("name")))
    tables = (
        Table("targets", TARGET_FIELDS, list(_target_rows(answers, curves))),
        convention_table(runs, answers.targets),
        Table("runs", RUN_FIELDS, [run_row(run, curves[run.id]) for run in runs]),
        Table(
            "refused",
            REFUSED_FIELDS,
            [{field.name: entry.get(field.name) for field in REFUSED_FIELDS} for entry in refused],
        ),
    )
    return {table.name: table for table in tables}


def _target_rows(answers: Answers, curves: dict[str, Curve]) -> Iterable[dict[str, Any]]:
    for run in answers.runs:
        for target in answers.targets:
            cell = answers.cells.get((run, target))
            if cell is not None:
                row = {field.name: getattr(cell, field.name, None) for field in TARGET_FIELDS}
                yield row | {
                    "interval_level": cell.level,
                    "ratio_to_baseline": cell.ratio,
                    "warnings": "; ".join(cell.warnings),
                    "reason": cell.reason or cell.verdict_reason,
                    "hours": hours_to(curves[run], cell.tokens) if cell.answered else None,
                }


def flops_field(target: float) -> str:
    """Name of the column of FLOP to a target: flops_to_1.60."""
    return f"flops_to_{target_text(target)}"


def convention_table(runs: list[RunResult], targets: tuple[float, ...]) -> Table:
    """A row per run and convention, a column of FLOP per target. A convention that lacks a fact keeps its row."""
    names = sorted({name for run in runs for name in run.conventions.get("flops_per_token") or {}})
    fields = CONVENTION_FIELDS + tuple(
        Field(flops_field(target), "number", f"FLOP until {target_text(target)} nats per token") for target in targets
    )
    rows = []
    for run in runs:
        facts = run.conventions
        missing = facts.get("not_available") or {}
        to_target = {float(entry["target"]): entry.get("flops") or {} for entry in facts.get("flops_to_target") or []}
        per_token = facts.get("flops_per_token") or {}
        for name in names if per_token or missing else []:
            row = {
                "run": run.id,
                "convention": name,
                "chosen": facts.get("convention") == name,
                "flops_per_token": per_token.get(name),
                "flops_spent": (facts.get("flops_spent") or {}).get(name),
                "formula": (facts.get("formulas") or {}).get(name),
                "reason": None if name in per_token else missing.get(name) or missing.get("flops_per_token"),
            }
            rows.append(row | {flops_field(target): to_target.get(target, {}).get(name) for target in targets})
    return Table("conventions", fields, rows)


def warnings_of(run: RunResult) -> list[dict[str, str]]:
    """Warnings of every stage, in the order of the stages, each said once."""
    found: dict[tuple[str, str], dict[str, str]] = {}
    for part in (run.axis_meta, run.fits, run.stability, run.conventions):
        for entry in part.get("warnings") or []:
            found.setdefault((entry["code"], entry["message"]), {"code": entry["code"], "message": entry["message"]})
    return list(found.values())


def batch_stages(run: RunResult) -> list[dict[str, Any]]:
    """Stretches of constant batch, as in the token axis' metadata."""
    return (run.axis_meta.get("batch") or {}).get("stages") or []


def run_row(run: RunResult, curve: Curve) -> dict[str, Any]:
    """The run's row of the table of runs."""
    meta, fits = run.axis_meta, run.fits
    rows, attempts, stages = meta.get("rows") or {}, meta.get("attempts") or [], batch_stages(run)
    observed, fit = fits.get("observed") or {}, fits.get("fit") or {}
    codes = sorted({entry["code"] for entry in warnings_of(run)})
    return {
        "run": run.id,
        "name": run.name,
        "format": meta.get("format"),
        **{f"rows_{key}": rows.get(key) for key in ("read", "kept", "bad", "superseded", "merged")},
        "attempts": len(attempts) or None,
        "superseded_tokens": meta.get("superseded_tokens"),
        "last_step": attempts[-1].get("last_step") if attempts else observed.get("step"),
        "last_tokens": (meta.get("tokens") or {}).get("last"),
        "batch_first": stages[0]["tokens_per_step"] if stages else None,
        "batch_last": stages[-1]["tokens_per_step"] if stages else None,
        "batch_stages": len(stages) or None,
        "batch_source": (meta.get("batch") or {}).get("source"),
        "last_train_loss": curve.last.get("train_loss"),
        "last_val_loss": curve.last.get("val_loss"),
        "loss": fits.get("loss"),
        "smoothed_loss": observed.get("loss"),
        "irreducible_loss": fit.get("irreducible_loss"),
        "exponent": fit.get("exponent"),
        "lr_peak": (meta.get("lr") or {}).get("peak"),
        "warnings": "; ".join(codes),
    }
