"""The answer to "when is this loss reached?": the series, its targets, and crossings and predictions together."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np

from tokenaxis.columns import LOSSES
from tokenaxis.crossing import HALF_WIDTH_DECAY, HALF_WIDTHS, neighbourhood_curve, noise_sd, without_single_rows
from tokenaxis.errors import Notice, TokenAxisError
from tokenaxis.laws.answers import Answering, FitReport, TargetAnswer
from tokenaxis.laws.base import Fitted, NotFitted, for_loss
from tokenaxis.laws.choice import fit_law
from tokenaxis.laws.plan import Clock, declared_plan
from tokenaxis.laws.rate import rate_of
from tokenaxis.laws.steps import tokens_to_step, tokens_to_steps
from tokenaxis.memory import keep_freed
from tokenaxis.series import LossSeries
from tokenaxis.smoothing import token_window_ema, two_sided_ema

__all__ = [
    "FitReport",
    "TargetAnswer",
    "answer",
    "auto_targets",
    "choose_loss",
    "series_from",
    "smoothed",
    "tokens_to_step",
    "tokens_to_steps",
]

#: validation loss is preferred with this many times the fewest rows of a fit, whatever its noise
OFTEN_ENOUGH = 2
#: training losses err this many times more than their row-to-row noise says: the order of the data drifts (predictions
#: of the same runs err by .085-.153 on train and .010-.026 on val loss, method.md section 2)
TRAIN_DRIFT = 8.0
#: share of the peak at which a warm-up counts as over
WARM = 0.99
#: targets that `auto` chooses lie within these of the smoothed last loss (nats)
AUTO_BELOW, AUTO_ABOVE = 0.2, 0.3


def choose_loss(columns: dict[str, np.ndarray], params: dict[str, Any]) -> tuple[str, str]:
    """(column to fit, why). `columns` is a token axis; `params` the `fits` section.

    `auto` prefers the validation loss, whose predictions err three to eight times less: where enough rows of it lie
    past the fit start, or fewer that say more than the training loss. From `min_rows` on its drift counts against the
    training loss; fewer rows than that must say more even if the training loss had nothing but its row-to-row noise.

    Raises:
        TokenAxisError: the column asked for is not in the log, or there is no loss at all.
    """
    logged = {name: np.isfinite(columns[name]) for name in LOSSES if name in columns}
    logged = {name: known for name, known in logged.items() if known.any()}
    wanted = params["loss"]
    if wanted != "auto":
        if wanted not in logged:
            raise TokenAxisError(f"the log has no {wanted}", remedy=f"use one of: {', '.join(logged) or 'nothing'}")
        return wanted, "asked for"
    if not logged:
        held = [name for name in LOSSES if name in columns]
        if held:
            rows = len(columns["tokens"])
            raise TokenAxisError(
                f"{' and '.join(held)} holds no usable number in any of {rows:,} rows (nan, inf or text): the run "
                "diverged, or never computed it",
                remedy="there is nothing to fit; what the cells hold is listed as `unusable`",
            )
        raise TokenAxisError("the log has no loss", remedy="declare its column in configs/sweeps/<sweep>.yaml")
    if len(logged) == 1:
        only = next(iter(logged))
        return only, "the only loss in the log"
    past_start = columns["tokens"] >= params["start_fraction"] * columns["tokens"][-1]
    used = {name: columns[name][known & past_start] for name, known in logged.items()}
    rows, fewest = len(used["val_loss"]), params["min_rows"]
    if rows >= OFTEN_ENOUGH * fewest:
        return "val_loss", f"validation loss predicts better, and {rows} rows of it lie past the fit start"
    least, drift = params["min_val_rows"], TRAIN_DRIFT if rows >= fewest else 1.0
    if rows >= least and _level_error(used["val_loss"]) < drift * _level_error(used["train_loss"]):
        return "val_loss", f"{rows} rows of validation loss past the fit start say more than the noisy training loss"
    return "train_loss", f"only {rows} rows of val_loss lie past the fit start"


def _level_error(loss: np.ndarray) -> float:
    """Standard error of the mean of (rows,) losses from their row-to-row noise; infinite without rows."""
    return noise_sd(loss) / len(loss) ** 0.5 if len(loss) else np.inf


def series_from(
    columns: dict[str, np.ndarray], meta: dict[str, Any], declaration: dict[str, Any], loss: str
) -> LossSeries:
    """The series of one loss from a token axis.

    Args:
        columns: canonical name -> (rows,), NaN where the log has no value.
        meta: the token axis' JSON of docs/artifacts.md.
        declaration: what was declared about the run (`Declaration.as_dict`).
        loss: "train_loss" or "val_loss".
    """
    values = columns[loss]
    known = np.isfinite(values)
    rows = np.flatnonzero(known)
    if not len(rows):
        raise TokenAxisError(f"the log has no finite {loss}")
    step = columns["step"].astype(np.float64)
    schedule = declaration.get("batch_schedule")
    series = LossSeries(
        name=loss,
        step=step[rows],
        tokens=columns["tokens"][rows],
        loss=values[rows],
        tokens_per_step=columns["tokens_per_step"][rows],
        lr=_lr(columns, step, rows),
        warmup_end_step=meta["warmup"]["end_step"],
        inside_warmup=bool(meta["warmup"]["inside"]),
        fit_start_step=declaration.get("fit_start_step"),
        nonfinite_tail=_nonfinite_tail(meta, loss, step, int(rows[-1])),
        batch_schedule=None if schedule is None else tuple((float(a), float(b)) for a, b in schedule),
        lr_schedule=declaration.get("lr_schedule"),
        planned_tokens=_planned_tokens(columns, declaration),
    )
    return _by_the_plan(series) if series.lr is None and series.lr_schedule is not None else series


def _by_the_plan(series: LossSeries) -> LossSeries:
    """A log without an lr column, with the rates and the warm-up of its declared schedule."""
    clock = Clock(series.step, series.tokens, series.tokens_per_step)
    try:
        plan = declared_plan(series.lr_schedule or {}, clock, series.planned_tokens)
    except TokenAxisError:  # the fit will be refused with this reason; crossings need no plan
        return series
    warm = float(series.step[np.searchsorted(series.tokens, WARM * plan.warmup_tokens).clip(max=len(series.step) - 1)])
    inside = plan.warmup_tokens > 0.0 and float(series.tokens[-1]) < WARM * plan.warmup_tokens
    end = None if inside else int(warm)
    return replace(series, lr=plan.ratio(series.tokens), warmup_end_step=end, inside_warmup=inside)


def _lr(columns: dict[str, np.ndarray], step: np.ndarray, rows: np.ndarray) -> np.ndarray | None:
    """Learning rate at the loss rows: between rows that log it, the line between them."""
    if "lr" not in columns:
        return None
    lr = columns["lr"]
    known = np.isfinite(lr)
    if not known.any():
        return None
    return lr[rows] if known[rows].all() else np.interp(step[rows], step[known], lr[known])


def _nonfinite_tail(meta: dict[str, Any], loss: str, step: np.ndarray, last: int) -> int:
    """Rows after the last finite loss whose loss is nan or inf (blank cells do not count)."""
    tail = 0
    for entry in meta.get("unusable", ()):
        if entry["column"] == loss and entry["kind"] in ("nan", "inf", "huge"):
            inside = (step >= entry["first_step"]) & (step <= entry["last_step"])
            inside[: last + 1] = False
            tail += min(int(inside.sum()), int(entry["rows"]))
    return tail


def _planned_tokens(columns: dict[str, np.ndarray], declaration: dict[str, Any]) -> float | None:
    """Planned end in tokens; planned steps go on at the last batch (or along the declared schedule)."""
    if declaration.get("planned_tokens") is not None:
        return float(declaration["planned_tokens"])
    planned = declaration.get("planned_steps")
    if planned is None:
        return None
    ahead = float(planned) - float(columns["step"][-1])
    return float(columns["tokens"][-1]) + ahead * float(columns["tokens_per_step"][-1])


def auto_targets(last_loss: float, spacing: float) -> list[float]:
    """Multiples of `spacing` from 0.2 nats below to 0.3 above the smoothed last loss, highest first."""
    lowest = math.ceil((last_loss - AUTO_BELOW) / spacing - 1e-9)
    highest = math.floor((last_loss + AUTO_ABOVE) / spacing + 1e-9)
    return [round(k * spacing, 10) for k in range(highest, lowest - 1, -1) if k > 0]


def answer(series: LossSeries, params: dict[str, Any], loss_reason: str = "asked for") -> FitReport:
    """Crossings inside the log, predictions beyond it.

    Args:
        series: one loss of one run.
        params: the `fits` section; `targets` is "auto" or a list of losses.
        loss_reason: why this loss was chosen (see `choose_loss`).
    """
    keep_freed()
    params = for_loss(params, series.name)
    fitted, name, law_reason = fit_law(series, params)
    smoother = "seed" if name == "seed" else params["smoother"]
    curve = smoothed(series, smoother, params)
    targets = params["targets"]
    if targets == "auto":
        targets = auto_targets(float(curve[-1]), params["auto_target_spacing"])
    widest = HALF_WIDTHS[-1] if rate_of(series).constant else HALF_WIDTH_DECAY
    local = smoother == "local"
    asked = Answering(series, params, fitted, curve, local, widest, noise_sd(series.loss) if local else 0.0)
    answers = tuple(asked.answer(float(target)) for target in targets)
    done = fitted if isinstance(fitted, Fitted) else None
    refused = [Notice(fitted.code, fitted.reason)] if isinstance(fitted, NotFitted) else []
    notices = [*refused, *fitted.warnings, *asked.notices]
    return FitReport(
        loss=series.name,
        loss_reason=loss_reason,
        rows=len(series.loss),
        observed={"step": float(series.step[-1]), "tokens": float(series.tokens[-1]), "loss": float(curve[-1])},
        law=None if done is None else name,
        law_reason=law_reason,
        fit_start_step=fitted.fit_start_step,
        fit=None if done is None else done.parameters,
        fit_not_available=fitted.reason if isinstance(fitted, NotFitted) else None,
        end=None if done is None else done.end,
        targets=answers,
        warnings=tuple({(notice.code, notice.message): notice for notice in notices}.values()),
        fitted=fitted,
    )


def smoothed(series: LossSeries, smoother: str, params: dict[str, Any]) -> np.ndarray:
    """The series under one of the smoothers local, seed, ema2, raw, (rows,)."""
    if smoother == "local":
        return neighbourhood_curve(series.tokens, series.loss)
    if smoother == "raw":
        return without_single_rows(series.loss)
    window = params["seed"]["ema_token_window"]
    if smoother == "seed":
        return token_window_ema(series.loss, series.tokens_per_step, window)
    if smoother == "ema2":
        return two_sided_ema(series.loss, series.step, series.tokens_per_step, window)
    raise TokenAxisError(f"there is no smoother {smoother!r}", remedy="choose one of: local, seed, ema2, raw")
