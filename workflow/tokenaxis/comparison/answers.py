"""Runs x targets: what each run says about each target, and how the runs compare."""

from __future__ import annotations

import functools
import math
from collections.abc import Collection
from dataclasses import dataclass, field, replace
from typing import Any

from tokenaxis.comparison.model import RunResult, Sweep
from tokenaxis.comparison.quantities import natural, plural
from tokenaxis.errors import Notice, TokenAxisError

STATUSES = ("reached", "predicted", "unreachable", "not_available")


@dataclass(frozen=True)
class Answer:
    """What one run says about one target: fits.json and stability.json joined, and the ratio to the baseline.

    Tokens are tokens; `low` and `high` are the interval at `level` (`high` None with a `low`: unbounded above).
    `loss` is the column that the target refers to; answers about different losses are not compared. `ratio` is this
    run's tokens over the baseline's. `low_calibrated` and `high_calibrated` are the interval after calibration on the
    sweep's other runs, `calibration` says what it rests on, or why there is none. `reached_by_end` is the probability
    that the target is reached by the run's planned end.
    """

    run: str
    target: float
    status: str
    loss: str | None = None
    step: float | None = None
    tokens: float | None = None
    low: float | None = None
    high: float | None = None
    level: float | None = None
    law: str | None = None
    horizon: float | None = None
    verdict: str | None = None
    verdict_reason: str | None = None
    crossed_back: bool = False
    reason: str | None = None
    warnings: tuple[str, ...] = ()
    ratio: float | None = None
    ratio_low: float | None = None
    ratio_high: float | None = None
    low_calibrated: float | None = None
    high_calibrated: float | None = None
    calibration: str | None = None
    reached_by_end: float | None = None

    @property
    def answered(self) -> bool:
        """Whether there is a number of tokens: reached or predicted."""
        return self.tokens is not None and self.status in ("reached", "predicted")


@dataclass(frozen=True)
class Answers:
    """All answers of a sweep.

    Attributes:
        runs: run ids in natural order.
        targets: targets that any run was asked for, highest loss first (the order in which runs pass them).
        cells: (run, target) -> Answer; a run that was not asked for a target has no cell.
        baseline: run id that ratios refer to, or None when no run has an answer.
        baseline_reason: how the baseline was chosen.
        notices: what a reader should know about the comparison itself.
    """

    runs: tuple[str, ...]
    targets: tuple[float, ...]
    cells: dict[tuple[str, float], Answer]
    baseline: str | None
    baseline_reason: str
    notices: tuple[Notice, ...] = field(default=())

    def only(self, runs: Collection[str]) -> Answers:
        """The same without the other runs; ratios and the baseline stay what they are."""
        kept = {key: cell for key, cell in self.cells.items() if key[0] in runs}
        return replace(self, runs=tuple(run for run in self.runs if run in runs), cells=kept)

    def ranking(self, target: float) -> list[Answer]:
        """Answers with a number of tokens, fewest tokens first; equal tokens: reached first, then by id."""
        return list(self._rankings.get(target, ()))

    @functools.cached_property
    def _rankings(self) -> dict[float, list[Answer]]:
        found: dict[float, list[Answer]] = {}
        for cell in self.cells.values():
            if cell.answered:
                found.setdefault(cell.target, []).append(cell)
        for cells in found.values():
            cells.sort(key=lambda cell: (cell.tokens, cell.status != "reached", cell.run))
        return found

    def leading(self, target: float) -> list[Answer]:
        """The ranking among the runs whose target refers to the same loss: that of most answers, else val_loss."""
        ranking = self.ranking(target)
        groups = sorted({cell.loss or "" for cell in ranking}, reverse=True)
        most = max(groups, key=lambda loss: sum((cell.loss or "") == loss for cell in ranking), default="")
        return [cell for cell in ranking if (cell.loss or "") == most]

    @functools.cached_property
    def level(self) -> float:
        """Coverage of the intervals that the comparison computes itself: that of the answers, or 90% without any."""
        return next((cell.level for cell in self.cells.values() if cell.level is not None), 0.9)

    @functools.cached_property
    def mixed(self) -> bool:
        """Whether targets refer to the training loss in some runs and to the validation loss in others."""
        return len({cell.loss for cell in self.cells.values()}) > 1

    def counts(self, target: float) -> dict[str, int]:
        """How many runs are in each status."""
        found = [self.cells[run, target].status for run in self.runs if (run, target) in self.cells]
        return {status: found.count(status) for status in STATUSES}

    @functools.cached_property
    def focus(self) -> float | None:
        """The target to look at first: the lowest loss among those that most runs have an answer for."""
        answered = {target: len(self.ranking(target)) for target in self.targets}
        most = max(answered.values(), default=0)
        return min((target for target, count in answered.items() if count == most), default=None) if most else None


def collect(sweep: Sweep, baseline: str | None) -> Answers:
    """Join the runs' answers and relate them to the baseline run (an id or a log's name; None: by rule)."""
    in_order = sorted(sweep.runs, key=lambda run: natural(run.id))
    cells = {(run.id, cell.target): cell for run in in_order for cell in answers_of(run)}
    runs = tuple(run.id for run in in_order)
    targets = tuple(sorted({target for _, target in cells}, reverse=True))
    answers = Answers(runs, targets, cells, None, "")
    chosen, reason, notices = choose_baseline(sweep, answers, baseline)
    if chosen is not None:
        cells = {key: related(cell, cells.get((chosen, cell.target))) for key, cell in cells.items()}
    return replace(
        answers, cells=cells, baseline=chosen, baseline_reason=reason, notices=notices + _mixed_losses(sweep)
    )


