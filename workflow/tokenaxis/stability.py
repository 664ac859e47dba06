"""Has the prediction settled? The law on every growing window of a run, and a verdict for each target."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass
from importlib import import_module
from typing import TYPE_CHECKING, Any

import numpy as np

from tokenaxis.errors import Notice
from tokenaxis.laws.base import for_loss
from tokenaxis.laws.steps import tokens_to_step, tokens_to_steps
from tokenaxis.laws.window_laws import WindowLaws, window_laws
from tokenaxis.memory import keep_freed
from tokenaxis.series import LossSeries

if TYPE_CHECKING:
    from tokenaxis.laws.seed_sweep import SeedWindow
    from tokenaxis.laws.window_kernel import KernelWindows

#: columns of the table, in order
COLUMNS = (
    "target",
    "window_step",
    "window_tokens",
    "predicted_tokens",
    "predicted_step",
    "low",
    "high",
    "irreducible_loss",
    "coefficient",
    "exponent",
)
#: fewest windows with an answer for a verdict, and newest windows that must all have one
FEWEST_WINDOWS = 3
#: warnings of a fit that forbid CONVERGED, with the reason
FORBIDDING = {
    "plateau": "the loss has stalled against the fitted law",
    "misfit": "the rows do not follow the fitted law",
    "lr_changes": "the learning rate is changing and the fitted law does not know it",
    "beyond_warn_factor": "the target lies further ahead than predictions were checked for",
}
#: refusals of a fit, and the verdict they mean
REFUSALS = {
    "diverged": "DIVERGED",
    "inside_warmup": "NOT ENOUGH DATA",
    "too_few_rows": "NOT ENOUGH DATA",
    "too_short": "NOT ENOUGH DATA",
    "no_loss": "NOT ENOUGH DATA",
}


@dataclass(frozen=True)
class Verdict:
    """Verdict for one target; fields as in docs/artifacts.md (stability)."""

    target: float
    verdict: str
    reason: str
    half_width_ln: float | None
    windows: int


@dataclass(frozen=True)
class StabilityReport:
    """The stability artifact of one run.

    Attributes:
        table: column -> array (windows x targets,), `window_step` int64, the rest float64 with NaN where a window has
            no answer; ordered by target, then window.
        verdicts: one per target.
        warnings: about the sweep.
    """

    table: dict[str, np.ndarray]
    verdicts: tuple[Verdict, ...]
    warnings: tuple[Notice, ...]

    def as_dict(self) -> dict[str, Any]:
        """JSON-ready content of stability/<run>.json."""
        return {
            "verdicts": [asdict(verdict) for verdict in self.verdicts],
            "warnings": [notice.as_dict() for notice in self.warnings],
        }


def sweep(
    series: LossSeries, params: dict[str, Any], fit_params: dict[str, Any], fits: dict[str, Any]
) -> StabilityReport:
    """Predictions from every window and the verdicts.

    Args:
        series: the series that was fitted.
        params: the `stability` section.
        fit_params: the `fits` section.
        fits: the run's fits artifact (`FitReport.as_dict`).
    """
    if fit_params["law"] == "seed":
        return _seed_sweep(series, params, fit_params, fits)
    keep_freed()
    swept = _windows(series, params, for_loss(fit_params, series.name), fits)
    targets = fits["targets"]
    parts = [_rows(series, swept, target, fits) for target in targets] if swept is not None else []
    verdicts = []
    for i, target in enumerate(targets):
        predicted = parts[i]["predicted_tokens"] if parts else np.empty(0)
        verdicts.append(_verdict(target, predicted, fits, params["tolerance"]))
    return StabilityReport(_joined(parts), tuple(verdicts), _notices(swept, fits))


def without_rows(fits: dict[str, Any]) -> StabilityReport:
    """The verdicts of a run whose fits artifact has no loss at all: an empty table, and why."""
    verdicts = [_verdict(target, np.empty(0), fits, 0.0) for target in fits["targets"]]
    return StabilityReport(_joined([]), tuple(verdicts), _notices(None, fits))


def _windows(
    series: LossSeries, params: dict[str, Any], fit_params: dict[str, Any], fits: dict[str, Any]
) -> WindowLaws | KernelWindows | None:
    """The windows under the law of the whole log."""
    if fits["law"] in ("kernel", "annealing"):  # imported here: most runs need neither
        from tokenaxis.laws.window_kernel import kernel_windows

        law = import_module(f"tokenaxis.laws.{fits['law']}")
        return kernel_windows(series, params, fit_params, fits, law.response, law.DROP)
    return window_laws(series, params, fit_params, fits)


def _rows(
    series: LossSeries, swept: WindowLaws | KernelWindows, target: dict[str, Any], fits: dict[str, Any]
) -> dict[str, np.ndarray]:
    """The table's rows for one target; windows that end past its crossing have no prediction to make."""
    tokens, low, high = swept.predict(float(target["target"]))
    if target["status"] == "reached":
        past = swept.tokens >= target["tokens"]
        tokens, low, high = (np.where(past, np.nan, values) for values in (tokens, low, high))
    part = {
        "target": np.full(len(tokens), float(target["target"])),
        "window_step": swept.step.astype(np.int64),
        "window_tokens": swept.tokens,
        "predicted_tokens": tokens,
        "predicted_step": tokens_to_steps(series, tokens),
        "low": low,
        "high": high,
        "irreducible_loss": swept.irreducible_loss.copy(),
        "coefficient": swept.coefficient.copy(),
        "exponent": swept.exponent.copy(),
    }
    if fits["fit"] is not None:
        _newest(part, target, fits["fit"])
    return part


