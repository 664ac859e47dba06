"""A sweep made of planted numbers, like sweeps/tiny-gpt, and the proof that it is what the other tests believe it is.

Loss of a run with batch B after T tokens: L0 + A (T / (1 + B / B_CRIT) / 1e6) ** -ALPHA nats per token, so that tokens
to a target are E_min + S_min B with E_min / S_min = B_CRIT (McCandlish et al. 2018), exactly.
"""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest

from tokenaxis.comparison.model import RunResult, Sweep

L0, A, ALPHA, B_CRIT = 1.15, 0.62, 0.55, 9000.0
TARGETS = (2.0, 1.8, 1.6, 1.4)
LEVEL = 0.9
RESUMED = {"code": "resumed", "message": "an attempt was resumed: 21 rows were trained again"}
PARAMS = {
    "baseline": None,
    "figures": ["svg", "png"],
    "smooth_half_width": 0.1,
    "min_runs_per_target": 2,
    "headline_targets": 6,
    "hindsight_horizons": [1.25, 1.5, 2.0, 3.0],
    "batch_size_horizon": 5.0,
    "scaling_huber": 1e-3,
    "scaling_resamples": 100,
}
CONVENTIONS = {"all_params": 6.9e6, "hf": 4.7e6, "megatron": 5.1e6, "titan": 5.6e6}


def planted_loss(tokens: np.ndarray, batch: float) -> np.ndarray:
    """Nats per token, before noise."""
    return L0 + A * (np.maximum(tokens, batch / 2) / (1 + batch / B_CRIT) / 1e6) ** -ALPHA


def planted_tokens(target: float, batch: float) -> float:
    """Tokens at which the planted loss is `target`; infinite at or below L0."""
    return math.inf if target <= L0 else 1e6 * ((target - L0) / A) ** (-1 / ALPHA) * (1 + batch / B_CRIT)


def target_entry(target: float, batch: float, observed: float, width: float = 0.02) -> dict:
    """An entry of fits.json's `targets` with the planted truth; `width`: half-width in ln(tokens) when reached."""
    tokens = planted_tokens(target, batch)
    blank = dict.fromkeys(("step", "tokens", "interval", "interval_level", "step_interval", "law", "horizon", "reason"))
    entry = blank | {"target": target, "crossed_back": False, "warnings": []}
    if math.isinf(tokens):
        return entry | {"status": "unreachable", "reason": "the target lies below the fitted irreducible loss"}
    status = "reached" if tokens <= observed else "predicted"
    half = width if status == "reached" else width + 0.5 * math.log(tokens / observed)
    return entry | {
        "status": status,
        "step": round(tokens / batch),
        "tokens": tokens,
        "interval": [tokens * math.exp(-half), tokens * math.exp(half)],
        "interval_level": LEVEL,
        "law": "local" if status == "reached" else "power",
        "horizon": tokens / observed,
        "warnings": ["far_extrapolation"] if tokens > 3 * observed else [],
    }


