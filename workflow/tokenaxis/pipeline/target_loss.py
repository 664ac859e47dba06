"""What scripts/target_loss.py does: logs and options in, text or JSON out."""

from __future__ import annotations

import json
import sys
from argparse import Namespace
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from tokenaxis import params as parameters
from tokenaxis import readers, stability, targets
from tokenaxis.axis import TokenAxis, build_axis
from tokenaxis.columns import LOSSES
from tokenaxis.declarations import Declaration
from tokenaxis.errors import TokenAxisError
from tokenaxis.laws import NAMES, seed_report, text
from tokenaxis.laws.plan import plan_of
from tokenaxis.laws.seed import batch_stages
from tokenaxis.series import LossSeries

#: laws that may be asked for by name
LAWS = NAMES
#: the reference's name of the loss column
SEED_LOSS = "train_loss"

Say = Callable[[str], None]


def status(error: TokenAxisError) -> int:
    """Exit status of an expected failure: the reference's own where it has one."""
    return 1 if isinstance(error, seed_report.SeedExit) else 2


def run(args: Namespace, say: Say) -> int:
    """Answer for every log; a log that fails is named on stderr and does not stop the others. -> exit status.

    Raises:
        TokenAxisError: the parameters or options are wrong, or the only log failed.
    """
    params = _params(args)
    schedule = None if args.batch_schedule is None else _schedule(args)
    worst, runs = 0, []
    for path in args.logs:
        try:
            if args.law == "seed" and not args.json:
                _say_seed(path, args, params, schedule, say)
            else:
                runs.append(_analyse(path, args, params, schedule, say))
        except TokenAxisError as error:
            if len(args.logs) == 1:
                raise
            print(error.within(path), file=sys.stderr)
            worst = max(worst, status(error))
    if args.json:
        say(json.dumps({"runs": runs}, indent=1, sort_keys=True, allow_nan=False))
    return worst


def _schedule(args: Namespace) -> seed_report.Schedule:
    try:
        return seed_report.parse_schedule(args.batch_schedule)
    except seed_report.SeedExit as error:
        if args.law == "seed":
            raise
        raise TokenAxisError(error.reason) from None


def _params(args: Namespace) -> dict[str, Any]:
    """params.yaml with the options laid over it."""
    path = parameters.find(args.params)
    params: dict[str, Any] = parameters.validate(parameters.load_yaml(path), "params.schema.json", str(path))
    fits, sweep = params["fits"], params["stability"]
    fits["targets"], fits["law"] = list(args.target), args.law
    for value, section, key in (
        (args.extrapolation_warn_factor, fits, "extrapolation_warn_factor"),
        (args.ema_token_window, fits["seed"], "ema_token_window"),
        (args.sweep_step, sweep["seed"], "step"),
        (args.sweep_min_window, sweep["seed"], "min_window"),
        (args.convergence_tol, sweep["seed"], "tolerance"),
        (args.convergence_tol, sweep, "tolerance"),
    ):
        if value is not None:
            section[key] = value
    return params


def _axis(
    path: str, args: Namespace, params: dict[str, Any], schedule: seed_report.Schedule | None
) -> tuple[TokenAxis, Declaration, str | None]:
    """(token axis, declaration, loss asked for) of one log."""
    columns, loss = {}, args.loss_col
    if loss is not None and loss not in LOSSES:
        columns, loss = {"train_loss": loss}, "train_loss"
    declaration = Declaration(
        columns=columns,
        tokens_per_step=args.batch_size or None,
        batch_schedule=schedule,
        fit_start_step=args.fit_start_step,
        lr_schedule=parse_lr_schedule(args.lr_schedule),
        planned_steps=args.planned_steps,
    )
    raw = readers.read(path, declaration)
    return build_axis(raw, declaration, path, params["token_axis"]["tokens_convention"]), declaration, loss


