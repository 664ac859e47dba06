"""From a token axis to the fits artifact: which loss, which series, which targets, what an answer holds."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from tokenaxis import params as parameters
from tokenaxis import targets
from tokenaxis.errors import TokenAxisError

BATCH = 5e5


@pytest.fixture(scope="module")
def params(root: Path) -> dict:
    return parameters.load_yaml(root / "params.yaml")["fits"]


def table(rows=4000, val_every=None, **columns) -> dict[str, np.ndarray]:
    step = np.arange(rows)
    loss = np.minimum(9, 2 + 0.6 * np.maximum(step * BATCH / 1e9, 1e-9) ** -0.35)
    made = {
        "step": step,
        "tokens": step * BATCH,
        "tokens_per_step": np.full(rows, BATCH),
        "attempt": np.zeros(rows, np.int32),
        "train_loss": loss + 0.02 * np.random.default_rng(1).standard_normal(rows),
        "lr": np.minimum(1.0, (step + 1) / 100),
    }
    if val_every:
        made["val_loss"] = np.where(step % val_every == 0, loss, np.nan)
    return made | columns


def meta(**changes) -> dict:
    return {"warmup": {"end_step": 98, "inside": False, "reason": None}, "unusable": []} | changes


def answered(params, columns=None, declaration=None, **changes):
    params = params | changes
    columns = table() if columns is None else columns
    name, reason = targets.choose_loss(columns, params)
    return targets.answer(targets.series_from(columns, meta(), declaration or {}, name), params, reason)


def test_validation_loss_is_preferred_where_enough_rows_lie_past_the_fit_start(params):
    params = params | {"min_rows": 10}
    assert targets.choose_loss(table(val_every=50), params)[0] == "val_loss"
    name, reason = targets.choose_loss(table(val_every=500), params)
    assert name == "train_loss" and "only" in reason
    assert targets.choose_loss(table(), params) == ("train_loss", "the only loss in the log")


def test_a_declared_loss_goes_before_the_choice_and_must_be_there(params):
    assert targets.choose_loss(table(val_every=50), params | {"loss": "train_loss"})[0] == "train_loss"
    with pytest.raises(TokenAxisError, match="val_loss"):
        targets.choose_loss(table(), params | {"loss": "val_loss"})
    with pytest.raises(TokenAxisError, match="no usable number"):
        targets.choose_loss(table(train_loss=np.full(4000, np.nan)), params)


def test_a_series_holds_the_finite_rows_and_the_rate_at_them():
    columns = table(val_every=50)
    columns["lr"] = np.where(np.arange(4000) % 50 == 0, np.nan, columns["lr"])
    series = targets.series_from(columns, meta(), {"batch_schedule": [[0, BATCH], [3e9, 1e6]]}, "val_loss")
    assert series.step.tolist() == list(range(0, 4000, 50))
    assert series.lr[1] == pytest.approx(0.51)  # between the rows that log it
    assert series.batch_schedule == ((0.0, BATCH), (3e9, 1e6)) and series.warmup_end_step == 98


def test_nan_rows_after_the_last_loss_are_counted_and_blank_ones_are_not():
    columns = table()
    columns["train_loss"][3000:] = np.nan
    unusable = [
        {"column": "train_loss", "kind": "nan", "rows": 1000, "first_step": 3000, "last_step": 3999, "lines": []}
    ]
    assert targets.series_from(columns, meta(unusable=unusable), {}, "train_loss").nonfinite_tail == 1000
    assert targets.series_from(columns, meta(), {}, "train_loss").nonfinite_tail == 0


def test_planned_steps_become_tokens():
    series = targets.series_from(table(), meta(), {"planned_steps": 8000}, "train_loss")
    assert series.planned_tokens == pytest.approx(8000 * BATCH)
    assert targets.series_from(table(), meta(), {"planned_tokens": 3e9}, "train_loss").planned_tokens == 3e9


def test_auto_targets_are_round_losses_around_the_last_one():
    assert targets.auto_targets(2.47, 0.1) == [2.7, 2.6, 2.5, 2.4, 2.3]
    assert targets.auto_targets(2.5, 0.25) == [2.75, 2.5]
    assert targets.auto_targets(0.1, 0.1) == [0.4, 0.3, 0.2, 0.1]  # never 0 or below


def test_the_artifact_has_exactly_the_keys_of_the_contract(params):
    content = answered(params).as_dict()
    assert set(content) == {
        "loss", "loss_reason", "rows", "observed", "law", "law_reason", "fit_start_step", "fit", "fit_not_available",
        "end", "targets", "warnings",
    }  # fmt: skip
    assert set(content["targets"][0]) == {
        "target", "status", "step", "tokens", "interval", "interval_level", "intervals", "step_interval",
        "step_intervals", "law",
        "horizon", "reached_by_end", "crossed_back", "reason", "warnings",
    }  # fmt: skip
    assert set(content["fit"]) >= {
        "irreducible_loss", "coefficient", "exponent", "token_unit", "token_offset", "residual_sd", "noise_inflation",
        "at_bounds",
    }  # fmt: skip
    json.dumps(content, allow_nan=False)


def test_answers_are_the_same_every_time(params):
    assert answered(params).as_dict() == answered(params).as_dict()


def test_a_far_prediction_is_flagged_beyond_the_warn_factor(params):
    report = answered(params, targets=[2.45, 2.25])
    near, far = report.targets
    assert near.horizon < 3 < far.horizon
    assert "beyond_warn_factor" in far.warnings and "beyond_warn_factor" not in near.warnings
    assert any(n.code == "beyond_warn_factor" and "2.25" in n.message for n in report.warnings)


def test_step_intervals_follow_the_token_intervals(params):
    for answer in answered(params, targets=[2.6, 2.4]).targets:
        assert answer.step == pytest.approx(answer.tokens / BATCH)
        assert answer.step_interval[0] == pytest.approx(answer.interval[0] / BATCH)
        assert answer.interval[0] < answer.tokens < answer.interval[1] and answer.interval_level == 0.9


@pytest.mark.parametrize("smoother", ["local", "seed", "ema2", "raw"])
def test_every_smoother_finds_the_crossing_with_its_own_lag(params, smoother):
    report = answered(params, smoother=smoother, targets=[2.6])
    lag = {"local": 0.02, "ema2": 0.03, "raw": 0.35, "seed": 0.08}[smoother]  # of 1e9 tokens; raw: noise is met early
    assert abs(report.targets[0].tokens - 1e9) < lag * 1e9
    with pytest.raises(TokenAxisError, match="smoother"):
        answered(params, smoother="magic")


def test_the_seed_law_goes_through_the_same_artifact(params):
    report = answered(params, law="seed", targets=[2.6, 2.45, 1.0])
    assert report.law == "seed" and [t.status for t in report.targets] == ["reached", "predicted", "unreachable"]
    assert report.targets[1].interval is None
    json.dumps(report.as_dict(), allow_nan=False)


def test_sparse_logs_work_down_to_a_handful_of_rows(params):
    for every in (400, 800, 1333):
        columns = {name: values[::every] for name, values in table().items()}
        report = answered(params, columns, targets=[2.6, 2.3])
        assert report.targets[0].status == "reached"
        assert report.targets[1].status == "not_available" and "rows" in report.targets[1].reason


@pytest.mark.parametrize("rows", [1, 2, 3, 4, 5, 21])
def test_the_shortest_logs_give_reasons_and_no_traceback(params, rows):
    columns = {name: values[1 : rows + 1] for name, values in table().items()}
    report = answered(params, columns)
    assert report.rows == rows and all(t.status in ("reached", "not_available", "predicted") for t in report.targets)
    json.dumps(report.as_dict(), allow_nan=False)


def test_few_rows_of_validation_loss_are_fitted_where_they_say_more_than_the_training_loss(params):
    """6 rows past the fit start: enough beside a noisy training loss, not beside a quiet one; 5 never are."""
    noisy = 0.5 * np.random.default_rng(4).standard_normal(4000)
    columns = table(val_every=400)
    name, reason = targets.choose_loss(columns | {"train_loss": columns["train_loss"] + noisy}, params)
    assert name == "val_loss" and "6 rows" in reason
    val = np.where(np.isfinite(columns["val_loss"]), columns["val_loss"] + 0.02 * np.sin(columns["step"]), np.nan)
    assert targets.choose_loss(columns | {"val_loss": val}, params)[0] == "train_loss"
    fewer = table(val_every=500)
    assert targets.choose_loss(fewer | {"train_loss": fewer["train_loss"] + noisy}, params)[0] == "train_loss"


def test_a_fit_of_few_validation_rows_is_not_refused_and_one_of_training_rows_is(params):
    columns = table(val_every=400)
    found = answered(params, columns, loss="val_loss", targets=[2.4])
    assert found.rows == 10 and found.targets[0].status == "predicted"
    thin = {name: values[::400] for name, values in table().items()}
    assert answered(params, thin, loss="train_loss", targets=[2.4]).targets[0].warnings == ("too_few_rows",)


def test_tokens_steps_and_the_end_loss_have_intervals_at_three_nominal_levels(params):
    declared = {"lr_schedule": {"kind": "constant"}, "planned_tokens": 4e9}
    report = answered(params, declaration=declared, targets=[2.6, 2.4]).as_dict()
    assert [entry["status"] for entry in report["targets"]] == ["reached", "predicted"]
    for entry in report["targets"]:
        for key, one in (("intervals", "interval"), ("step_intervals", "step_interval")):
            found = entry[key]
            assert list(found) == ["0.5", "0.8", "0.9"] and found["0.9"] == entry[one]
            assert found["0.9"][0] <= found["0.8"][0] <= found["0.5"][0] <= found["0.5"][1] <= found["0.9"][1]
    end = report["end"]
    assert end["intervals"]["0.9"] == [end["low"], end["high"]] and end["interval_level"] == 0.9
    assert end["intervals"]["0.5"][1] - end["loss"] == pytest.approx(0.41 * (end["high"] - end["loss"]), rel=0.01)
