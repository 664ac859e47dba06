"""Any series gets an answer: no traceback, no warning of numpy, nothing inside the log, no NaN in the artifacts."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from tokenaxis import params as parameters
from tokenaxis import stability, targets
from tokenaxis.errors import TokenAxisError
from tokenaxis.series import LossSeries

VERDICTS = {"CONVERGED", "NOT YET CONVERGED", "NOT ENOUGH DATA", "DIVERGED", "REACHED"}
CURVES = (
    lambda x, _: 2 + 0.6 * x**-0.35,
    lambda x, _: np.full(len(x), 3.0),
    lambda x, _: 3 + x,
    lambda x, _: 4 - 3 * x,
    lambda x, _: 2 + 1e-3 * x**-9,
    lambda x, rng: 1 + 0.5 * rng.standard_normal(len(x)),
    lambda x, _: np.where(np.arange(len(x)) > len(x) // 2, 2.0, 9.0),
    lambda x, _: 5 * np.exp(-5 * x),
    lambda x, _: 2 + 0.3 * x**-0.1,
)


@pytest.fixture(scope="module")
def params(root: Path) -> dict:
    return parameters.load_yaml(root / "params.yaml")


def series(rng: np.random.Generator) -> LossSeries:
    rows = int(rng.choice([1, 2, 3, 4, 5, 7, 11, 15, 25, 60, 300, 2500]))
    step = np.cumsum(rng.choice([1, 1, 1, 5, 50], rows)).astype(float) - rng.integers(0, 2)
    batch = np.full(rows, 10.0 ** rng.uniform(1, 7))
    if rng.random() < 0.3:
        batch[rows // 2 :] *= rng.choice([2, 0.5, 10])
    tokens = step[0] * batch[0] + np.concatenate([[0.0], np.cumsum(batch[:-1] * np.diff(step))])
    x = np.maximum(tokens / max(tokens[-1], 1.0), 1e-6)
    loss = np.minimum(CURVES[int(rng.integers(0, len(CURVES)))](x, rng), 50.0)
    loss = loss + rng.choice([0, 1e-6, 0.01, 0.2]) * rng.standard_normal(rows)
    if rng.random() < 0.2:
        loss[rng.integers(0, rows, max(1, rows // 20))] += rng.choice([-1.0, 10.0, 1e4])
    warm = int(step[int(rng.integers(0, max(rows // 3, 1)))])
    schedule, planned = None, None
    if rng.random() < 0.6:
        kind = str(rng.choice(["constant", "cosine", "linear", "wsd", "inverse_sqrt"]))
        schedule = {"kind": kind, "warmup_steps": max(warm, 1), "decay_steps": max(step[-1] / 5, 1)}
        planned = float(tokens[-1] * rng.choice([0.5, 1.0, 1.5, 3.0]) + 1)
    return LossSeries(
        "train_loss", step, tokens, loss, batch, _rates(rng, step, batch, warm),
        warmup_end_step=None if rng.random() < 0.3 else warm,
        inside_warmup=bool(rng.random() < 0.03),
        fit_start_step=int(step[rows // 4]) if rng.random() < 0.1 else None,
        nonfinite_tail=int(rng.choice([0, 0, 0, 0, 1, 5])),
        batch_schedule=((0.0, 1e5), (tokens[-1] * 1.5 + 1, 2e5)) if rng.random() < 0.2 else None,
        lr_schedule=schedule,
        planned_tokens=planned,
    )  # fmt: skip


def _rates(rng: np.random.Generator, step: np.ndarray, batch: np.ndarray, warm: int) -> np.ndarray | None:
    ramp = 1e-3 * np.minimum(1, (step - step[0] + 1) / max(warm - step[0] + 1, 1))
    done = np.clip((step - warm) / max(step[-1] - warm, 1) * rng.choice([0.3, 0.7, 1.0, 1.2]), 0, 1)
    shapes = [
        ramp,
        ramp * (0.55 + 0.45 * np.cos(np.pi * done)),
        ramp * (1 - done),
        ramp * np.where(done > 0.6, 0.1, 1),
        ramp * np.sqrt(batch / batch[0]),
        np.zeros(len(step)),
        None,
    ]
    return shapes[int(rng.integers(0, len(shapes)))]


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("seed", range(8))
def test_any_series_is_answered_soberly(params, seed):
    rng = np.random.default_rng([77, seed])
    with np.errstate(divide="raise", over="raise", invalid="raise"):
        for number in range(60):
            made = series(rng)
            wanted = sorted({round(float(np.median(made.loss)), 3), float(made.loss[-1]), float(made.loss.min()) - 0.1})
            fits = params["fits"] | {
                "law": str(rng.choice(["auto", "auto", "power", "kernel", "annealing"])),
                "smoother": str(rng.choice(["local", "local", "seed", "ema2", "raw"])),
                "targets": "auto" if rng.random() < 0.3 else wanted,
            }
            try:
                report = targets.answer(made, fits)
                swept = stability.sweep(made, params["stability"], fits, report.as_dict())
            except TokenAxisError as error:
                assert "lr_schedule" in error.reason  # a declaration that lacks something
                continue
            json.dumps([report.as_dict(), swept.as_dict()], allow_nan=False)
            for answer in report.targets:
                _check(made, answer, (seed, number))
            known = np.isfinite(swept.table["predicted_tokens"])
            assert (swept.table["predicted_tokens"] >= swept.table["window_tokens"] * (1 - 1e-9))[known].all()
            assert {verdict.verdict for verdict in swept.verdicts} <= VERDICTS


def _check(made: LossSeries, answer: targets.TargetAnswer, where: tuple[int, int]) -> None:
    first, last = made.tokens[0], made.tokens[-1]
    low, high = answer.interval or (None, None)
    if answer.status == "predicted":
        assert answer.tokens > last and answer.step >= made.step[-1] - 1e-6, where
        assert low is None or last <= low <= answer.tokens, where
        assert high is None or high >= answer.tokens, where
    elif answer.status == "reached":
        assert first <= answer.tokens <= last, where
        assert answer.interval is None or low <= answer.tokens <= high, where
    else:
        assert answer.tokens is None and answer.reason, where