def make_run(
    run: str,
    batch: float = 4000.0,
    observed: float = 6e6,
    *,
    seed: int = 0,
    every: int = 1,
    targets: tuple[float, ...] = TARGETS,
    grows_to: float | None = None,
    resumed: bool = False,
    name: str | None = None,
) -> RunResult:
    """One run: every artifact as docs/artifacts.md specifies it, with the planted loss and noise of 0.05 nats."""
    tokens_per_step = [batch]
    while sum(tokens_per_step) < observed:
        grown = grows_to is not None and sum(tokens_per_step) > observed / 3
        tokens_per_step.append(grows_to if grown else batch)
    per_step = np.array(tokens_per_step, dtype=np.float64)
    tokens = np.concatenate(([0.0], np.cumsum(per_step)[:-1]))
    step = np.arange(len(per_step), dtype=np.int64)
    rng = np.random.default_rng(seed)
    train = planted_loss(tokens, batch) + 0.05 * rng.standard_normal(len(step))
    train[step % every != 0] = np.nan
    val = np.where(step % 50 == 0, planted_loss(tokens, batch) + 0.03, np.nan)
    cut = len(step) // 2
    columns = {
        "step": step,
        "tokens": tokens,
        "tokens_per_step": per_step,
        "attempt": np.where(resumed & (step >= cut), 1, 0).astype(np.int32),
        "train_loss": train,
        "val_loss": val,
        "lr": 2e-3 * np.minimum(1.0, (step + 1) / 50.0),
        "elapsed_s": (step - np.where(resumed & (step >= cut), cut, 0)) * 0.02 + 1.0,
    }
    entries = [target_entry(target, batch, tokens[-1]) for target in targets]
    return RunResult(
        id=run,
        name=name or f"{run}.csv",
        axis_meta=_axis_meta(run, columns, resumed, cut),
        columns=lambda: columns,
        fits=_fits(run, columns, entries, batch),
        stability={"verdicts": [_verdict(entry) for entry in entries], "warnings": []},
        stability_table=lambda: _windows(entries, tokens[-1], seed),
        conventions=_conventions(tokens[-1], entries),
        passport={"run": run},
    )


def _axis_meta(run: str, columns: dict[str, np.ndarray], resumed: bool, cut: int) -> dict:
    step, per_step, tokens = columns["step"], columns["tokens_per_step"], columns["tokens"]
    changes = [0, *(np.flatnonzero(np.diff(per_step)) + 1), len(step)]
    stages = [
        {"first_step": int(step[first]), "last_step": int(step[last - 1]), "first_tokens": float(tokens[first]),
         "last_tokens": float(tokens[last - 1]), "tokens_per_step": float(per_step[first])}
        for first, last in zip(changes[:-1], changes[1:], strict=True)
    ]  # fmt: skip
    last = int(step[-1])
    first = {"first_step": 0, "last_step": cut + 20, "rows": cut + 21, "superseded_rows": 21,
             "superseded_tokens": 21 * float(per_step[0])}  # fmt: skip
    second = {
        "first_step": cut,
        "last_step": last,
        "rows": last - cut + 1,
        "superseded_rows": 0,
        "superseded_tokens": 0.0,
    }
    only = {"first_step": 0, "last_step": last, "rows": last + 1, "superseded_rows": 0, "superseded_tokens": 0.0}
    superseded = 21 if resumed else 0
    return {
        "schema": "tokenaxis/token_axis/1",
        "run": run,
        "format": "table",
        "rows": {"read": last + 1 + superseded, "bad": 0, "superseded": superseded, "merged": 0, "kept": last + 1,
                 "with_train_loss": int(np.isfinite(columns["train_loss"]).sum()),
                 "with_val_loss": int(np.isfinite(columns["val_loss"]).sum())},
        "attempts": [first, second] if resumed else [only],
        "superseded_tokens": superseded * float(per_step[0]),
        "tokens": {"source": "cumulated", "convention": "before", "convention_source": "format", "first": 0.0,
                   "last": float(tokens[-1]), "bounds": None},
        "batch": {"source": "file name", "stages": stages},
        "lr": {"peak": 2e-3, "last": 2e-3, "constant_after_warmup": True},
        "warnings": [RESUMED] if resumed else [],
    }  # fmt: skip


def _fits(run: str, columns: dict[str, np.ndarray], entries: list[dict], batch: float) -> dict:
    tokens = float(columns["tokens"][-1])
    observed = {
        "step": int(columns["step"][-1]),
        "tokens": tokens,
        "loss": float(planted_loss(np.array([tokens]), batch)[0]),
    }
    return {
        "schema": "tokenaxis/fits/1",
        "run": run,
        "loss": "train_loss",
        "observed": observed,
        "law": "power",
        "fit_start_step": int(columns["step"][-1] * 0.4),
        "fit": {"irreducible_loss": L0, "coefficient": A, "exponent": ALPHA, "token_unit": 1e6, "residual_sd": 0.05,
                "noise_inflation": 1.4, "at_bounds": []},
        "fit_not_available": None,
        "targets": entries,
        "warnings": [],
    }  # fmt: skip


