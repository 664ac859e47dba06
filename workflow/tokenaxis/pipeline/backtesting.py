"""What scripts/backtest.py does: runs in, tables of errors, coverage and verdicts out."""

from __future__ import annotations

import json
import math
import sys
from argparse import Namespace
from collections.abc import Callable, Iterator
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import numpy as np

from tokenaxis import backtest, readers, targets
from tokenaxis import params as parameters
from tokenaxis.axis import TokenAxis, build_axis
from tokenaxis.backtest import Run, Trial
from tokenaxis.columns import LOSSES
from tokenaxis.declarations import Declaration
from tokenaxis.errors import TokenAxisError, printable
from tokenaxis.pipeline.target_loss import parse_lr_schedule
from tokenaxis.sweep import declared as declarations
from tokenaxis.sweep.discover import discover

#: upper ends of the bins of horizon in the tables; the trials on constant stretches lie on 1.25, 1.5, 2, 3
HORIZONS = (1.25, 1.5, 2.0, 3.0)
EDGES = (1.3, 1.6, 2.2, 3.2, math.inf)


def run(args: Namespace, say: Callable[[str], None]) -> int:
    """Back-test every run, print the tables. -> exit status."""
    path = parameters.find(args.params)
    params: dict[str, Any] = parameters.validate(parameters.load_yaml(path), "params.schema.json", str(path))
    tolerance = params["stability"]["tolerance"] if args.tolerance is None else args.tolerance
    trials: list[Trial] = []
    for found in runs_of(args, params):
        for law in args.law:
            trials += of_run(found, law, tolerance, args)
    if not trials:
        raise TokenAxisError("no run is long enough to hide its end from a law", remedy="give longer runs")
    if args.json:
        say(json.dumps(as_json(trials, tolerance), indent=1, sort_keys=True, allow_nan=False))
    else:
        for line in tables(trials, tolerance):
            say(line)
    if args.figure is not None:
        figure(trials, Path(args.figure))
    return 0


def _to_stderr(line: str) -> None:
    print(line, file=sys.stderr)


def runs_of(args: Namespace, params: dict[str, Any], say: Callable[[str], None] | None = _to_stderr) -> Iterator[Run]:
    """Every run; its family is its folder. A run that cannot be used is named to `say`."""
    declared = declarations.load(args.sweep) if args.sweep else declarations.SweepDeclaration()
    fits = params["fits"] | ({"loss": args.loss} if args.loss else {})
    for root, path in _files(args.logs, declared, params):
        name = printable(str(path.relative_to(root.parent if root.parent != Path() else root)))
        try:
            declaration = _declaration(declared.of(str(path.relative_to(root))), args)
            raw = readers.read(str(path), declaration)
            axis = build_axis(raw, declaration, path.name, params["token_axis"]["tokens_convention"])
            targets.choose_loss(axis.columns, fits)
            yield _run(name, printable(path.parent.name or "."), axis, declaration, fits)
        except TokenAxisError as error:
            if say is not None:
                say(f"passed over: {error.within(str(path))}")


def _run(name: str, family: str, axis: TokenAxis, declaration: Declaration, fits: dict[str, Any]) -> Run:
    """The run with every loss that may be fitted."""
    wanted = LOSSES if fits["loss"] == "auto" else (fits["loss"],)
    logged = [loss for loss in wanted if loss in axis.columns and np.isfinite(axis.columns[loss]).any()]
    losses = {loss: targets.series_from(axis.columns, axis.meta, declaration.as_dict(), loss) for loss in logged}
    return Run(name, family, losses, axis.columns, fits)


def _files(
    logs: list[str], declared: declarations.SweepDeclaration, params: dict[str, Any]
) -> Iterator[tuple[Path, Path]]:
    """(root that patterns are relative to, file) of every log given, folders searched."""
    for item in map(Path, logs):
        if not item.is_dir():
            yield item.parent, item
            continue
        for found in discover(item, declared, params["runs"]["ignore"]).runs:
            yield item, item / found.files[0].path


def _declaration(declaration: Declaration, args: Namespace) -> Declaration:
    """The run's declaration with the options laid over it."""
    changes: dict[str, Any] = {}
    if args.tokens_per_step is not None:
        changes["tokens_per_step"] = args.tokens_per_step
    if args.planned_steps is not None:
        changes["planned_steps"] = args.planned_steps
    if args.lr_schedule is not None:
        changes["lr_schedule"] = parse_lr_schedule(args.lr_schedule)
    return replace(declaration, **changes)


def of_run(run: Run, law: str, tolerance: float, args: Namespace) -> list[Trial]:
    """The trials of one run under one law, as the options say."""
    if args.plan == "log":
        run = replace(run, losses={k: backtest.with_plan_of_the_log(series) for k, series in run.losses.items()})
    elif args.plan == "none":
        run = _without_plan(run)
    if args.constant:
        stretch = backtest.constant_stretch(run)
        if stretch is None:
            return []
        stretch = _without_plan(stretch) if args.plan == "none" else stretch
        return list(backtest.horizon_trials(stretch, law, tolerance, HORIZONS))
    return list(backtest.hidden_trials(run, law, tolerance, args.hide))


