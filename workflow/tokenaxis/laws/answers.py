"""One target of one run: reached inside the log, predicted beyond it, or why neither; and the report over all."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from tokenaxis.crossing import Crossing, dips_below, first_passage, local_crossing
from tokenaxis.errors import Notice
from tokenaxis.laws.base import LEVELS, Fitted, NotFitted, Prediction
from tokenaxis.laws.normal import two_sided
from tokenaxis.laws.steps import tokens_to_step, tokens_to_steps
from tokenaxis.series import LossSeries

Interval = tuple[float | None, float | None]


@dataclass(frozen=True)
class TargetAnswer:
    """One target of one run; fields as in docs/artifacts.md (fits)."""

    target: float
    status: str
    step: float | None = None
    tokens: float | None = None
    interval: Interval | None = None
    interval_level: float | None = None
    intervals: dict[str, Interval] | None = None
    step_interval: Interval | None = None
    step_intervals: dict[str, Interval] | None = None
    law: str | None = None
    horizon: float | None = None
    reached_by_end: float | None = None
    crossed_back: bool = False
    reason: str | None = None
    warnings: tuple[str, ...] = ()

    def as_dict(self) -> dict[str, Any]:
        """JSON-ready."""
        out = dict(vars(self))
        for key in ("interval", "step_interval"):
            out[key] = None if out[key] is None else list(out[key])
        for key in ("intervals", "step_intervals"):
            if out[key] is not None:
                out[key] = {level: list(bounds) for level, bounds in out[key].items()}
        out["warnings"] = list(self.warnings)
        return out


@dataclass(frozen=True)
class FitReport:
    """The `fits` artifact of one run, without schema, fingerprint and run.

    `fitted` is the law itself; it is no part of the artifact.
    """

    loss: str | None
    loss_reason: str
    rows: int
    observed: dict[str, float | None]
    law: str | None
    law_reason: str
    fit_start_step: int | None
    fit: dict[str, Any] | None
    fit_not_available: str | None
    end: dict[str, Any] | None
    targets: tuple[TargetAnswer, ...]
    warnings: tuple[Notice, ...]
    fitted: Fitted | NotFitted | None = field(default=None, compare=False, repr=False)

    def as_dict(self) -> dict[str, Any]:
        """JSON-ready content of fits/<run>.json."""
        out = {name: getattr(self, name) for name in self.__dataclass_fields__ if name != "fitted"}
        out["targets"] = [target.as_dict() for target in self.targets]
        out["warnings"] = [notice.as_dict() for notice in self.warnings]
        return out


@dataclass
class Answering:
    """Answers the targets of one series one by one, and collects warnings in words on the way.

    Attributes:
        series: the series. params: the `fits` section.
        fitted: the law, or why there is none.
        curve: (rows,) smoothed losses.
        local: crossings by the local fit (else first passage of `curve`).
        widest: half-width in ln(tokens) of a local fit. noise: sd of row-to-row noise.
        notices: what the answers have to say.
    """

    series: LossSeries
    params: dict[str, Any]
    fitted: Fitted | NotFitted
    curve: np.ndarray
    local: bool
    widest: float
    noise: float
    notices: list[Notice] = field(default_factory=list)

    def answer(self, target: float) -> TargetAnswer:
        """Where `target` is reached."""
        codes: list[str] = []
        if self.local:
            self._note_dips(target, codes)
            series = self.series
            crossing = local_crossing(series.tokens, series.loss, self.curve, target, self.widest, self.noise)
        else:
            crossing = self._passage(target)
        if crossing is not None:
            return self._reached(target, crossing, codes)
        if isinstance(self.fitted, NotFitted):
            codes.insert(0, self.fitted.code)
            return TargetAnswer(target, "not_available", reason=self.fitted.reason, warnings=tuple(codes))
        return self._predicted(target, self.fitted, self.fitted.predict(target), codes)

    def _note(self, code: str, target: float, message: str, codes: list[str]) -> None:
        codes.append(code)
        self.notices.append(Notice(code, f"target {target:g}: {message}"))

    def _note_dips(self, target: float, codes: list[str]) -> None:
        dips = dips_below(self.series.loss, target, self.noise)
        if len(dips):
            first = int(self.series.step[dips[0]])
            self._note(
                "dip", target, f"single rows dip below it ({len(dips)}, first at step {first}); not counted", codes
            )

    def _passage(self, target: float) -> Crossing | None:
        found = first_passage(self.series.step, self.series.tokens, self.curve, target)
        if found is None:
            return None
        later = self.curve[int((self.curve <= target).argmax()) :]
        return Crossing(
            min(found[1], float(self.series.tokens[-1])),
            0.0,
            None,
            None,
            bool((later > target).any()),
            bool(self.curve[0] <= target),
        )

    def _reached(self, target: float, crossing: Crossing, codes: list[str]) -> TargetAnswer:
        if crossing.below_at_start:
            reason = "below the target from the first logged row on: it was reached before the log, if at all"
            self._note("below_at_start", target, reason, codes)
            return TargetAnswer(target, "not_available", reason=reason, warnings=tuple(codes))
        if crossing.crossed_back:
            self._note("crossed_back", target, "the smoothed loss is back above it later", codes)
        last = float(self.series.tokens[-1])
        interval, level, intervals = None, None, None
        if crossing.standard_error > 0.0 or crossing.low is not None:
            level = self.params["interval_level"]

            def interval_at(level: float) -> Interval:
                low, high = crossing.interval(two_sided(level))
                return low, min(high, max(last, crossing.tokens))

            interval, intervals = interval_at(level), _levels(interval_at)
        return TargetAnswer(
            target,
            "reached",
            step=tokens_to_step(self.series, crossing.tokens),
            tokens=crossing.tokens,
            interval=interval,
            interval_level=level,
            intervals=intervals,
            step_interval=self._steps(interval),
            step_intervals=self._steps_at(intervals),
            horizon=crossing.tokens / last if last > 0 else None,
            crossed_back=crossing.crossed_back,
            warnings=tuple(codes),
        )

    def _steps(self, interval: Interval | None) -> Interval | None:
        steps = self._steps_at(None if interval is None else {"": interval})
        return None if steps is None else steps[""]

    def _steps_at(self, intervals: dict[str, Interval] | None) -> dict[str, Interval] | None:
        """The same intervals in steps, all in one go."""
        if intervals is None:
            return None
        tokens = [math.nan if bound is None else bound for bounds in intervals.values() for bound in bounds]
        steps = [None if step != step else step for step in tokens_to_steps(self.series, np.array(tokens)).tolist()]
        return {level: (steps[2 * i], steps[2 * i + 1]) for i, level in enumerate(intervals)}

    def _predicted(self, target: float, fitted: Fitted, found: Prediction, codes: list[str]) -> TargetAnswer:
        for notice in found.warnings:
            self._note(notice.code, target, notice.message, codes)
        codes += [notice.code for notice in fitted.warnings]
        horizon, interval, level, intervals = None, None, None, None
        if found.tokens is not None:
            horizon = found.tokens / float(self.series.tokens[-1])
            if horizon > self.params["extrapolation_warn_factor"]:
                message = f"predicted at {horizon:.1f} times the observed tokens"
                self._note("beyond_warn_factor", target, message, codes)
            if found.interval_at is not None and found.high is None and horizon > self.params["extrapolation_limit"]:
                return self._not_identified(target, fitted, found, horizon, codes)
            if found.interval_at is not None:
                interval, level = (found.low, found.high), self.params["interval_level"]
                intervals = _levels(found.interval_at)
        return TargetAnswer(
            target,
            found.status,
            step=None if found.tokens is None else tokens_to_step(self.series, found.tokens),
            tokens=found.tokens,
            interval=interval,
            interval_level=level,
            intervals=intervals,
            step_interval=self._steps(interval),
            step_intervals=self._steps_at(intervals),
            law=found.law or fitted.law,
            horizon=horizon,
            reached_by_end=found.reached_by_end,
            reason=found.reason,
            warnings=tuple(dict.fromkeys(codes)),
        )

    def _not_identified(
        self, target: float, fitted: Fitted, found: Prediction, horizon: float, codes: list[str]
    ) -> TargetAnswer:
        """A number far beyond the data, with no upper bound, is no answer: the lower bound is said in words."""
        reason = f"not identified: the law says {horizon:,.0f} times the observed tokens and bounds nothing from above"
        if found.low is not None:
            reason += f"; it takes at least {found.low:.3g} tokens at {self.params['interval_level']:.0%}"
        codes.append("not_identified")
        self._note("not_identified", target, reason, codes)
        return TargetAnswer(
            target,
            "not_available",
            law=found.law or fitted.law,
            reached_by_end=found.reached_by_end,
            reason=reason,
            warnings=tuple(dict.fromkeys(codes)),
        )


def _levels(interval_at: Callable[[float], Interval]) -> dict[str, Interval]:
    """Intervals at every level of LEVELS, by its text ("0.9")."""
    return {f"{level:g}": interval_at(level) for level in LEVELS}