def _verdict(entry: dict) -> dict:
    low, high = entry["interval"] or (1.0, math.inf)
    narrow = math.log(high / low) / 2 < math.log(1.25)
    words = {"reached": "REACHED", "predicted": "CONVERGED" if narrow else "NOT YET CONVERGED"}
    return {"target": entry["target"], "verdict": words.get(entry["status"], "NOT YET CONVERGED"),
            "reason": "planted", "half_width_ln": 0.1, "windows": 60}  # fmt: skip


def _windows(entries: list[dict], observed: float, seed: int) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(seed + 1)
    window = np.linspace(0.15, 1.0, 60) * observed
    rows: dict[str, list] = {name: [] for name in ("target", "window_tokens", "predicted_tokens", "low", "high")}
    for entry in entries:
        truth = entry["tokens"] or math.nan
        wide = 0.4 * np.maximum(np.log(truth / window), 0.02)
        bias, noise = rng.standard_normal(), rng.standard_normal(60)
        predicted = truth * np.exp(wide * (0.5 * bias + 0.1 * noise))
        for name, values in zip(rows, (np.full(60, entry["target"]), window, predicted, predicted * np.exp(-wide),
                                       predicted * np.exp(wide)), strict=True):  # fmt: skip
            rows[name].extend(values)
    return {name: np.array(values) for name, values in rows.items()}


def _conventions(observed: float, entries: list[dict]) -> dict:
    return {
        "facts": {"n_params": {"value": 801_024, "source": "declared", "note": None}},
        "conflicts": [],
        "flops_per_token": CONVENTIONS,
        "formulas": {name: "6 N" for name in CONVENTIONS},
        "convention": None,
        "flops_spent": {name: value * observed for name, value in CONVENTIONS.items()},
        "flops_to_target": [
            {"target": entry["target"], "status": entry["status"], "tokens": entry["tokens"],
             "flops": {name: value * entry["tokens"] for name, value in CONVENTIONS.items()} if entry["tokens"] else {}}
            for entry in entries
        ],
        "mfu": None,
        "not_available": {"mfu": "needs a declared device"},
    }  # fmt: skip


def make_sweep() -> Sweep:
    """Eight runs, one refused file, one passed over: what `make demo` compares, more or less."""
    runs = [
        make_run("gpt_2Kbs", 2000, seed=1),
        make_run("gpt_4Kbs", 4000, seed=2),
        make_run("gpt_8Kbs", 8000, seed=3),
        make_run("gpt_16Kbs", 16000, seed=4),
        make_run("gpt_growing", 4000, seed=5, grows_to=16000),
        make_run("gpt_resumed_8Kbs", 8000, seed=6, resumed=True),
        make_run("gpt_sparse_4Kbs", 4000, seed=7, every=10),
        make_run("gpt_short_8Kbs", 8000, 2.4e6, seed=8),
    ]
    refused = {"name": "broken.csv", "reason": "line 14 is cut off", "remedy": "delete the file or repair the line"}
    parameters = {"sweep": "tiny-gpt", "comparison": PARAMS, "fits": {"interval_level": LEVEL}}
    return Sweep("tiny-gpt", runs, [refused], [{"name": "commands.sh", "reason": "not a log"}], parameters, "0.1.0")


def with_id(run: RunResult, name: str) -> RunResult:
    """The same run under another id and name."""
    return replace(run, id=name, name=name)


@pytest.mark.parametrize("batch", [2000.0, 16000.0])
def test_planted_tokens_invert_the_planted_loss(batch: float) -> None:
    for target in TARGETS:
        tokens = planted_tokens(target, batch)
        # closed forms of each other: only rounding is between them
        assert planted_loss(np.array([tokens]), batch)[0] == pytest.approx(target, rel=1e-12)


def test_some_targets_are_reached_and_some_are_predicted() -> None:
    statuses = {entry["status"] for run in make_sweep().runs for entry in run.fits["targets"]}
    assert statuses == {"reached", "predicted"}
