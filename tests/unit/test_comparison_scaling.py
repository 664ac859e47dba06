"""Which runs a scaling law rests on, why others are left out, and what the page says about it."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from tests.unit.test_comparison_fake_sweep import PARAMS, make_run
from tokenaxis.comparison import Sweep, make
from tokenaxis.comparison.answers import collect
from tokenaxis.comparison.curves import Shares, read_curve
from tokenaxis.comparison.model import RunResult
from tokenaxis.comparison.options import Options
from tokenaxis.comparison.scaling import Scaling, scaling
from tokenaxis.comparison.scaling_law import ScalingLaw

LAW = ScalingLaw(1.6, 400.0, 0.34, 900.0, 0.36)
SIZES, PER_PARAMETER = (2e6, 5e6, 12e6), (5.0, 10.0, 20.0, 40.0, 80.0)


def sized_run(
    name: str, n_params: float | None, tokens: float, *, last_lr: float = 0.1, loss: float | None = None
) -> RunResult:
    """A run whose loss comes down to the law's at its end, 200 rows, with a learning rate that decays to `last_lr`."""
    end = LAW.loss(n_params or 5e6, tokens) if loss is None else loss
    step = np.arange(1, 201)
    place = step / 200
    columns = {
        "step": step,
        "tokens": tokens * place,
        "tokens_per_step": np.full(200, tokens / 200),
        "attempt": np.zeros(200, dtype=np.int32),
        # a straight line in ln(tokens), which the smoother gives back exactly
        "train_loss": end - 0.5 * np.log(place),
        "lr": 1e-3 * (1 - (1 - last_lr) * place),
    }
    base = make_run(name)
    facts = {} if n_params is None else {"n_params": {"value": n_params, "source": "declared", "note": None}}
    meta = base.axis_meta | {"lr": {"peak": 1e-3, "last": 1e-3 * last_lr, "constant_after_warmup": last_lr == 1}}
    return replace(
        base,
        columns=lambda: columns,
        axis_meta=meta,
        fits=base.fits | {"loss": "train_loss"},
        conventions=base.conventions | {"facts": facts},
    )


def ladder() -> list[RunResult]:
    """Three sizes, five budgets each, on the law."""
    return [sized_run(f"s{size / 1e6:g}M_{each:g}", size, size * each) for size in SIZES for each in PER_PARAMETER]


def scaled(runs: list[RunResult]) -> Scaling:
    sweep = Sweep("s", runs)
    curves = {run.id: read_curve(run, Shares.among(len(runs)), 0.1) for run in runs}
    return scaling(sweep, collect(sweep, None), curves, Options.of(PARAMS))


def test_the_ends_of_a_ladder_give_its_law() -> None:
    found = scaled(ladder())
    assert found.fit is not None and found.reason is None and len(found.used) == 15
    # the smoother is exact on these curves; the optimum is flat (test_an_exact_law_comes_back)
    assert found.parameters["size_exponent"][0] == pytest.approx(0.34, rel=0.01)
    assert found.parameters["irreducible_loss"][0] == pytest.approx(1.6, rel=0.01)
    assert all(low <= value <= high for value, low, high in found.parameters.values())


def test_budgets_say_how_far_beyond_the_sweep_they_lie() -> None:
    budgets = scaled(ladder()).budgets
    assert [round(budget.beyond, 6) for budget in budgets][2:] == [1.0, 3.0, 10.0]
    for budget in budgets:
        n_params, tokens = LAW.optimum(budget.flop)
        assert budget.n_params[0] == pytest.approx(n_params, rel=0.05)  # E against A and alpha: a flat valley
        assert budget.tokens[0] == pytest.approx(tokens, rel=0.05)


@pytest.mark.parametrize(
    ("odd", "words"),
    [
        (sized_run("odd", 5e6, 3e7, last_lr=0.7), "before its learning rate had come down"),
        (sized_run("odd", 5e6, 3e7, last_lr=1.0), "another kind of schedule"),
        (sized_run("odd", None, 3e7), "number of parameters"),
    ],
)
def test_a_run_that_does_not_belong_is_left_out_with_its_reason(odd: RunResult, words: str) -> None:
    found = scaled([*ladder(), odd])
    assert [(point.run, words in (point.reason or "")) for point in found.points if point.reason] == [("odd", True)]


def test_a_diverged_run_is_left_out() -> None:
    odd = sized_run("odd", 5e6, 3e7)
    odd = replace(odd, stability={"verdicts": [{"target": 1.6, "verdict": "DIVERGED"}], "warnings": []})
    assert [point.reason for point in scaled([*ladder(), odd]).points if point.reason] == ["it diverged"]


@pytest.mark.parametrize(
    ("runs", "words"),
    [
        ([run for run in ladder() if "s2M" not in run.id], "3 model sizes; there are 2"),
        ([sized_run(f"r{size}{seed}", size, 1e8) for size in SIZES for seed in "abc"], "3 different numbers of tokens"),
        (ladder()[::3], "at least 6 runs"),
        ([sized_run("a", None, 1e8)], "no run's number of parameters is known"),
    ],
)
def test_too_few_runs_give_a_reason_and_no_law(runs: list[RunResult], words: str, tmp_path: Path) -> None:
    found = scaled(runs)
    assert found.fit is None and words in (found.reason or "")
    make(Sweep("s", runs), PARAMS, tmp_path)
    assert words.replace("'", "&#39;") in (tmp_path / "index.html").read_text("utf-8")
    assert not (tmp_path / "figures" / "scaling.svg").exists()
    assert (tmp_path / "scaling_law.csv").read_text("utf-8").count("\n") == 1  # the header alone


def test_the_page_shows_the_law_with_intervals_and_units(tmp_path: Path) -> None:
    summary = make(Sweep("ladder", ladder()), PARAMS, tmp_path)
    page = (tmp_path / "index.html").read_text("utf-8")
    section = page[page.index('id="scaling"') : page.index('id="compute"')]
    assert "train loss of 15 runs" in section and "parameters N (logarithmic)" in section
    assert section.count("extrapolated") == 2
    assert any("best size grows as compute to the power" in text for text in summary["headlines"])
    assert (tmp_path / "figures" / "scaling.png").exists()


def test_a_law_that_the_runs_do_not_pin_down_is_no_headline(tmp_path: Path) -> None:
    """Sizes that make no difference: their exponent can be anything."""
    runs = [
        sized_run(f"s{size:g}_{each:g}", size, size * each, loss=1.6 + 900.0 * (size * each) ** -0.36)
        for size in SIZES
        for each in PER_PARAMETER
    ]
    found = scaled(runs)
    assert found.caution is not None and "size exponent" in found.caution
    assert not any("scaling law" in text for text in make(Sweep("s", runs), PARAMS, tmp_path)["headlines"])
