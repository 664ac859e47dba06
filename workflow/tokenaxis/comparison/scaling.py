"""The sweep's runs as points of a scaling law in model size and tokens, and what the law says about budgets."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from tokenaxis.comparison.answers import Answers
from tokenaxis.comparison.curves import Curve
from tokenaxis.comparison.model import RunResult, Sweep
from tokenaxis.comparison.options import Options
from tokenaxis.comparison.quantities import natural
from tokenaxis.comparison.scaling_law import PARAMETERS, ScalingFit, ScalingLaw, fit

#: fewest model sizes, and fewest budgets of tokens, that a law in both can rest on
FEWEST_SIZES, FEWEST_BUDGETS = 3, 3
#: sizes and budgets nearer than this (in ln) are the same one
SAME = 0.02
#: a run whose learning rate decays is over when it stands within this of the lowest last lr / peak lr of the sweep
LR_NEAR_END = 0.15
#: FLOP per parameter and token of Hoffmann et al. 2022: C = 6·N·D
FLOP_PER_PARAMETER_TOKEN = 6.0
#: budgets beyond the sweep's largest that the law is asked about, as multiples of it
BEYOND = (1.0, 3.0, 10.0)
SEED = 0


@dataclass(frozen=True)
class ScalingPoint:
    """One run at its end: parameters, tokens, smoothed loss (nats per token); `reason`: why the fit leaves it out."""

    run: str
    n_params: float | None
    tokens: float | None
    loss: float | None
    reason: str | None = None


@dataclass(frozen=True)
class Budget:
    """The best use of `flop` (6·N·D) by the law; each value with its interval at the comparison's level.

    Attributes:
        n_params, tokens, loss: (value, low, high).
        beyond: flop over the largest of the sweep's runs; above 1 the law is extrapolated.
    """

    flop: float
    n_params: tuple[float, float, float]
    tokens: tuple[float, float, float]
    loss: tuple[float, float, float]
    beyond: float


@dataclass(frozen=True)
class Scaling:
    """The law of a sweep, or the reason why there is none.

    Attributes:
        points: every run, in natural order. size_fact: the fact that N is; "" without one.
        loss_name: the loss that the law is of. fit: None with a `reason`.
        parameters: name -> (value, low, high), see PARAMETER_FIELDS. budgets: smallest first.
        caution: what a reader has to know before believing it, or None.
    """

    points: tuple[ScalingPoint, ...]
    size_fact: str
    loss_name: str | None
    level: float
    fit: ScalingFit | None
    reason: str | None
    parameters: dict[str, tuple[float, float, float]]
    budgets: tuple[Budget, ...]
    caution: str | None = None

    @property
    def used(self) -> list[ScalingPoint]:
        """The points that the law rests on."""
        return [point for point in self.points if point.reason is None]


#: name -> (how it is written, what it is, its value from a law)
PARAMETER_FIELDS: dict[str, tuple[str, str, Callable[[ScalingLaw], float]]] = {
    "irreducible_loss": ("E", "irreducible loss, nats per token", lambda law: law.irreducible_loss),
    "size_coefficient": ("A", "coefficient of size, nats per token at N = 1", lambda law: law.size_coefficient),
    "size_exponent": ("alpha", "exponent of size, no unit", lambda law: law.size_exponent),
    "token_coefficient": ("B", "coefficient of tokens, nats per token at D = 1", lambda law: law.token_coefficient),
    "token_exponent": ("beta", "exponent of tokens, no unit", lambda law: law.token_exponent),
    "allocation": ("beta/(alpha+beta)", "the best N grows as compute to this power", lambda law: law.allocation),
}


def scaling(sweep: Sweep, answers: Answers, curves: dict[str, Curve], options: Options) -> Scaling:
    """Fit the law to one point a run, its end, where three sizes and three budgets of tokens allow it.

    Runs of one loss and of one kind of schedule are used: those with most sizes, then most runs. Of runs whose
    learning rate decays, only finished ones: before its end such a run stands above the law.
    # ASSUME: the runs differ in size, tokens and what goes with them by recipe (batch, peak learning rate), no more.
    """
    import numpy as np

    size_fact = _size_fact(sweep)
    points = _points(sweep, curves, size_fact)
    used = [point for point in points if point.reason is None]
    reason = _too_few(used, size_fact)
    loss_name = curves[used[0].run].loss_name if used else None
    if reason is not None:
        return Scaling(tuple(points), size_fact, loss_name, answers.level, None, reason, {}, ())
    columns = ([point.n_params for point in used], [point.tokens for point in used], [point.loss for point in used])
    n_params, tokens, loss = (np.array(column, dtype=np.float64) for column in columns)
    found = fit(
        n_params, tokens, loss, huber=options.scaling_huber, resamples=options.scaling_resamples, seed=SEED
    )  # fmt: skip
    parameters = {name: _with_interval(value, found, answers.level) for name, (_, _, value) in PARAMETER_FIELDS.items()}
    flop = FLOP_PER_PARAMETER_TOKEN * n_params * tokens
    budgets = tuple(_budget(float(amount), float(flop.max()), found, answers.level) for amount in _amounts(flop))
    return Scaling(
        tuple(points), size_fact, loss_name, answers.level, found, None, parameters, budgets,
        _caution(found, parameters),
    )  # fmt: skip


def _size_fact(sweep: Sweep) -> str:
    """The count of parameters that most runs have; of equals the one that counts all of them (Hoffmann et al. 2022)."""
    counts = {
        name: sum(_size(run, name) is not None for run in sweep.runs) for name in ("n_params", "n_params_nonembedding")
    }
    best = max(counts, key=lambda name: (counts[name], name == "n_params"))
    return best if counts[best] else ""


def _size(run: RunResult, fact: str) -> float | None:
    value = ((run.conventions.get("facts") or {}).get(fact) or {}).get("value")
    return float(value) if isinstance(value, int | float) and value > 0 else None


def _points(sweep: Sweep, curves: dict[str, Curve], size_fact: str) -> list[ScalingPoint]:
    runs = sorted(sweep.runs, key=lambda run: natural(run.id))
    groups: dict[tuple[Any, ...], list[RunResult]] = {}
    for run in runs:
        if _size(run, size_fact) is not None and len(curves[run.id].smooth.tokens):
            groups.setdefault(_kind(run, curves[run.id]), []).append(run)
    chosen = max(
        groups.values(), key=lambda group: (len({_size(run, size_fact) for run in group}), len(group)), default=[]
    )
    ends = [lr["last"] / lr["peak"] for run in chosen if (lr := _decaying(run))]
    finished = min(ends, default=0.0) + LR_NEAR_END
    alike = {run.id for run in chosen}
    return [_point(run, curves[run.id], size_fact, alike, finished) for run in runs]


def _kind(run: RunResult, curve: Curve) -> tuple[Any, ...]:
    return curve.loss_name or "", (run.axis_meta.get("lr") or {}).get("constant_after_warmup")


def _decaying(run: RunResult) -> dict[str, Any] | None:
    lr = run.axis_meta.get("lr") or {}
    return lr if lr.get("constant_after_warmup") is False and lr.get("peak") and lr.get("last") is not None else None


def _point(run: RunResult, curve: Curve, size_fact: str, alike: set[str], finished: float) -> ScalingPoint:
    n_params = _size(run, size_fact)
    if not len(curve.smooth.tokens):
        return ScalingPoint(run.id, n_params, None, None, "no loss")
    tokens, loss = float(curve.smooth.tokens[-1]), float(curve.smooth.value[-1])
    reason = None
    verdicts = {entry.get("verdict") for entry in run.stability.get("verdicts") or []}
    if n_params is None:
        reason = "its number of parameters is not known"
    elif run.id not in alike:
        reason = "another loss or another kind of schedule than the runs of the fit"
    elif "DIVERGED" in verdicts:
        reason = "it diverged"
    elif (lr := _decaying(run)) and lr["last"] / lr["peak"] > finished:
        reason = "it stopped before its learning rate had come down"
    return ScalingPoint(run.id, n_params, tokens, loss, reason)


def _distinct(values: list[float]) -> int:
    logs = sorted(math.log(value) for value in values)
    return sum(index == 0 or value - logs[index - 1] > SAME for index, value in enumerate(logs))


def _too_few(used: list[ScalingPoint], size_fact: str) -> str | None:
    if not size_fact:
        return "no run's number of parameters is known: declare `model:` or n_params"
    sizes = _distinct([point.n_params for point in used if point.n_params])
    budgets = _distinct([point.tokens for point in used if point.tokens])
    if sizes < FEWEST_SIZES:
        return f"needs runs of {FEWEST_SIZES} model sizes; there are {sizes}"
    if budgets < FEWEST_BUDGETS:
        return f"needs runs that end at {FEWEST_BUDGETS} different numbers of tokens; there are {budgets}"
    if len(used) <= PARAMETERS:
        return f"needs at least {PARAMETERS + 1} runs for its {PARAMETERS} parameters; there are {len(used)}"
    return None


def _with_interval(value: Callable[[ScalingLaw], float], found: ScalingFit, level: float) -> tuple[float, float, float]:
    """(value of the fit, low, high): percentiles of the resamples, opened to hold the fit itself."""
    import numpy as np

    centre = float(value(found.law))
    drawn = np.array([value(law) for law in found.resamples])
    if not len(drawn):
        return centre, centre, centre
    low, high = np.quantile(drawn, [(1 - level) / 2, (1 + level) / 2])
    return centre, min(float(low), centre), max(float(high), centre)


def _amounts(flop: Any) -> list[float]:
    """Three budgets over the sweep's range, then beyond it."""
    low, high = float(flop.min()), float(flop.max())
    return [low, math.sqrt(low * high), *(high * factor for factor in BEYOND)]


def _budget(flop: float, largest: float, found: ScalingFit, level: float) -> Budget:
    def best_loss(law: ScalingLaw) -> float:
        n_params, tokens = law.optimum(flop, FLOP_PER_PARAMETER_TOKEN)
        return float(law.loss(n_params, tokens))

    return Budget(
        flop,
        _with_interval(lambda law: law.optimum(flop, FLOP_PER_PARAMETER_TOKEN)[0], found, level),
        _with_interval(lambda law: law.optimum(flop, FLOP_PER_PARAMETER_TOKEN)[1], found, level),
        _with_interval(best_loss, found, level),
        flop / largest,
    )


def _caution(found: ScalingFit, parameters: dict[str, tuple[float, float, float]]) -> str | None:
    if found.at_bounds:
        names = " and ".join(name.replace("_", " ") for name in found.at_bounds)
        return f"the runs do not determine the {names}: numbers outside their range mean little"
    loose = [
        name for name in ("size_exponent", "token_exponent") if parameters[name][2] > 3 * max(parameters[name][1], 1e-9)
    ]
    if loose:
        names = " and ".join(name.replace("_", " ") for name in loose)
        return f"the runs determine the {names} to no better than a factor of three: more sizes or budgets would help"
    return None
