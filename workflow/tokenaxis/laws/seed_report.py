"""`target_loss.py --law seed`: the reference's reading, its rules and its text, line by line.

A table that pandas reads as the reference does is read in the reference's own way (duplicated steps: the last row
stays; batch: column, option, first match anywhere in the path), so that results can be compared to the digit.
Everything else comes through the readers and the token axis.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from tokenaxis.crossing import first_passage
from tokenaxis.errors import TokenAxisError
from tokenaxis.laws import seed_sweep
from tokenaxis.laws.base import TOKEN_UNIT
from tokenaxis.laws.seed import batch_stages, fit_smoothed, solve, warmup_end
from tokenaxis.laws.steps import tokens_to_step
from tokenaxis.series import LossSeries
from tokenaxis.smoothing import token_window_ema_rowwise

RULE = "-" * 100
Schedule = tuple[tuple[float, float], ...]


class SeedExit(TokenAxisError):
    """The reference ends here with this message and exit status 1."""


@dataclass(frozen=True)
class SeedOptions:
    """The reference's options; see scripts/target_loss.py."""

    targets: tuple[float, ...]
    loss_col: str
    ema_token_window: float
    batch_size: float | None
    batch_schedule: Schedule | None
    fit_start_step: int | None
    fit_last_stage: bool
    warn_factor: float
    stability_sweep: bool
    sweep_step: int
    sweep_min_window: int
    convergence_tol: float
    min_rows: int


@dataclass(frozen=True)
class SeedRun:
    """One run as the reference sees it; arrays (rows,), `step` in the log's own type."""

    step: np.ndarray
    tokens: np.ndarray
    loss: np.ndarray
    batch: np.ndarray
    lr: np.ndarray | None
    batch_source: str
    schedule: Schedule | None

    def series(self, name: str) -> LossSeries:
        """The same as a loss series."""
        return LossSeries(
            name, self.step.astype(float), self.tokens, self.loss, self.batch, self.lr, batch_schedule=self.schedule
        )


def parse_schedule(pairs: list[str]) -> Schedule:
    """TOKENS:BATCH pairs -> ((start, batch), ...) ascending.

    Raises:
        SeedExit: a pair is malformed.
    """
    try:
        return tuple(sorted((float(start), float(batch)) for start, batch in (pair.split(":") for pair in pairs)))
    except ValueError:
        raise SeedExit(f"--batch-schedule takes TOKENS:BATCH pairs, got {' '.join(pairs)}") from None


def batch_in_path(path: str) -> float | None:
    """Tokens per step from `_0.5Mbs` or `_512Kbs`: the first match anywhere in the path, any case."""
    found = re.search(r"_([\d.]+)([MK])bs", path, re.IGNORECASE)
    if found is None:
        return None
    try:
        return float(found.group(1)) * (1_000_000 if found.group(2).upper() == "M" else 1_000)
    except ValueError:  # 1.2.3
        return None


def read_table(path: str, options: SeedOptions) -> SeedRun | None:
    """The run as the reference reads it; None where the file is not a table that it can read.

    Raises:
        SeedExit: the loss column or the batch size is missing.
    """
    import pandas as pd

    try:
        table = pd.read_csv(path)
    except Exception:  # whatever pandas makes of a foreign format: the readers will say what is wrong
        return None
    used = [name for name in ("step", options.loss_col, "global_batch", "tokens", "lr") if name in table.columns]
    numeric = all(table[name].dtype.kind in "iuf" for name in used)
    if "step" not in table.columns or not numeric or not len(table):
        return None
    if options.loss_col not in table.columns:
        raise SeedExit(f"'{options.loss_col}' not in columns: {list(table.columns)}")
    table = table.drop_duplicates("step", keep="last").sort_values("step").reset_index(drop=True)
    batch, source = _batch(table, path, options)
    step = table["step"].to_numpy()
    tokens = table["tokens"].to_numpy(float) if "tokens" in table.columns else _tokens(step.astype(float), batch)
    kept = table[options.loss_col].notna().to_numpy()
    if not kept.any() or np.isnan(batch).any() or (tokens < 0).any():
        return None  # the reference breaks on these; the token axis knows what to do
    lr = table["lr"].to_numpy(float)[kept] if "lr" in table.columns else None
    loss = table[options.loss_col].to_numpy(float)
    return SeedRun(step[kept], tokens[kept], loss[kept], batch[kept], lr, source, options.batch_schedule)


