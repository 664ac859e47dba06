"""Laws for a changing learning rate: planted drops are found, plans are followed, the choice of a law says why."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from tokenaxis import laws, stability, targets
from tokenaxis import params as parameters
from tokenaxis.laws import annealing, kernel
from tokenaxis.laws.base import Fitted, NotFitted
from tokenaxis.laws.choice import fit_law
from tokenaxis.laws.rate import rate_of
from tokenaxis.laws.response import drop_curve
from tokenaxis.laws.timeline import timeline_of
from tokenaxis.series import LossSeries

BATCH, STEPS, WARM = 5e5, 8000, 200
END = STEPS * BATCH


@pytest.fixture(scope="module")
def params(root: Path) -> dict:
    return parameters.load_yaml(root / "params.yaml")


def rates(kind: str) -> np.ndarray:
    step = np.arange(STEPS)
    done = np.clip((step - WARM) / (STEPS - WARM), 0, 1)
    shape = {
        "cosine": 0.55 + 0.45 * np.cos(np.pi * done),
        "linear": 1 - done,
        "wsd": np.clip((STEPS - step) / 1600, 0, 1),
        "constant": np.ones(STEPS),
    }[kind]
    return np.minimum((step + 1) / WARM, shape)


SCHEDULES = {
    "cosine": {"kind": "cosine", "final": 0.1, "warmup_steps": WARM},
    "linear": {"kind": "linear", "warmup_steps": WARM},
    "wsd": {"kind": "wsd", "decay_steps": 1600, "warmup_steps": WARM},
    "constant": {"kind": "constant", "warmup_steps": WARM},
}


def planted(kind: str, drop=0.2, sd=0.01, seed=1, law=kernel, declared=True) -> LossSeries:
    """A run that follows the law exactly, with white noise: L0 2, A 0.6, alpha 0.45."""
    step = np.arange(float(STEPS))
    series = LossSeries(
        "train_loss", step, step * BATCH, np.ones(STEPS), np.full(STEPS, BATCH), rates(kind), warmup_end_step=WARM - 2,
        lr_schedule=SCHEDULES[kind] if declared else None, planned_tokens=END if declared else None,
    )  # fmt: skip
    rate = rate_of(series)
    line = timeline_of(series, rate, None)
    arrived = line.at(series.tokens, drop_curve(line, law.response))
    axis = np.maximum(rate.weighted_tokens / 1e9, 1e-3)
    loss = np.minimum(9, 2 + 0.6 * axis**-0.45 - drop * arrived)
    return replace(series, loss=loss + sd * np.random.default_rng(seed).standard_normal(STEPS))


def cut(series: LossSeries, share: float) -> LossSeries:
    rows = int(share * STEPS)
    names = ("step", "tokens", "loss", "tokens_per_step", "lr")
    return replace(series, **{name: getattr(series, name)[:rows] for name in names})


@pytest.mark.parametrize("law", [kernel, annealing])
@pytest.mark.parametrize("kind", ["cosine", "linear", "wsd"])
def test_a_planted_drop_is_recovered_once_it_is_seen(params, law, kind):
    for drop in (0.12, 0.3):
        found = law.fit(planted(kind, drop, law=law), params["fits"])
        assert isinstance(found, Fitted)
        # the prior (0.2 +- 0.06) is outvoted by 5,000 rows; knots and bins smear the drop by a few per cent
        assert found.parameters["drop"] == pytest.approx(drop, rel=0.12)
        assert "drop_from_prior" not in {notice.code for notice in found.warnings}


@pytest.mark.parametrize("kind", ["cosine", "linear", "wsd"])
def test_half_of_a_run_predicts_its_end(params, kind):
    whole = planted(kind, 0.2)
    found = kernel.fit(cut(whole, 0.5), params["fits"])
    end = float(whole.loss[-50:].mean())
    assert found.end["loss"] == pytest.approx(end, abs=0.03)
    assert found.end["low"] < end < found.end["high"]
    assert found.end["tokens"] == END


def test_a_decay_that_has_not_begun_rests_on_the_prior_and_says_so(params):
    found = kernel.fit(cut(planted("wsd"), 0.5), params["fits"])
    assert "drop_from_prior" in {notice.code for notice in found.warnings}
    assert found.parameters["drop"] == pytest.approx(kernel.DROP["plateau"], rel=0.05)


def test_probabilities_fall_with_the_target_and_unlikely_targets_say_so(params):
    found = kernel.fit(cut(planted("cosine"), 0.5), params["fits"])
    end = found.end["loss"]
    chances = [found.predict(end + shift).reached_by_end for shift in (0.1, 0.02, 0.0, -0.02, -0.5)]
    assert chances == sorted(chances, reverse=True)
    assert chances[2] == pytest.approx(0.5, abs=0.02)
    near, far = found.predict(end - 0.01), found.predict(end - 0.5)
    assert near.status == "predicted" and near.tokens <= END and near.high is None
    assert [notice.code for notice in near.warnings] == ["unlikely_by_end"]
    assert far.status == "unreachable" and far.reached_by_end < 0.1


def test_intervals_are_nested_and_hold_the_point(params):
    found = kernel.fit(cut(planted("linear"), 0.6), params["fits"])
    answer = found.predict(found.end["loss"] + 0.06)
    inner, outer = answer.interval_at(0.5), answer.interval_at(0.9)
    assert outer[0] <= inner[0] <= answer.tokens
    assert answer.tokens <= (inner[1] or END)


def test_the_kernel_without_any_decay_is_a_power_law(params):
    series = cut(planted("constant"), 0.5)
    flat = kernel.fit(series, params["fits"]).predict(2.35)
    power = laws.get("power").fit(series, params["fits"]).predict(2.35)
    assert flat.tokens == pytest.approx(power.tokens, rel=0.1)  # other start and prior: within their standard errors


def test_a_law_that_needs_the_rate_refuses_a_log_without_one(params):
    found = kernel.fit(replace(planted("wsd"), lr=None, lr_schedule=None), params["fits"])
    assert isinstance(found, NotFitted) and found.code == "lr_unknown"


def chosen(params, series):
    return fit_law(series, params["fits"] | {"law": "auto"})


def test_auto_takes_the_power_law_while_the_rate_stays(params):
    for series in (planted("constant"), cut(planted("wsd", declared=False), 0.5)):
        _, name, reason = chosen(params, series)
        assert name == "power" and "constant" in reason


def test_auto_takes_the_kernel_once_the_rate_has_changed(params):
    _, name, reason = chosen(params, cut(planted("cosine", declared=False), 0.6))
    assert name == "kernel" and "changed" in reason


def test_auto_splits_a_run_before_its_planned_decay(params):
    fitted, name, reason = chosen(params, cut(planted("wsd"), 0.5))
    assert name == "kernel" and "power law" in reason
    early, late = fitted.predict(2.42), fitted.predict(fitted.end["loss"] + 0.03)
    assert early.law == "power" and early.tokens < 0.8 * END
    assert late.law is None and late.tokens > 0.8 * END


def test_a_recognised_schedule_is_named_and_used(params):
    series = cut(planted("cosine", declared=False), 0.6)
    fitted, _, _ = chosen(params, series)
    assert "schedule_recognised" in {notice.code for notice in fitted.warnings}
    assert fitted.end["tokens"] == pytest.approx(END, rel=1e-3)


def test_a_spent_rate_ends_the_run(params):
    fitted, _, _ = chosen(params, planted("linear", declared=False))
    answer = fitted.predict(1.9)
    assert answer.status == "unreachable"


def test_a_log_without_rates_follows_its_declared_schedule(params):
    """series_from fills the rates in: what the plan says has happened is what the laws see."""
    series = planted("cosine")
    columns = {
        "step": series.step.astype(np.int64),
        "tokens": series.tokens,
        "tokens_per_step": series.tokens_per_step,
        "train_loss": series.loss,
    }
    meta = {"warmup": {"end_step": None, "inside": False, "reason": "no lr"}, "unusable": []}
    declared = {"lr_schedule": SCHEDULES["cosine"], "planned_steps": STEPS}
    filled = targets.series_from(columns, meta, declared, "train_loss")
    np.testing.assert_allclose(filled.lr[WARM:], rates("cosine")[WARM:], atol=1e-6)
    assert filled.warmup_end_step == 198 and not filled.inside_warmup
    assert fit_law(filled, params["fits"] | {"law": "auto"})[1] == "kernel"


def test_a_prediction_survives_the_whole_way_to_the_artifact(params):
    series = cut(planted("cosine"), 0.6)
    fits = params["fits"] | {"targets": [2.45, 2.25, 2.0]}
    report = targets.answer(series, fits)
    swept = stability.sweep(series, params["stability"], fits, report.as_dict())
    content = json.dumps([report.as_dict(), swept.as_dict()], allow_nan=False)
    assert report.law == "kernel" and '"reached_by_end"' in content and report.end["tokens"] == END
    assert {t.law for t in report.targets if t.status == "predicted"} <= {"kernel", "power"}


@pytest.mark.parametrize("name", ["kernel", "annealing"])
def test_windows_of_these_laws_answer_as_a_fit_of_the_cut_log_would(params, name):
    whole = planted("cosine", law=laws.get(name) and (kernel if name == "kernel" else annealing))
    series = cut(whole, 0.7)
    fits = params["fits"] | {"law": name, "targets": [2.4]}
    report = targets.answer(series, fits)
    found = stability.sweep(series, params["stability"], fits, report.as_dict())
    for i in (30, 45, 55):
        end = int(found.table["window_step"][i]) + 1
        alone = targets.answer(cut(whole, end / STEPS), fits).targets[0]
        if alone.status == "predicted" and np.isfinite(found.table["predicted_tokens"][i]):
            # the same law on other bins, without reweighting: well inside the interval
            assert found.table["predicted_tokens"][i] == pytest.approx(alone.tokens, rel=0.06)


def test_a_plan_that_the_log_contradicts_is_scaled_and_named(params):
    series = cut(replace(planted("cosine"), lr_schedule={"kind": "constant"}), 0.6)
    found = kernel.fit(series, params["fits"])
    assert "plan_mismatch" in {notice.code for notice in found.warnings}
    # "constant" from where the log stands: no jump back to the peak, so no bump of the loss
    ahead = found.loss_at(np.linspace(series.tokens[-1], END, 50))
    assert (np.diff(ahead) < 0).all()


def test_a_curve_that_is_no_decay_law_is_a_misfit(params):
    series = planted("cosine")
    bumpy = replace(series, loss=series.loss + 0.1 * np.sin(series.tokens / 4e8))
    assert "misfit" in {notice.code for notice in kernel.fit(bumpy, params["fits"]).warnings}
    assert "misfit" not in {notice.code for notice in kernel.fit(series, params["fits"]).warnings}


@pytest.mark.parametrize("law", ["auto", "kernel", "power"])
@pytest.mark.parametrize("with_rates", [True, False])
def test_a_schedule_that_lacks_something_refuses_the_fit_and_not_the_crossings(params, law, with_rates):
    series = planted("cosine")
    names = ("step", "tokens", "tokens_per_step")
    columns = {name: getattr(series, name) for name in names} | {"train_loss": series.loss}
    if with_rates:
        columns["lr"] = series.lr
    meta = {"warmup": {"end_step": 198, "inside": False, "reason": None}, "unusable": []}
    made = targets.series_from(columns, meta, {"lr_schedule": {"kind": "cosine"}}, "train_loss")
    report = targets.answer(made, params["fits"] | {"law": law, "targets": [2.6, 1.9]})
    assert report.targets[0].status == "reached"
    if law != "power" and not (law == "kernel" and not with_rates):
        assert "planned_steps" in report.fit_not_available