def parse_lr_schedule(text: str | None) -> dict[str, Any] | None:
    """A schedule written as YAML on the command line.

    Raises:
        TokenAxisError: it is no mapping.
    """
    if text is None:
        return None
    import yaml

    try:
        schedule = yaml.safe_load(text)
    except yaml.YAMLError as error:
        raise TokenAxisError(f"--lr-schedule is not YAML: {error}") from None
    if not isinstance(schedule, dict):
        raise TokenAxisError("--lr-schedule is no mapping", remedy="write e.g. '{kind: cosine, final: 0.1}'")
    return schedule


def _series(axis: TokenAxis, declaration: Declaration, args: Namespace, loss: str) -> LossSeries:
    series = targets.series_from(axis.columns, axis.meta, declaration.as_dict(), loss)
    if not args.fit_last_stage:
        return series
    start = series.fit_start_step if series.fit_start_step is not None else series.warmup_end_step
    last_stage = int(series.step[batch_stages(series.tokens_per_step)[-1][0]])
    return replace(series, fit_start_step=max(start or 0, last_stage))


def _analyse(
    path: str, args: Namespace, params: dict[str, Any], schedule: seed_report.Schedule | None, say: Say
) -> dict[str, Any]:
    """One run by the laws of docs/methods.md: said as text, or handed back for JSON."""
    axis, declaration, loss = _axis(path, args, params, schedule)
    if loss is None and args.law == "seed" and np.isfinite(axis.columns.get(SEED_LOSS, np.nan)).any():
        loss = SEED_LOSS
    fits = params["fits"] | ({"loss": loss} if loss is not None else {})
    chosen, reason = targets.choose_loss(axis.columns, fits)
    series = _series(axis, declaration, args, chosen)
    if args.lr_schedule is not None:
        plan_of(series)  # a schedule typed by hand that lacks something ends here; a declared one only refuses the fit
    report = targets.answer(series, fits, reason)
    swept = None
    if args.stability_sweep:
        swept = stability.sweep(series, params["stability"], fits, report.as_dict())
    if not args.json:
        for line in text.lines(path, report, swept):
            say(line)
        for warning in axis.meta["warnings"]:
            say(f"  ! {warning['code']}: {warning['message']}")
    content = {"run": path, **report.as_dict()}
    content["warnings"] = axis.meta["warnings"] + content["warnings"]
    return content if swept is None else content | {"verdicts": swept.as_dict()["verdicts"]}


def _say_seed(
    path: str, args: Namespace, params: dict[str, Any], schedule: seed_report.Schedule | None, say: Say
) -> None:
    """One run as the reference prints it."""
    fits, sweep = params["fits"], params["stability"]["seed"]
    options = seed_report.SeedOptions(
        targets=tuple(args.target),
        loss_col=args.loss_col or SEED_LOSS,
        ema_token_window=fits["seed"]["ema_token_window"],
        batch_size=args.batch_size,
        batch_schedule=schedule,
        fit_start_step=args.fit_start_step,
        fit_last_stage=args.fit_last_stage,
        warn_factor=fits["extrapolation_warn_factor"],
        stability_sweep=args.stability_sweep,
        sweep_step=sweep["step"],
        sweep_min_window=sweep["min_window"],
        convergence_tol=sweep["tolerance"],
        min_rows=fits["seed"]["min_rows"],
    )
    found = seed_report.read_table(path, options)
    if found is None:
        axis, declaration, loss = _axis(path, args, params, schedule)
        series = targets.series_from(axis.columns, axis.meta, declaration.as_dict(), _logged(axis, loss))
        found = seed_report.from_series(series, _seed_source(axis.meta["batch"]["source"]))
        options = replace(options, loss_col=axis.meta["columns"].get(series.name, series.name))
    if len(args.logs) > 1:
        say(f"== {path}")
    for line in seed_report.report(found, options):
        say(line)


def _seed_source(source: str) -> str:
    """Where the batch came from, in the reference's words where it has one."""
    return {"file name": "filename", "declared": "--batch-size"}.get(source, source)


def _logged(axis: TokenAxis, loss: str | None) -> str:
    """The loss asked for, else train_loss, else val_loss."""
    if loss is not None:
        if loss not in axis.columns:
            raise TokenAxisError(f"the log has no {loss}")
        return loss
    return next(name for name in LOSSES if name in axis.columns and np.isfinite(axis.columns[name]).any())