def _batch(table: Any, path: str, options: SeedOptions) -> tuple[np.ndarray, str]:
    """(tokens per step of each row, where they come from): column, option (0 = unset), path."""
    if "global_batch" in table.columns:
        return table["global_batch"].to_numpy(float), "CSV global_batch column"
    batch = options.batch_size or batch_in_path(path)
    if batch is None:
        raise SeedExit("no global_batch column and could not infer batch size from filename -- pass --batch-size")
    return np.full(len(table), float(batch)), "--batch-size" if options.batch_size else "filename"


def _tokens(step: np.ndarray, batch: np.ndarray) -> np.ndarray:
    """Tokens before each step; a gap takes the batch of the row before it."""
    tokens = np.empty(len(step))
    tokens[0] = step[0] * batch[0]
    tokens[1:] = tokens[0] + np.cumsum(batch[:-1] * np.diff(step))
    return tokens


def from_series(series: LossSeries, batch_source: str) -> SeedRun:
    """A run that came through the readers and the token axis."""
    step = series.step.astype(np.int64)
    batch = series.tokens_per_step
    return SeedRun(step, series.tokens, series.loss, batch, series.lr, batch_source, series.batch_schedule)


def report(run: SeedRun, options: SeedOptions) -> Iterator[str]:
    """The reference's output for one run, line by line.

    Raises:
        SeedExit: too few rows at or after the fit start.
        TokenAxisError: the end of warm-up cannot be seen and no fit start is given.
    """
    with np.errstate(all="ignore"):  # a batch of 0 is the log's fault, and the reference's business
        yield from _report(run, options)


def _report(run: SeedRun, options: SeedOptions) -> Iterator[str]:
    stages = batch_stages(run.batch)
    start = _fit_start(run, stages, options)
    span = options.ema_token_window / run.batch
    if (span < 1).any():
        yield (
            f"[WARN] EMA token window ({options.ema_token_window:,.0f}) < batch size "
            f"({run.batch.max():,.0f}) on some steps -- window is under one step "
            "there; clamping span to 1 (effectively no smoothing)."
        )
    smoothed = token_window_ema_rowwise(run.loss, run.batch, options.ema_token_window)
    past = run.step >= start
    if past.sum() < options.min_rows:
        raise SeedExit(f"only {past.sum()} logged rows at or after fit start step {start}")
    yield _header(run, stages, start, options)
    if len(stages) > 1:
        yield from _stage_table(run, stages)
    yield RULE
    for target in options.targets:
        crossing = first_passage(run.step.astype(float), run.tokens, smoothed, target)
        if crossing is not None:
            yield f"target={target:<8} REACHED (interpolated): step={crossing[0]:,.1f} tokens={crossing[1]:,.0f}"
        elif options.stability_sweep:
            yield from _sweep(run, smoothed, start, target, options)
        else:
            yield _extrapolated(run, smoothed, past, stages, target, options)


def _fit_start(run: SeedRun, stages: list[tuple[int, int, float]], options: SeedOptions) -> int:
    start = options.fit_start_step
    if start is None:
        if run.lr is None:
            remedy = "pass --fit-start-step, or use --law power"
            raise TokenAxisError("the log has no lr column: the end of warm-up cannot be seen", remedy=remedy)
        start = warmup_end(run.step, run.lr, stages[0][1])
    return max(start, int(run.step[stages[-1][0]])) if options.fit_last_stage else start