def _newest(part: dict[str, np.ndarray], target: dict[str, Any], fit: dict[str, Any]) -> None:
    """The window that is the whole log is the fits artifact itself."""
    for name in ("irreducible_loss", "coefficient", "exponent"):
        part[name][-1] = fit[name]
    known = target["status"] == "predicted"
    low, high = target["interval"] if known and target["interval"] is not None else (None, None)
    values = {"predicted_tokens": target["tokens"], "predicted_step": target["step"], "low": low, "high": high}
    for name, value in values.items():
        part[name][-1] = np.nan if not known or value is None else value


def _joined(parts: list[dict[str, np.ndarray]]) -> dict[str, np.ndarray]:
    if not parts:
        return {name: np.empty(0, np.int64 if name == "window_step" else np.float64) for name in COLUMNS}
    return {name: np.concatenate([part[name] for part in parts]) for name in COLUMNS}


def _verdict(target: dict[str, Any], predicted: np.ndarray, fits: dict[str, Any], tolerance: float) -> Verdict:
    """CONVERGED only if the newest window predicts within the tolerance and nothing speaks against it."""
    loss, codes = float(target["target"]), target["warnings"]
    answered = int(np.isfinite(predicted).sum())
    half = _half_width(target)

    def verdict(name: str, reason: str) -> Verdict:
        return Verdict(loss, name, reason, half, answered)

    if target["status"] == "reached":
        return verdict("REACHED", "crossed inside the log")
    if "below_at_start" in codes:
        return verdict("REACHED", target["reason"])
    for code in codes:
        if code in REFUSALS:
            return verdict(REFUSALS[code], target["reason"] or fits["fit_not_available"])
    if target["status"] != "predicted":
        return verdict("NOT YET CONVERGED", f"the newest window has no prediction: {target['reason']}")
    for code in codes:
        if code in FORBIDDING:
            return verdict("NOT YET CONVERGED", FORBIDDING[code])
    if answered < FEWEST_WINDOWS:
        return verdict("NOT ENOUGH DATA", f"{answered} windows have a prediction; a verdict needs {FEWEST_WINDOWS}")
    if not np.isfinite(predicted[-FEWEST_WINDOWS:]).all():
        return verdict("NOT YET CONVERGED", "one of the newest windows calls the target unreachable")
    if half is None:
        return verdict("NOT YET CONVERGED", "the newest interval is unbounded")
    limit = math.log1p(tolerance)
    if half <= limit:
        return verdict("CONVERGED", f"the interval is within {math.expm1(half):.0%} of the prediction")
    reason = f"the interval reaches {math.expm1(half):.0%} past the prediction, beyond the tolerance of {tolerance:.0%}"
    return verdict("NOT YET CONVERGED", reason)


def _half_width(target: dict[str, Any]) -> float | None:
    """ln(high / predicted) of a prediction's interval; None where it is unbounded or there is none."""
    if target["status"] != "predicted" or target["interval"] is None or target["interval"][1] is None:
        return None
    return math.log(target["interval"][1] / target["tokens"])


def _notices(swept: WindowLaws | KernelWindows | None, fits: dict[str, Any]) -> tuple[Notice, ...]:
    if swept is None:
        return (Notice("no_windows", f"no window could be fitted: {fits['fit_not_available'] or 'too few rows'}"),)
    if not swept.rate_constant:
        message = "the learning rate changes in this log: windows are fitted by the power law all the same"
        return (Notice("lr_changes", message),)
    return ()


def _seed_sweep(
    series: LossSeries, params: dict[str, Any], fit_params: dict[str, Any], fits: dict[str, Any]
) -> StabilityReport:
    """The reference's sweep: its windows, its verdict."""
    from tokenaxis.laws import seed, seed_sweep

    open_targets = [float(t["target"]) for t in fits["targets"] if t["status"] != "reached"]
    swept = seed_sweep.windows(
        series.step,
        series.tokens,
        seed.smoothed_loss(series, fit_params),
        seed.fit_start(series),
        open_targets,
        params["seed"]["step"],
        params["seed"]["min_window"],
        fit_params["seed"]["min_rows"],
        lambda tokens: tokens_to_step(series, tokens),
    )
    verdicts, parts = [], []
    for target in fits["targets"]:
        loss = float(target["target"])
        if loss not in swept:
            verdicts.append(Verdict(loss, "REACHED", "crossed inside the log", None, 0))
            continue
        found = seed_sweep.verdict(swept[loss], params["seed"]["tolerance"])
        answered = sum(window.answer.tokens is not None for window in swept[loss])
        verdicts.append(Verdict(loss, found.verdict, found.text, None, answered))
        if swept[loss]:
            parts.append(_seed_rows(loss, swept[loss]))
    message = "the reference's verdict: windows overlap, so that they agree by construction; see docs/methods.md"
    return StabilityReport(_joined(parts), tuple(verdicts), (Notice("seed_verdict", message),))


def _seed_rows(target: float, swept: list[SeedWindow]) -> dict[str, np.ndarray]:
    def column(values: list[float | None]) -> np.ndarray:
        array = np.array([np.nan if value is None else value for value in values], dtype=np.float64)
        return np.where(np.isfinite(array), array, np.nan)

    fits = [window.answer.fit for window in swept]
    nothing = np.full(len(swept), np.nan)
    return {
        "target": np.full(len(swept), target),
        "window_step": np.array([window.max_step for window in swept], dtype=np.int64),
        "window_tokens": column([window.tokens for window in swept]),
        "predicted_tokens": column([window.answer.tokens for window in swept]),
        "predicted_step": column([window.step for window in swept]),
        "low": nothing,
        "high": nothing,
        "irreducible_loss": column([fit.irreducible_loss for fit in fits]),
        "coefficient": column([fit.coefficient for fit in fits]),
        "exponent": column([fit.exponent for fit in fits]),
    }