def answers_of(run: RunResult) -> list[Answer]:
    """A run's answers by themselves: no ratio, no calibration."""
    verdicts = {entry["target"]: entry for entry in run.stability.get("verdicts") or []}
    return [
        _answer(run.id, run.fits.get("loss"), entry, verdicts.get(entry["target"], {}))
        for entry in run.fits.get("targets") or []
    ]


def _answer(run: str, loss: str | None, entry: dict[str, Any], verdict: dict[str, Any]) -> Answer:
    low, high = entry.get("interval") or (None, None)
    return Answer(
        run=run,
        target=float(entry["target"]),
        status=entry["status"],
        loss=loss,
        step=entry.get("step"),
        tokens=entry.get("tokens"),
        low=low,
        high=high,
        level=entry.get("interval_level"),
        law=entry.get("law"),
        horizon=entry.get("horizon"),
        verdict=verdict.get("verdict"),
        verdict_reason=verdict.get("reason"),
        crossed_back=bool(entry.get("crossed_back")),
        reason=entry.get("reason"),
        warnings=tuple(entry.get("warnings") or ()),
        reached_by_end=entry.get("reached_by_end"),
    )


def choose_baseline(sweep: Sweep, answers: Answers, wanted: str | None) -> tuple[str | None, str, tuple[Notice, ...]]:
    """The run that ratios refer to: (id, how it was chosen, notices).

    By rule it is the run that needs the fewest tokens for most of the targets that several runs answer; equal: the one
    that is better at the lowest target, then the first id.

    Raises:
        TokenAxisError: `wanted` is no run and no file of the sweep.
    """
    notices: tuple[Notice, ...] = ()
    if wanted is not None:
        matches = [run.id for run in sweep.runs if wanted == run.id] or [
            run.id for run in sweep.runs if wanted == run.name
        ]
        if matches:
            return matches[0], "chosen in params.yaml (comparison.baseline)", ()
        if all(wanted != entry.get("name") for entry in sweep.refused):
            known = ", ".join(answers.runs[:8]) + (", …" if len(answers.runs) > 8 else "")
            raise TokenAxisError(
                f"comparison.baseline: the sweep has no run {wanted!r}",
                remedy=f"name one of its runs ({known or 'it has none'}) or null",
            )
        notices = (Notice("baseline_refused", f"the baseline {wanted} was refused; another run took its place"),)
    rankings = [ranking for target in answers.targets if (ranking := answers.leading(target))]
    # being first where nobody else was asked is no merit, unless there is nothing else to go by
    firsts = [r[0].run for r in rankings if len(r) > 1] or [r[0].run for r in rankings]
    if not firsts:
        return None, "no run has an answer for any target", notices
    # `firsts` goes from the highest loss to the lowest: a later index is a harder target
    last_first = {run: index for index, run in enumerate(firsts)}
    best = min(set(firsts), key=lambda run: (-firsts.count(run), -last_first[run], run))
    return best, "by rule: the run that needs the fewest tokens for most targets", notices


def related(cell: Answer, baseline: Answer | None) -> Answer:
    """`cell` with its ratio to the baseline's answer, where both refer to the same loss."""
    if baseline is None or not (cell.answered and baseline.answered) or cell.loss != baseline.loss:
        return cell
    value, low, high = ratio(cell, baseline)
    return replace(cell, ratio=value, ratio_low=low, ratio_high=high)


def ratio(numerator: Answer, denominator: Answer) -> tuple[float | None, float | None, float | None]:
    """Tokens of one answer over those of another: (ratio, low, high) at the answers' common level.

    Half-widths are taken in ln(tokens) and added in quadrature, each side by itself, since intervals of predictions
    are symmetric in ln(tokens) at best.
    # ASSUME: errors of two runs are independent; a shared data order would make the true interval narrower.
    """
    if not numerator.tokens or not denominator.tokens:
        return None, None, None
    value = numerator.tokens / denominator.tokens
    if numerator.run == denominator.run:
        return 1.0, None, None
    if numerator.low is None or denominator.low is None or numerator.level != denominator.level:
        return value, None, None
    down = math.hypot(_below(numerator), _above(denominator))
    up = math.hypot(_above(numerator), _below(denominator))
    if not math.isfinite(down):  # the baseline's interval has no upper end: nothing bounds the ratio from below
        return value, None, None
    return value, value * math.exp(-down), value * math.exp(up) if up < 700 else None  # exp overflows past 709


def _below(cell: Answer) -> float:
    return math.log(cell.tokens / cell.low) if cell.tokens and cell.low and cell.low > 0 else math.inf


def _above(cell: Answer) -> float:
    return math.log(cell.high / cell.tokens) if cell.tokens and cell.high else math.inf


def _mixed_losses(sweep: Sweep) -> tuple[Notice, ...]:
    """Train and validation loss differ by an offset: a comparison across them is said to be one."""
    fitted = {str(run.fits["loss"]) for run in sweep.runs if run.fits.get("loss")}
    if len(fitted) < 2:
        return ()
    count = {name: sum(run.fits.get("loss") == name for run in sweep.runs) for name in sorted(fitted)}
    shares = [f"{name} in {plural(number, 'run')}" for name, number in count.items()]
    message = f"targets refer to {' and '.join(shares)}: only runs with the same loss are compared; fits.loss sets one"
    return (Notice("mixed_losses", message),)
