"""Losses at equal tokens and equal FLOP: planted differences, honest noise."""

from __future__ import annotations

import numpy as np
import pytest

from tests.unit.test_comparison_fake_sweep import CONVENTIONS, make_run, planted_loss
from tokenaxis.comparison.answers import collect
from tokenaxis.comparison.curves import Shares, read_curve
from tokenaxis.comparison.matched import Difference, differences
from tokenaxis.comparison.model import RunResult, Sweep
from tokenaxis.comparison.tables import convention_table
from tokenaxis.comparison.thinning import NOISE_INFLATION, smoothed


def gaps(*runs: RunResult) -> list[Difference]:
    """Differences to the run `a`."""
    sweep = Sweep("s", list(runs))
    answers = collect(sweep, "a")
    curves = {run.id: read_curve(run, Shares.among(len(runs)), 0.1) for run in runs}
    return differences(answers, curves, convention_table(list(runs), answers.targets), 0.9)


def test_a_planted_difference_is_found_at_the_farthest_common_tokens() -> None:
    (found,) = gaps(make_run("a", 2000, 6e6, seed=1), make_run("b", 16000, 4e6, seed=2))
    assert found.basis == "tokens"
    assert found.run_tokens == found.baseline_tokens == pytest.approx(4e6, rel=0.01)  # b ends a step before 4M
    truth = planted_loss(np.array([found.run_tokens]), 16000) - planted_loss(np.array([found.run_tokens]), 2000)
    assert found.low < truth[0] < found.high
    assert found.verdict == "higher"


def test_two_seeds_of_one_setting_are_within_noise() -> None:
    pairs = [(make_run("a", 4000, seed=seed), make_run("b", 4000, seed=seed + 100)) for seed in range(20)]
    # intervals are 2.2 times those of independent rows, and the rows are independent here: practically never a miss
    assert [gaps(*pair)[0].verdict for pair in pairs] == ["within noise"] * 20


def test_the_standard_error_of_the_smooth_curve_is_that_of_its_windows() -> None:
    rng = np.random.default_rng(8)
    tokens = np.arange(1, 4001) * 1000.0
    truth = 3 - 0.2 * np.log(tokens)
    errors, stated = [], []
    for _ in range(200):
        shown = smoothed(tokens, tokens, truth + 0.05 * rng.standard_normal(4000), 0.1)
        place = int(np.searchsorted(shown.tokens, 2e6))
        errors.append(shown.value[place] - (3 - 0.2 * np.log(shown.tokens[place])))
        stated.append(shown.sd[place])
    # 200 draws know their spread to 5%; three of that
    assert np.mean(stated) / NOISE_INFLATION == pytest.approx(np.std(errors), rel=0.15)


def test_runs_that_cost_differently_are_compared_at_equal_flop_too() -> None:
    small, large = make_run("a", 4000, 6e6, seed=1), make_run("b", 4000, 6e6, seed=2)
    large.conventions["flops_per_token"] = {name: 3 * value for name, value in CONVENTIONS.items()}
    by_basis = {entry.basis: entry for entry in gaps(small, large)}
    assert set(by_basis) == {"tokens", "all_params"}
    assert by_basis["all_params"].baseline_tokens == pytest.approx(3 * by_basis["all_params"].run_tokens, rel=1e-12)
    assert by_basis["all_params"].verdict == "higher"  # the same curve, read at a third of the tokens


def test_losses_of_different_kinds_are_not_subtracted() -> None:
    other = make_run("b")
    other.fits["loss"] = "val_loss"
    assert gaps(make_run("a"), other) == []


def test_one_run_has_nothing_to_differ_from() -> None:
    assert gaps(make_run("a")) == []


def with_decay(run: RunResult, share: float) -> RunResult:
    """The learning rate goes down linearly to `share` of its peak."""
    columns = run.columns()
    columns["lr"] = 1e-3 * np.linspace(1.0, share, len(columns["step"]))
    return run


def test_schedules_at_different_phases_are_marked() -> None:
    done, half_way = with_decay(make_run("a", observed=6e6), 0.1), with_decay(make_run("b", observed=12e6), 0.1)
    (found,) = gaps(done, half_way)
    # at 6M tokens one has come down to a tenth, the other is half way there
    assert found.baseline_rate == pytest.approx(0.1, abs=0.01)  # the last row is one step before the end
    assert found.run_rate == pytest.approx(0.55, abs=0.01)
    assert found.uneven
    (alike,) = gaps(done, with_decay(make_run("b", observed=6e6, seed=1), 0.1))
    assert not alike.uneven


def test_a_run_without_a_learning_rate_is_not_called_uneven() -> None:
    bare = make_run("b", seed=1)
    bare.columns().pop("lr")
    (found,) = gaps(make_run("a"), bare)
    assert found.run_rate is None and not found.uneven
