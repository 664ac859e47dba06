"""The stability sweep: one table over all windows, and verdicts that only promise what the newest window holds."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from tokenaxis import params as parameters
from tokenaxis import stability, targets
from tokenaxis.laws import seed
from tokenaxis.series import LossSeries
from tokenaxis.stability import COLUMNS

BATCH = 5e5


@pytest.fixture(scope="module")
def params(root: Path) -> dict:
    return parameters.load_yaml(root / "params.yaml")


def series(loss=None, rows=4000, sd=0.03, **changes) -> LossSeries:
    step = np.arange(float(rows))
    tokens = step * BATCH
    if loss is None:
        loss = np.minimum(9, 2 + 0.6 * np.maximum(tokens / 1e9, 1e-9) ** -0.35)
        loss = loss + sd * np.random.default_rng(2).standard_normal(rows)
    made = LossSeries(
        "train_loss", step, tokens, loss, np.full(rows, BATCH), np.minimum(1, (step + 1) / 200), warmup_end_step=197
    )
    return replace(made, **changes)


def swept(params, made, wanted, fits_changes=None, **changes):
    fits = params["fits"] | {"targets": wanted} | (fits_changes or {})
    report = targets.answer(made, fits)
    return report, stability.sweep(made, params["stability"] | changes, fits, report.as_dict())


def test_the_table_has_the_columns_of_the_contract_a_row_per_window_and_target(params):
    _, found = swept(params, series(), [2.6, 2.4, 2.3])
    assert tuple(found.table) == COLUMNS
    assert {len(values) for values in found.table.values()} == {3 * 300}
    assert found.table["window_step"].dtype == np.int64
    assert found.table["window_step"][:300].tolist() == sorted(set(found.table["window_step"][:300].tolist()))
    assert found.table["window_step"][299] == 3999
    json.dumps(found.as_dict(), allow_nan=False)


def test_the_newest_window_is_the_fits_artifact(params):
    report, found = swept(params, series(), [2.4])
    answer, newest = report.targets[0], {name: values[-1] for name, values in found.table.items()}
    assert newest["predicted_tokens"] == answer.tokens and newest["predicted_step"] == answer.step
    assert (newest["low"], newest["high"]) == answer.interval
    assert newest["exponent"] == report.fit["exponent"]


def test_a_window_answers_as_the_law_would_have_at_its_time(params):
    """Each window has its own start, prior and noise: a fit of the log cut there agrees within its standard error."""
    made = series()
    _, found = swept(params, made, [2.4])
    for i in (150, 220, 290):
        end = int(found.table["window_step"][i]) + 1
        cut = replace(
            made, **{name: getattr(made, name)[:end] for name in ("step", "tokens", "loss", "tokens_per_step", "lr")}
        )
        alone = targets.answer(cut, params["fits"] | {"targets": [2.4]}).targets[0]
        error = math.log(alone.interval[1] / alone.tokens)
        assert abs(math.log(found.table["predicted_tokens"][i] / alone.tokens)) < 0.5 * error
        assert math.log(found.table["high"][i] / found.table["predicted_tokens"][i]) == pytest.approx(error, rel=0.5)


def test_windows_that_end_past_a_crossing_predict_nothing(params):
    report, found = swept(params, series(), [2.6])
    table, crossing = found.table, report.targets[0].tokens
    known = np.isfinite(table["predicted_tokens"])
    assert known.any() and (table["window_tokens"][known] < crossing).all()
    assert found.verdicts[0].verdict == "REACHED"
    before = table["predicted_tokens"][known][-20:]
    np.testing.assert_allclose(before, 1e9, rtol=0.05)  # the last windows before it see it coming


def test_converged_means_that_the_interval_is_within_the_tolerance(params):
    near = swept(params, series(sd=0.01, lr_schedule={"kind": "constant"}), [2.45])[1].verdicts[0]
    far = swept(params, series(), [2.2])[1].verdicts[0]
    assert near.verdict == "CONVERGED" and near.half_width_ln <= math.log(1.25)
    assert far.verdict == "NOT YET CONVERGED" and far.half_width_ln > math.log(1.25)
    strict = swept(params, series(sd=0.01, lr_schedule={"kind": "constant"}), [2.45], tolerance=0.01)[1].verdicts[0]
    assert strict.verdict == "NOT YET CONVERGED"


def test_a_target_that_the_newest_window_calls_unreachable_is_never_converged(params):
    found = swept(params, series(sd=0.001), [1.9])[1].verdicts[0]
    assert found.verdict == "NOT YET CONVERGED" and "newest" in found.reason


def test_a_rising_tail_a_nan_tail_and_a_jump_are_diverged(params):
    loss = series().loss.copy()
    loss[3000:] += 0.4
    assert swept(params, series(loss), [2.4])[1].verdicts[0].verdict == "DIVERGED"
    assert swept(params, series(nonfinite_tail=50), [2.4])[1].verdicts[0].verdict == "DIVERGED"
    rising = 3 + np.arange(4000) / 4000
    assert swept(params, series(rising), [2.4])[1].verdicts[0].verdict == "DIVERGED"


def test_too_little_data_is_called_that(params):
    assert swept(params, series(rows=203), [2.4])[1].verdicts[0].verdict == "NOT ENOUGH DATA"
    inside = swept(params, series(rows=150, inside_warmup=True, warmup_end_step=None), [2.4])[1]
    assert inside.verdicts[0].verdict == "NOT ENOUGH DATA" and len(inside.table["target"]) == 0


def test_a_plateau_is_never_converged(params):
    loss = series(sd=0.0).loss.copy()
    loss[2800:] = loss[2800]
    assert swept(params, series(loss), [float(loss[-1]) - 0.01])[1].verdicts[0].verdict != "CONVERGED"


def test_a_changing_rate_is_never_converged_under_a_law_that_does_not_know_it(params):
    lr = 0.5 * (1 + np.cos(np.pi * np.arange(4000) / 8000))
    found = swept(params, series(sd=0.001, lr=lr), [2.47], {"law": "power"})[1]
    assert found.verdicts[0].verdict == "NOT YET CONVERGED"


@pytest.mark.filterwarnings("ignore")
def test_the_seed_law_has_the_references_windows_and_verdict(params):
    made = series()
    report, found = swept(params, made, [2.6, 2.3], {"law": "seed"})
    assert [v.verdict for v in found.verdicts][0] == "REACHED"
    assert found.verdicts[1].reason.startswith(found.verdicts[1].verdict)
    steps = found.table["window_step"].tolist()
    assert steps == [*range(seed.fit_start(made) + 500, 3999, 300), 3999]
    assert set(found.table["target"]) == {2.3}
    assert np.isnan(found.table["low"]).all()


def test_memory_stays_bounded_over_many_windows(params):
    made = series(rows=30_000)
    _, found = swept(params, made, [2.3], windows=3000)
    assert len(found.table["target"]) > 2900 and np.isfinite(found.table["exponent"]).all()


def test_windows_take_the_noise_inflation_of_the_whole_log(params):
    """Not a cautious constant: without it windows of white noise had intervals twice as wide as their fits would."""
    made = series(lr_schedule={"kind": "constant"})
    report, found = swept(params, made, [2.4])
    assert report.fit["noise_inflation"] == 1.0
    wider = {**report.as_dict(), "fit": {**report.fit, "noise_inflation": 16.0}}
    again = stability.sweep(made, params["stability"], params["fits"] | {"targets": [2.4]}, wider)
    half, broad = (np.log(table["high"][150] / table["predicted_tokens"][150]) for table in (found.table, again.table))
    assert broad > 1.5 * half


def test_a_target_beyond_the_warn_factor_is_never_converged(params):
    made = series(sd=1e-4, lr_schedule={"kind": "constant"})
    far = 2 + 0.6 * (3.5 * 3999 * BATCH / 1e9) ** -0.35
    verdict = swept(params, made, [far])[1].verdicts[0]
    assert verdict.verdict == "NOT YET CONVERGED" and verdict.half_width_ln < math.log(1.25)
    assert swept(params, made, [far], {"extrapolation_warn_factor": 5.0})[1].verdicts[0].verdict == "CONVERGED"
