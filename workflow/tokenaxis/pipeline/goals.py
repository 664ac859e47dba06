"""What scripts/backtest_goals.py does: back-tests on public logs, each figure beside its goal and the reference's."""

from __future__ import annotations

import math
from argparse import Namespace
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from tokenaxis import backtest
from tokenaxis import params as parameters
from tokenaxis.backtest import Trial
from tokenaxis.errors import TokenAxisError
from tokenaxis.pipeline import backtesting

#: tolerance of CONVERGED that the goals speak of
TOLERANCE = 0.25
#: horizon -> largest median |ln(predicted / true tokens)| on stretches of constant learning rate
ERRORS = {1.25: 0.02, 1.5: 0.06, 2.0: 0.12, 3.0: 0.20}
#: shares of 90% intervals that hold the truth, pooled; and at least in every family
POOLED, FAMILY = (0.85, 0.95), 0.75
#: largest share of CONVERGED that is wrong; with half of a run hidden: nats of mean end-loss error, share within 25%
WRONG, END_LOSS, WITHIN = 0.05, 0.03, 0.80
#: shares hidden of runs whose learning rate decays; the goals for crossings and end losses are about the middle one
HIDDEN = (0.3, 0.5, 0.7)


@dataclass(frozen=True)
class Family:
    """Logs of one public family.

    Attributes:
        name: as the tables call it. patterns: its files below the folder of logs. sweep: whose declarations it needs.
        declared: options of scripts/backtest.py. constant: only the stretch of constant rate, at the goals' horizons.
        own: logs of the checkout, which the goals do not speak of.
    """

    name: str
    patterns: tuple[str, ...]
    declared: dict[str, Any] = field(default_factory=dict)
    sweep: str | None = None
    constant: bool = False
    own: bool = False


_MPL = {"tokens_per_step": 524288}
_MODDED = _MPL | {"planned_steps": 5100, "lr_schedule": "{kind: wsd, decay_steps: 1450, warmup_steps: 256}"}
FAMILIES = (
    Family("multipowerlaw", ("multipowerlaw/csv_*/constant*",), _MPL, constant=True),
    Family("modded-nanogpt", ("modded-nanogpt/*",), _MODDED, constant=True),
    Family("tiny-gpt (own)", ("sweeps/tiny-gpt/*.csv",), sweep="tiny-gpt", constant=True, own=True),
    Family("multipowerlaw decays", ("multipowerlaw/csv_*/cosine*", "multipowerlaw/csv_*/wsd*"), _MPL),
    Family("modded-nanogpt decays", ("modded-nanogpt/*",), _MODDED),
    Family("build-nanogpt", ("build-nanogpt/*",), {"plan": "declared"}, sweep="build-nanogpt"),
    Family("olmo-ladder", ("olmo-ladder/*",)),
    Family("llm.c", ("llmc/gpt2_train.11685414*",)),
)


@dataclass(frozen=True)
class Line:
    """One row of the table: a figure, the reference's, the goal in words, and whether it is met (None: no goal)."""

    label: str
    ours: str
    reference: str = ""
    goal: str = ""
    met: bool | None = None

    def text(self) -> str:
        met = "" if self.met is None else "OK" if self.met else "MISSED"
        return f"{self.label:58} {self.ours:>16} {self.reference:>16}  {self.goal:14} {met}".rstrip()


def run(args: Namespace, say: Callable[[str], None]) -> int:
    """Print the table. -> 0, or 1 if a goal is missed.

    Raises:
        TokenAxisError: the public logs are not there.
    """
    logs = Path(args.logs)
    if not logs.is_dir():
        raise TokenAxisError("the public logs are absent, and the project does not ship them", file=str(logs),
                             remedy="put them there, or name their folder with --logs")  # fmt: skip
    path = parameters.find(args.params)
    params: dict[str, Any] = parameters.validate(parameters.load_yaml(path), "params.schema.json", str(path))
    found: dict[str, list[Trial]] = {}
    for family in FAMILIES:
        root = parameters.HOME if family.own else logs
        files = sorted(str(file) for pattern in family.patterns for file in root.glob(pattern))
        if not files:
            raise TokenAxisError(f"no log matches {' or '.join(family.patterns)}", file=str(root))
        found[family.name] = _trials(family, files, params, args.reference)
    missed = 0
    say(f"{'':58} {'tokenaxis':>16} {'reference':>16}  goal")
    for line in lines(found):
        say(line.text())
        missed += line.met is False
    say(f"{missed} missed")
    return 1 if missed else 0


def _trials(family: Family, files: list[str], params: dict[str, Any], reference: bool) -> list[Trial]:
    defaults = {"tokens_per_step": None, "planned_steps": None, "lr_schedule": None, "plan": "log", "loss": None}
    options = Namespace(
        logs=files, constant=family.constant, hide=list(HIDDEN), sweep=family.sweep, **defaults | family.declared
    )
    trials: list[Trial] = []
    for one in backtesting.runs_of(options, params, say=None):
        for law in ("auto", "seed") if reference else ("auto",):
            trials += backtesting.of_run(replace(one, family=family.name), law, TOLERANCE, options)
    return trials


