"""Back-tests: what is hidden is not seen, truths are the run's own, counts are right."""

from __future__ import annotations

import importlib.util
import json
import math
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from tokenaxis import backtest
from tokenaxis import params as parameters
from tokenaxis.backtest import Trial
from tokenaxis.series import LossSeries

BATCH = 5e5


@pytest.fixture(scope="module")
def params(root: Path) -> dict:
    return parameters.load_yaml(root / "params.yaml")["fits"]


def series(rows=4000, sd=0.02, seed=1, lr=None) -> LossSeries:
    step = np.arange(float(rows))
    loss = np.minimum(9, 2 + 0.6 * np.maximum(step * BATCH / 1e9, 1e-9) ** -0.45)
    loss = loss + sd * np.random.default_rng(seed).standard_normal(rows)
    lr = np.minimum(1.0, (step + 1) / 100) if lr is None else lr
    return LossSeries("train_loss", step, step * BATCH, loss, np.full(rows, BATCH), lr, warmup_end_step=98)


def trial(run="a", error=0.1, standard_error=0.1, verdict="CONVERGED", held=True) -> Trial:
    predicted = None if math.isinf(error) else math.exp(error)
    intervals = {"0.5": held, "0.8": held, "0.9": held}
    return Trial(
        run,
        "f",
        "train_loss",
        "power",
        "power",
        0.5,
        1.5,
        2.0,
        1.0,
        predicted,
        intervals,
        standard_error,
        verdict,
        0.0,
        "predicted",
    )


def test_a_cut_series_knows_nothing_of_what_is_hidden(params):
    whole = series()
    spoilt = replace(whole, loss=np.where(np.arange(4000) < 2001, whole.loss, 99.0))
    assert (backtest.cut(whole, 1e9).loss == backtest.cut(spoilt, 1e9).loss).all()
    assert backtest.cut(whole, 1e9).tokens[-1] == 1e9


def test_the_true_loss_is_that_of_the_curve():
    whole = series(sd=0.02)
    expected = 2 + 0.6 * 1.2**-0.45
    # 900 rows of sd .02; the line over +-12% errs by a quarter of a thousandth
    assert backtest.true_loss(whole, 1.2e9, 0.12) == pytest.approx(expected, abs=0.003)
    spiked = replace(whole, loss=np.where(np.arange(4000) % 50 == 0, 9.0, whole.loss))
    assert backtest.true_loss(spiked, 1.2e9, 0.12) == pytest.approx(expected, abs=0.01)


def test_trials_of_a_planted_law_err_little_and_cover(params):
    trials = []
    for seed in range(10):
        made = backtest.constant_stretch(backtest.run_of(series(seed=seed), params, f"r{seed}", "f"))
        trials += backtest.horizon_trials(made, "power", 0.25, (1.25, 1.5, 2.0))
    found = backtest.summarise(trials, 0.25)
    assert found.trials == len(trials) > 60
    assert found.median < 0.08 and found.without == 0.0
    assert found.coverage["0.9"] > 0.85 and found.coverage["0.5"] <= found.coverage["0.8"] <= found.coverage["0.9"]
    assert found.wrong == 0
    assert {round(t.horizon, 6) for t in trials} == {1.25, 1.5, 2.0}


def test_hidden_shares_and_targets_lie_in_the_hidden_part(params):
    trials = list(backtest.hidden_trials(backtest.run_of(series(), params), "power", 0.25, (0.5, 0.3)))
    assert {round(t.hidden, 2) for t in trials} == {0.5, 0.3}
    for t in trials:
        assert t.tokens > (1 - t.hidden) * 3999 * BATCH and t.horizon > 1.0
        assert t.end_error is not None and abs(t.end_error) < 0.05


def test_the_constant_stretch_ends_where_the_rate_first_moves(params):
    step = np.arange(4000.0)
    lr = np.minimum(np.minimum(1.0, (step + 1) / 100), np.clip((4000 - step) / 1000, 0, 1))
    stretch = backtest.constant_stretch(backtest.run_of(series(lr=lr), params)).longest
    assert 3000 <= stretch.step[-1] <= 3020 + 1  # 2% of the peak is gone after 20 steps of the decay
    assert stretch.lr_schedule["kind"] == "constant"
    assert backtest.constant_stretch(backtest.run_of(series(lr=lr[:20], rows=20), params)) is None


def test_the_reference_is_judged_by_its_own_sweep(params):
    made = backtest.constant_stretch(backtest.run_of(series(sd=0.001), params))
    trials = list(backtest.horizon_trials(made, "seed", 0.25, (1.5,)))
    assert trials and all(not t.intervals for t in trials)
    assert {t.verdict for t in trials} <= {"CONVERGED", "NOT YET CONVERGED", "NOT ENOUGH DATA"}


def test_a_log_declares_its_own_rates_as_its_plan():
    step = np.arange(4000.0)
    lr = 0.5 * (1 + np.cos(np.pi * step / 4000))
    planned = backtest.with_plan_of_the_log(series(lr=lr))
    assert planned.lr_schedule["kind"] == "table" and planned.planned_tokens == 3999 * BATCH


def test_summaries_count_misses_and_wrong_verdicts():
    found = backtest.summarise([trial(error=0.01), trial(error=0.3), trial(error=math.inf, held=False)], 0.25)
    assert found.trials == 3 and found.converged == 3 and found.wrong == 2
    assert found.without == pytest.approx(1 / 3) and found.median == pytest.approx(0.3) and found.quantile is None
    assert found.coverage["0.9"] == pytest.approx(2 / 3)


def test_calibration_needs_eight_runs_and_is_the_conformal_quantile():
    trials = [trial(run=str(i), error=0.01 * (i + 1), standard_error=0.1) for i in range(9)]
    assert backtest.calibrate(trials[:7], 0.8) is None
    # scores 0.1 .. 0.9; ceil(10 * 0.8) = the 8th smallest
    assert backtest.calibrate(trials, 0.8) == pytest.approx(0.8)
    assert backtest.calibrate(trials, 0.8, without="8") == pytest.approx(0.8)  # ceil(9 * 0.8) = 8th of eight
    assert backtest.calibrated_coverage(trials, 0.8) == pytest.approx(8 / 9)


def test_the_script_prints_tables_and_json(root: Path, tmp_path: Path, capsys):
    spec = importlib.util.spec_from_file_location("backtest_script", root / "scripts" / "backtest.py")
    script = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(script)
    made = series()
    log = tmp_path / "run_0.5Mbs.csv"
    rows = zip(made.step, made.loss, made.lr, strict=True)
    log.write_text("step,train_loss,lr\n" + "\n".join(f"{s:.0f},{y:.5f},{r:.5f}" for s, y, r in rows) + "\n")
    common = [str(log), "--params", str(root / "params.yaml")]
    assert script.main([*common, "--law", "auto", "power"]) == 0
    text = capsys.readouterr().out
    assert "law auto" in text and "horizon" in text and "CONVERGED" in text
    assert script.main([*common, "--json", "--figure", str(tmp_path / "errors.svg"), "--constant"]) == 0
    content = json.loads(capsys.readouterr().out)
    assert content["laws"]["auto"][-1]["group"] == "all" and len(content["trials"]) > 5
    assert (tmp_path / "errors.svg").stat().st_size > 1000
    assert script.main([str(tmp_path / "absent.csv"), "--params", str(root / "params.yaml")]) == 2