def _header(run: SeedRun, stages: list[tuple[int, int, float]], start: int, options: SeedOptions) -> str:
    spans = options.ema_token_window / np.array([batch for _, _, batch in stages])
    if len(stages) > 1:
        batch = (
            f"batch: DYNAMIC, {len(stages)} stages ({stages[0][2]:,.0f} -> {stages[-1][2]:,.0f} tokens/step, "
            f"from {run.batch_source})"
        )
        steps = f"~{spans.max():.1f}-{spans.min():.1f} steps across stages"
    else:
        batch = f"batch size: {stages[0][2]:,.0f} tokens/step (from {run.batch_source})"
        steps = f"~{spans[0]:.1f} steps at this batch size"
    return (
        f"loss col: {options.loss_col} | ema token window: {options.ema_token_window:,.0f} ({steps}) | {batch} | "
        f"fit start step: {start}"
    )


def _stage_table(run: SeedRun, stages: list[tuple[int, int, float]]) -> Iterator[str]:
    yield f"{'stage':>7} {'steps':>17} {'tokens (before step)':>33} {'batch':>11}"
    for number, (first, last, batch) in enumerate(stages, 1):
        steps = f"{run.step[first]:>8} - {run.step[last]:<6}"
        yield f"{number:>7} {steps} {run.tokens[first]:>15,.0f} - {run.tokens[last]:<15,.0f} {batch:>11,.0f}"


def _extrapolated(
    run: SeedRun,
    smoothed: np.ndarray,
    past: np.ndarray,
    stages: list[tuple[int, int, float]],
    target: float,
    options: SeedOptions,
) -> str:
    answer = solve(fit_smoothed(run.tokens[past], smoothed[past]), target)
    if answer.tokens is None:
        return f"target={target:<8} NOT REACHED, fit says: {answer.reason}"
    fit, last = answer.fit, np.nanmax(run.tokens)
    step = tokens_to_step(run.series(options.loss_col), answer.tokens)
    ratio = answer.tokens / last
    flag = " ** EXTRAPOLATION BEYOND WARN FACTOR **" if ratio > options.warn_factor else ""
    note = ""
    if len(stages) > 1 and run.schedule is None:
        note = f" [step assumes batch stays {stages[-1][2]:,.0f}; pass --batch-schedule]"
    return (
        f"target={target:<8} EXTRAPOLATED (fit L0={fit.irreducible_loss:.4f} A={fit.coefficient:.4f} "
        f"alpha={fit.exponent:.4f}, T in {TOKEN_UNIT:.0e} tokens): step={step:,.1f} tokens={answer.tokens:,.0f} "
        f"({ratio:.2f}x past observed T={last:,.0f}, S={np.nanmax(run.step):,.0f}){flag}{note}"
    )


def _sweep(run: SeedRun, smoothed: np.ndarray, start: int, target: float, options: SeedOptions) -> Iterator[str]:
    series = run.series(options.loss_col)
    swept = seed_sweep.windows(
        run.step,
        run.tokens,
        smoothed,
        start,
        [target],
        options.sweep_step,
        options.sweep_min_window,
        options.min_rows,
        lambda tokens: tokens_to_step(series, tokens),
    )[target]
    yield ""
    yield f"target={target} -- stability sweep"
    yield f"{'max_step':>10} {'s_pred':>14} {'t_pred':>18} {'ratio':>8} {'L0':>8} {'alpha':>8} note"
    for window in swept:
        answer = window.answer
        if answer.tokens is None:
            yield f"{window.max_step:>10} {'--':>14} {'--':>18} {'--':>8} {'--':>8} {'--':>8} {answer.reason}"
            continue
        ratio = answer.tokens / window.tokens
        flag = " [beyond warn factor]" if ratio > options.warn_factor else ""
        yield (
            f"{window.max_step:>10} {window.step:>14,.0f} {answer.tokens:>18,.0f} {ratio:>7.2f}x "
            f"{answer.fit.irreducible_loss:>8.4f} {answer.fit.exponent:>8.4f}{flag}"
        )
    yield f"verdict: {seed_sweep.verdict(swept, options.convergence_tol).text}"