def _without_plan(run: Run) -> Run:
    losses = {name: replace(series, lr_schedule=None, planned_tokens=None) for name, series in run.losses.items()}
    return replace(run, losses=losses)


def groups(trials: list[Trial]) -> Iterator[tuple[str, str, list[Trial]]]:
    """(kind of group, its label, trials): by horizon, by hidden share, by family, all."""
    low = 0.0
    for edge in EDGES:
        some = [trial for trial in trials if low < trial.horizon <= edge]
        label = f"{low:g} to {edge:g}" if math.isfinite(edge) else f"over {low:g}"
        if some:
            yield "horizon", label, some
        low = edge
    for share in sorted({round(trial.hidden, 2) for trial in trials}):
        some = [trial for trial in trials if round(trial.hidden, 2) == share]
        if len({round(t.hidden, 2) for t in trials}) <= 4:
            yield "hidden", f"{share:.0%}", some
    for family in sorted({trial.family for trial in trials}):
        yield "family", family, [trial for trial in trials if trial.family == family]
    yield "all", "", trials


def tables(trials: list[Trial], tolerance: float) -> Iterator[str]:
    """Text: a table per law."""
    limit = f"in {tolerance:.0%}"
    head = (
        f"{'':9} {'':22} {'trials':>6} {'median':>7} {'q90':>7} {'none':>5} {limit:>7} {'50%':>5} {'80%':>5} {'90%':>5}"
    )
    for law in dict.fromkeys(trial.law for trial in trials):
        own = [trial for trial in trials if trial.law == law]
        yield f"law {law}: |ln(predicted / true tokens)|, shares held by nominal intervals, verdicts CONVERGED (wrong)"
        yield head + f" {'CONVERGED':>12} {'end loss':>9}"
        for kind, label, some in groups(own):
            yield _row(kind, label, some, tolerance)
        for level in (0.5, 0.8, 0.9):
            held = backtest.calibrated_coverage(own, level)
            if held is not None:
                factor = backtest.calibrate(own, level)
                yield f"  conformal on these runs: {level:.0%} = {factor:.2f} standard errors, holds {held:.2f}"
        yield ""


def _row(kind: str, label: str, trials: list[Trial], tolerance: float) -> str:
    found = backtest.summarise(trials, tolerance)
    shown = [f"{value:>7.3f}" if value is not None else f"{'inf':>7}" for value in (found.median, found.quantile)]
    levels = " ".join(
        f"{found.coverage[k]:>5.2f}" if k in found.coverage else f"{'-':>5}" for k in ("0.5", "0.8", "0.9")
    )
    ends = end_errors(trials)
    end = f"{sum(map(abs, ends)) / len(ends):>9.4f}" if ends else f"{'-':>9}"
    verdicts = f"{found.converged} ({found.wrong})"
    return (
        f"{kind:9} {label[:22]:22} {found.trials:>6} {' '.join(shown)} {found.without:>5.2f} {found.within:>7.2f} "
        f"{levels} {verdicts:>12} {end}"
    )


def end_errors(trials: list[Trial]) -> list[float]:
    """One error of the end loss per run and cut."""
    return list({(t.run, round(t.hidden, 4)): t.end_error for t in trials if t.end_error is not None}.values())


def as_json(trials: list[Trial], tolerance: float) -> dict[str, Any]:
    """{"laws": {law: [{"group", "label", summary, "end_error"}]}, "calibration": {law: {level: factor}}, "trials"}."""
    laws: dict[str, Any] = {}
    calibration: dict[str, Any] = {}
    for law in dict.fromkeys(trial.law for trial in trials):
        own = [trial for trial in trials if trial.law == law]
        laws[law] = []
        for kind, label, some in groups(own):
            ends = end_errors(some)
            mean = sum(map(abs, ends)) / len(ends) if ends else None
            row = {"group": kind, "label": label, "end_error": mean}
            laws[law].append(row | asdict(backtest.summarise(some, tolerance)))
        calibration[law] = {f"{level:g}": backtest.calibrate(own, level) for level in (0.5, 0.8, 0.9)}
    return {"laws": laws, "calibration": calibration, "trials": [asdict(trial) for trial in trials]}


def figure(trials: list[Trial], path: Path) -> None:
    """ln(predicted / true) against the horizon, a colour per law, the trials without a prediction at the top edge."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    drawing, axes = plt.subplots(figsize=(7, 4))
    top = 2.0
    for law in dict.fromkeys(trial.law for trial in trials):
        own = [trial for trial in trials if trial.law == law]
        heights = [math.log(t.predicted / t.tokens) if t.predicted is not None else top for t in own]
        axes.scatter([t.horizon for t in own], [max(min(h, top), -top) for h in heights], s=12, alpha=0.6, label=law)
    axes.axhline(0.0, color="0.5", linewidth=0.8)
    axes.set(xscale="log", xlabel="true tokens / tokens seen", ylabel="ln(predicted / true tokens)", ylim=(-2.1, 2.1))
    axes.legend(title="law", frameon=False)
    drawing.tight_layout()
    drawing.savefig(path)
    plt.close(drawing)