def lines(found: dict[str, list[Trial]]) -> Iterator[Line]:
    """The table's rows. `found`: name of a family -> its trials under both laws."""
    constant = [family for family in FAMILIES if family.constant]
    public = [trial for family in constant if not family.own for trial in found[family.name]]
    for horizon, goal in ERRORS.items():
        label = f"constant rate, median |ln error| of tokens at horizon {horizon:g}"
        yield _errors(label, _at(public, horizon), goal)
        for family in constant:
            yield _errors(f"  {family.name}", _at(found[family.name], horizon))
    changing = [family for family in FAMILIES if not family.constant]
    decays = [trial for family in changing for trial in found[family.name] if round(trial.hidden, 2) == 0.5]
    yield _end_losses("decay hidden, half seen: mean |error| of end loss, nats", decays, END_LOSS)
    for family in changing:
        yield _end_losses(f"  {family.name}", [trial for trial in decays if trial.family == family.name])
    yield _within("decay hidden, half seen: crossings within 25%", decays, WITHIN)
    for family in changing:
        yield _within(f"  {family.name}", [trial for trial in decays if trial.family == family.name])
    everything = [trial for family in FAMILIES if not family.own for trial in found[family.name]]
    yield _coverage("held by nominal 50 / 80 / 90% intervals, pooled", everything, *POOLED)
    for family in FAMILIES:
        yield _coverage(f"  {family.name}", found[family.name], FAMILY, 1.0)
    yield _verdicts("verdicts CONVERGED at 25%, wrong of all", everything, WRONG)
    for family in FAMILIES:
        yield _verdicts(f"  {family.name}", found[family.name])


def _at(trials: list[Trial], horizon: float) -> list[Trial]:
    return [trial for trial in trials if math.isclose(trial.horizon, horizon, rel_tol=0.01)]


def _by_law(trials: list[Trial]) -> tuple[list[Trial], list[Trial]]:
    return [t for t in trials if t.law != "seed"], [t for t in trials if t.law == "seed"]


def _errors(label: str, trials: list[Trial], goal: float | None = None) -> Line:
    def median(some: list[Trial]) -> float | None:
        return backtest.summarise(some, TOLERANCE).median if some else None

    def shown(some: list[Trial]) -> str:
        value = median(some)
        return "" if not some else f"{'none' if value is None else f'{value:.3f}'} ({len(some)})"

    ours, theirs = _by_law(trials)
    value = median(ours)
    met = None if goal is None else value is not None and value <= goal
    return Line(label, shown(ours), shown(theirs), "" if goal is None else f"<= {goal:g}", met)


def _end_losses(label: str, trials: list[Trial], goal: float | None = None) -> Line:
    def mean(some: list[Trial]) -> float | None:
        errors = backtesting.end_errors(some)
        return sum(map(abs, errors)) / len(errors) if errors else None

    ours, theirs = map(mean, _by_law(trials))
    shown = ["" if value is None else f"{value:.4f}" for value in (ours, theirs)]
    met = None if goal is None else ours is not None and ours <= goal
    return Line(label, shown[0], shown[1], "" if goal is None else f"<= {goal:g}", met)


def _within(label: str, trials: list[Trial], goal: float | None = None) -> Line:
    shares = [backtest.summarise(some, TOLERANCE).within if some else None for some in _by_law(trials)]
    shown = ["" if share is None else f"{share:.1%}" for share in shares]
    met = None if goal is None else shares[0] is not None and shares[0] >= goal
    return Line(label, shown[0], shown[1], "" if goal is None else f">= {goal:.0%}", met)


def _coverage(label: str, trials: list[Trial], least: float, most: float) -> Line:
    ours, theirs = _by_law(trials)
    held = backtest.summarise(ours, TOLERANCE).coverage
    shown = " / ".join(f"{100 * held[level]:.0f}" for level in ("0.5", "0.8", "0.9"))
    goal = f">= {least:.0%}" if most == 1.0 else f"{least:.0%} to {most:.0%}"
    return Line(label, shown, "no interval" if theirs else "", goal, least <= held["0.9"] <= most)


def _verdicts(label: str, trials: list[Trial], goal: float | None = None) -> Line:
    ours, theirs = (backtest.summarise(some, TOLERANCE) if some else None for some in _by_law(trials))
    shown = ["" if found is None else f"{found.wrong} of {found.converged}" for found in (ours, theirs)]
    met = None if goal is None or ours is None else ours.wrong <= goal * ours.converged
    return Line(label, shown[0], shown[1], "" if goal is None else f"<= {goal:.0%}", met)
