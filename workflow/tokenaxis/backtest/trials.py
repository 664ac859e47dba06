"""Trials: a run is cut, and asked for a target that the hidden part did reach."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from tokenaxis.backtest.runs import Run, cut, true_loss
from tokenaxis.laws import seed, seed_sweep
from tokenaxis.laws.answers import FitReport, TargetAnswer
from tokenaxis.laws.base import LEVELS
from tokenaxis.laws.rate import rate_of
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
        run: name of the run. family: group of related runs. loss: the loss that was fitted.
        law: as asked for. answered_by: the law that answered.
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
    loss: str
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


def horizon_trials(run: Run, law: str, tolerance: float, horizons: Iterable[float]) -> Iterator[Trial]:
    """Trials at given horizons on a stretch of constant rate, from its end and from 60% and 80% of it."""
    for horizon in horizons:
        for share in (0.6, 0.8, 1.0):
            seen = share * run.end / horizon
            series = run.at(seen, law)
            if seen >= _earliest(series):
                target = true_loss(series, horizon * seen, TRUTH_WIDTH)
                yield from _trials(run, series, law, tolerance, seen, [(horizon * seen, target)])


def hidden_trials(run: Run, law: str, tolerance: float, hidden: Iterable[float]) -> Iterator[Trial]:
    """Trials that hide the last shares of a run."""
    for share in hidden:
        seen = (1.0 - share) * run.end
        series = run.at(seen, law)
        if series.inside_warmup or seen < _earliest(series):
            continue
        width = TRUTH_WIDTH if rate_of(series).constant else TRUTH_WIDTH_DECAY
        places = [seen + place * (run.end - seen) for place in PLACES]
        truths = [(tokens, true_loss(series, tokens, width)) for tokens in places]
        yield from _trials(run, series, law, tolerance, seen, truths)


def _earliest(series: LossSeries) -> float:
    """A cut before this many tokens has seen too little past the warm-up."""
    warm = (
        0.0 if series.warmup_end_step is None else float(np.interp(series.warmup_end_step, series.step, series.tokens))
    )
    return WARMUPS * max(warm, float(series.tokens[0]))  # a log that starts late had its warm-up before


def _trials(
    run: Run, series: LossSeries, law: str, tolerance: float, seen: float, truths: list[tuple[float, float]]
) -> Iterator[Trial]:
    past = cut(series, seen)
    if len(past.tokens) < 5:
        return
    params = run.params
    report = answer(past, params | {"law": law, "targets": [target for _, target in truths]})
    judge = _verdicts(past, report, params, tolerance, law)
    end_error = _end_error(series, report)
    for (tokens, target), found in zip(truths, report.targets, strict=True):
        if found.status != "reached":  # noise may put a target near the cut into the part that was seen
            yield Trial(
                run=run.name,
                family=run.family,
                loss=series.name,
                law=law,
                answered_by=found.law,
                hidden=1.0 - seen / run.end,
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
