"""How good would the answers have been? Hide the end of runs that are known, predict it, and compare.

A trial cuts a series, asks for a target that the hidden part did reach, and keeps the error, the intervals and the
verdict. `summarise` counts them by law and horizon; `calibrate` turns the errors of other runs into an interval.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from tokenaxis.laws import seed, seed_sweep
from tokenaxis.laws.answers import LEVELS, FitReport, TargetAnswer
from tokenaxis.laws.rate import CONSTANT, rate_of
from tokenaxis.laws.steps import tokens_to_step
from tokenaxis.series import LossSeries
from tokenaxis.stability import FORBIDDING
from tokenaxis.targets import answer

#: half-width in ln(tokens) of the rows whose robust line gives the true loss at a point: constant rate, changing rate
TRUTH_WIDTH, TRUTH_WIDTH_DECAY = 0.12, 0.03
#: where the targets of a cut lie in its hidden part
PLACES = (0.25, 0.5, 0.97)
#: a run must have this many times its warm-up before a cut
WARMUPS = 3.0
#: share of the tokens at the end over which the end loss is averaged
END_SHARE = 0.02


@dataclass(frozen=True)
class Trial:
    """One prediction about a hidden truth.

    Attributes:
        run: name of the run. family: group of related runs. law: as asked for. answered_by: the law that answered.
        hidden: share of the run that was hidden. horizon: true tokens over seen tokens.
        target: loss. tokens: true tokens. predicted: tokens, or None.
        intervals: level -> whether it holds the truth; empty where the law has none.
        standard_error: of ln(predicted), or None.
        verdict: verdict of the stability rule (for law seed, of the reference's own sweep).
        end_error: predicted minus true loss at the end of the run; None where the law has no prediction of it.
        status: of the answer.
    """

    run: str
    family: str
    law: str
    answered_by: str | None
    hidden: float
    horizon: float
    target: float
    tokens: float
    predicted: float | None
    intervals: dict[str, bool]
    standard_error: float | None
    verdict: str
    end_error: float | None
    status: str

    @property
    def error(self) -> float:
        """|ln(predicted / true)|; infinite where nothing was predicted."""
        return math.inf if self.predicted is None else abs(math.log(self.predicted / self.tokens))


def cut(series: LossSeries, tokens: float) -> LossSeries:
    """The series as it stood when `tokens` had been consumed."""
    rows = int(np.searchsorted(series.tokens, tokens, "right"))
    names = ("step", "tokens", "loss", "tokens_per_step")
    kept: dict[str, Any] = {name: getattr(series, name)[:rows] for name in names}
    return replace(series, lr=None if series.lr is None else series.lr[:rows], nonfinite_tail=0, **kept)


def true_loss(series: LossSeries, tokens: float, half_width: float) -> float:
    """Loss of the run at `tokens`: a robust line in ln(tokens) over the rows around it."""
    first = int(np.searchsorted(series.tokens, tokens * math.exp(-half_width)))
    last = int(np.searchsorted(series.tokens, tokens * math.exp(half_width), "right"))
    while last - first < 4 and (first > 0 or last < len(series.tokens)):
        first, last = max(first - 1, 0), min(last + 1, len(series.tokens))
    position, loss = np.log(np.maximum(series.tokens[first:last], 1.0) / tokens), series.loss[first:last]
    weight = np.ones(len(loss))
    for _ in range(3):
        slope, level = np.polyfit(position, loss, 1, w=np.sqrt(weight))
        size = np.abs(loss - level - slope * position)
        weight = np.minimum(1.0, 2.0 * 1.4826 * float(np.median(size)) / np.maximum(size, 1e-12))
    return float(level)


def with_plan_of_the_log(series: LossSeries) -> LossSeries:
    """The series with its own logged rates declared as its plan: a user knows the schedule of a run from the start."""
    if series.lr_schedule is not None or series.lr is None:
        return series
    points = [[float(step), float(rate)] for step, rate in zip(series.step, series.lr, strict=True)]
    schedule = {"kind": "table", "points": points}
    return replace(series, lr_schedule=schedule, planned_tokens=series.planned_tokens or float(series.tokens[-1]))


def constant_stretch(series: LossSeries) -> LossSeries | None:
    """The part of a run before its learning rate first changes, planned to stay so; None if too little is left."""
    rate = rate_of(series)
    if rate.state == "unknown":
        return None
    warm = 0 if series.warmup_end_step is None else int(np.searchsorted(series.step, series.warmup_end_step))
    moved = np.flatnonzero(np.abs(rate.ratio[warm:] - 1.0) > CONSTANT)
    rows = len(series.tokens) if not len(moved) else warm + int(moved[0])
    if rows < 30:
        return None
    stretch = cut(series, float(series.tokens[rows - 1]))
    warm_steps = (series.lr_schedule or {}).get("warmup_steps")
    schedule = {"kind": "constant"} | ({"warmup_steps": warm_steps} if warm_steps else {})
    return replace(stretch, lr_schedule=schedule, planned_tokens=None)


def horizon_trials(
    name: str, family: str, series: LossSeries, law: str, params: dict[str, Any], tolerance: float,
    horizons: Iterable[float],
) -> Iterator[Trial]:  # fmt: skip
    """Trials at given horizons on a stretch of constant rate, from its end and from 60% and 80% of it."""
    end = float(series.tokens[-1])
    for horizon in horizons:
        for share in (0.6, 0.8, 1.0):
            seen = share * end / horizon
            if seen >= _earliest(series):
                target = true_loss(series, horizon * seen, TRUTH_WIDTH)
                yield from _trials(name, family, series, law, params, tolerance, seen, [(horizon * seen, target)])


def hidden_trials(
    name: str, family: str, series: LossSeries, law: str, params: dict[str, Any], tolerance: float,
    hidden: Iterable[float],
) -> Iterator[Trial]:  # fmt: skip
    """Trials that hide the last shares of a run."""
    if series.inside_warmup:
        return
    end = float(series.tokens[-1])
    width = TRUTH_WIDTH if rate_of(series).constant else TRUTH_WIDTH_DECAY
    for share in hidden:
        seen = (1.0 - share) * end
        if seen >= _earliest(series):
            places = [seen + place * (end - seen) for place in PLACES]
            truths = [(tokens, true_loss(series, tokens, width)) for tokens in places]
            yield from _trials(name, family, series, law, params, tolerance, seen, truths)


def _earliest(series: LossSeries) -> float:
    """A cut before this many tokens has seen too little past the warm-up."""
    warm = (
        0.0 if series.warmup_end_step is None else float(np.interp(series.warmup_end_step, series.step, series.tokens))
    )
    return WARMUPS * max(warm, float(series.tokens[0]))  # a log that starts late had its warm-up before


def _trials(
    name: str, family: str, series: LossSeries, law: str, params: dict[str, Any], tolerance: float, seen: float,
    truths: list[tuple[float, float]],
) -> Iterator[Trial]:  # fmt: skip
    past = cut(series, seen)
    if len(past.tokens) < 5:
        return
    end = float(series.tokens[-1])
    report = answer(past, params | {"law": law, "targets": [target for _, target in truths]})
    judge = _verdicts(past, report, params, tolerance, law)
    end_error = _end_error(series, report)
    for (tokens, target), found in zip(truths, report.targets, strict=True):
        if found.status != "reached":  # noise may put a target near the cut into the part that was seen
            yield Trial(
                run=name,
                family=family,
                law=law,
                answered_by=found.law,
                hidden=1.0 - seen / end,
                horizon=tokens / seen,
                target=target,
                tokens=tokens,
                predicted=found.tokens,
                intervals=_held(found, tokens),
                standard_error=_standard_error(found),
                verdict=judge(found),
                end_error=end_error,
                status=found.status,
            )


def _held(found: TargetAnswer, tokens: float) -> dict[str, bool]:
    """level -> does the interval hold the truth? An unbounded side holds everything; no interval, no answer."""
    if found.intervals is None:
        return {} if found.law == "seed" else {f"{level:g}": False for level in LEVELS}
    return {
        level: (low is None or low <= tokens) and (high is None or tokens <= high)
        for level, (low, high) in found.intervals.items()
    }


def _standard_error(found: TargetAnswer) -> float | None:
    """Half-width of the widest level in ln(tokens) over its quantile, where the interval is bounded."""
    if found.intervals is None or found.tokens is None:
        return None
    high = found.intervals["0.9"][1]
    return None if high is None else max(math.log(high / found.tokens), 1e-9) / 1.6448536269514722


def _end_error(series: LossSeries, report: FitReport) -> float | None:
    """Predicted minus true mean loss over the last 2% of the tokens."""
    loss_at = getattr(report.fitted, "loss_at", None)
    if loss_at is None:
        return None
    last = series.tokens > (1.0 - END_SHARE) * series.tokens[-1]
    return float(np.mean(loss_at(series.tokens[last])) - np.mean(series.loss[last]))


def _verdicts(
    past: LossSeries, report: FitReport, params: dict[str, Any], tolerance: float, law: str
) -> Callable[[TargetAnswer], str]:
    """Verdict of each answer: of the newest window (the rule of the stability stage), or of the reference's sweep."""
    if law != "seed":
        return lambda found: "CONVERGED" if _converged(found, tolerance) else "NOT YET CONVERGED"
    swept = seed_sweep.windows(
        past.step, past.tokens, seed.smoothed_loss(past, params), seed.fit_start(past),
        [t.target for t in report.targets], 300, 500, params["seed"]["min_rows"],
        lambda tokens: tokens_to_step(past, tokens),
    )  # fmt: skip
    return lambda found: seed_sweep.verdict(swept[found.target], 0.05).verdict


def _converged(found: TargetAnswer, tolerance: float) -> bool:
    if found.status != "predicted" or found.interval is None or found.interval[1] is None or found.tokens is None:
        return False
    narrow = math.log(found.interval[1] / found.tokens) <= math.log1p(tolerance)
    return narrow and not set(found.warnings) & set(FORBIDDING)


@dataclass(frozen=True)
class Summary:
    """Trials of one group: count, median and 90% quantile of |ln error|, share without a prediction, share within the
    tolerance, coverage by level, verdicts CONVERGED and how many of them were wrong."""

    trials: int
    median: float | None
    quantile: float | None
    without: float
    within: float
    coverage: dict[str, float]
    converged: int
    wrong: int


def summarise(trials: list[Trial], tolerance: float) -> Summary:
    """Counts of a non-empty group of trials."""
    errors = np.array([trial.error for trial in trials])
    coverage = {}
    for level in (f"{level:g}" for level in LEVELS):
        held = [trial.intervals[level] for trial in trials if trial.intervals]
        if held:
            coverage[level] = float(np.mean(held))
    sure = [trial for trial in trials if trial.verdict == "CONVERGED"]
    limit = math.log1p(tolerance)
    median, quantile = (float(np.quantile(errors, q, method="higher")) for q in (0.5, 0.9))
    return Summary(
        trials=len(trials),
        median=median if math.isfinite(median) else None,
        quantile=quantile if math.isfinite(quantile) else None,
        without=float(np.mean(~np.isfinite(errors))),
        within=float(np.mean(errors <= limit)),
        coverage=coverage,
        converged=len(sure),
        wrong=sum(trial.error > limit for trial in sure),
    )


#: fewest runs for a calibration on the sweep's own
FEWEST_RUNS = 8


def calibrate(trials: list[Trial], level: float, without: str | None = None) -> float | None:
    """Factor on a standard error that makes an interval cover at `level`, from the sweep's own runs; None if too few.

    Split conformal prediction (Vovk et al. 2005; Lei et al. 2018): the ceil((n + 1) level)-th smallest score
    |ln error| / standard error. `without` leaves a run out, for the intervals of that very run.
    """
    scores: dict[str, list[float]] = {}
    for trial in trials:
        if trial.run != without and trial.standard_error is not None:
            scores.setdefault(trial.run, []).append(trial.error / trial.standard_error)
    if len(scores) < FEWEST_RUNS:
        return None
    pooled = np.sort(np.concatenate(list(scores.values())))
    rank = math.ceil((len(pooled) + 1) * level) - 1
    return float(pooled[min(rank, len(pooled) - 1)])


def calibrated_coverage(trials: list[Trial], level: float) -> float | None:
    """Share of trials within calibrated intervals, each run calibrated on the others; None with too few runs."""
    held = []
    for trial in trials:
        if trial.standard_error is None:
            continue
        factor = calibrate(trials, level, without=trial.run)
        if factor is None:
            return None
        held.append(trial.error <= factor * trial.standard_error)
    return float(np.mean(held)) if held else None
