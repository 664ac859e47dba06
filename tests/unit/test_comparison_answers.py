"""Runs x targets: who is first, which run is the baseline, what a ratio's interval is."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest

from tests.unit.test_comparison_fake_sweep import B_CRIT, make_run, make_sweep, planted_tokens
from tokenaxis.comparison.answers import Answer, collect, ratio
from tokenaxis.comparison.model import Sweep
from tokenaxis.errors import TokenAxisError


def answer(run: str, tokens: float, half: float | None = 0.1, **fields: object) -> Answer:
    """An answer with a symmetric interval in ln(tokens)."""
    ends = (None, None) if half is None else (tokens * math.exp(-half), tokens * math.exp(half))
    return replace(Answer(run, 1.6, "reached", tokens=tokens, low=ends[0], high=ends[1], level=0.9), **fields)


def test_half_widths_of_a_ratio_add_in_quadrature_in_ln_tokens() -> None:
    value, low, high = ratio(answer("a", 4e6, 0.3), answer("b", 2e6, 0.4))
    # exact arithmetic: sqrt(0.09 + 0.16) = 0.5
    assert value == pytest.approx(2, rel=1e-12)
    assert (low, high) == (pytest.approx(2 * math.exp(-0.5), rel=1e-12), pytest.approx(2 * math.exp(0.5), rel=1e-12))


def test_each_side_of_a_lopsided_interval_counts_for_its_own_side() -> None:
    skewed = answer("a", 4e6, low=4e6 * math.exp(-0.1), high=4e6 * math.exp(0.8))
    _, low, high = ratio(skewed, answer("b", 2e6, 0.0, low=2e6, high=2e6))
    assert low == pytest.approx(2 * math.exp(-0.1), rel=1e-12)
    assert high == pytest.approx(2 * math.exp(0.8), rel=1e-12)


def test_a_ratio_is_unbounded_where_its_numerator_is() -> None:
    value, low, high = ratio(answer("a", 4e6, high=None), answer("b", 2e6))
    assert value == pytest.approx(2) and low is not None and high is None


@pytest.mark.parametrize("other", [answer("b", 2e6, None), answer("b", 2e6, level=0.5), answer("b", 2e6, high=None)])
def test_a_ratio_has_no_interval_without_two_intervals_of_one_level(other: Answer) -> None:
    assert ratio(answer("a", 4e6), other)[1:] == (None, None)


def test_the_baseline_has_ratio_one_and_no_interval() -> None:
    assert ratio(answer("a", 4e6), answer("a", 4e6)) == (1.0, None, None)


def test_the_baseline_by_rule_needs_the_fewest_tokens_for_most_targets() -> None:
    answers = collect(make_sweep(), None)
    assert answers.baseline == "gpt_2Kbs"  # the planted trade-off: the smallest batch needs the fewest tokens
    cell = answers.cells["gpt_16Kbs", 1.6]
    # planted in closed form: (1 + 16000/B_CRIT) / (1 + 2000/B_CRIT); only rounding differs
    assert cell.ratio == pytest.approx((1 + 16000 / B_CRIT) / (1 + 2000 / B_CRIT), rel=1e-9)


def test_a_tie_for_the_baseline_goes_to_the_run_that_is_first_at_the_lower_loss() -> None:
    runs = [make_run("a", targets=(2.0,)), make_run("b", 2000, targets=(1.6,)), make_run("c", 3000, targets=(1.6,))]
    assert collect(Sweep("s", runs), None).baseline == "b"


@pytest.mark.parametrize("wanted", ["gpt_8Kbs", "gpt_8Kbs.csv"])
def test_a_baseline_is_named_by_id_or_by_file(wanted: str) -> None:
    answers = collect(make_sweep(), wanted)
    assert answers.baseline == "gpt_8Kbs"
    assert answers.cells["gpt_8Kbs", 1.6].ratio == 1.0
    assert answers.cells["gpt_2Kbs", 1.6].ratio < 1


def test_an_unknown_baseline_is_an_error_that_names_the_key_and_the_runs() -> None:
    with pytest.raises(TokenAxisError, match=r"comparison.baseline.*'nobody'") as caught:
        collect(make_sweep(), "nobody")
    assert "gpt_2Kbs" in str(caught.value)


def test_a_refused_baseline_is_replaced_and_said_so() -> None:
    answers = collect(make_sweep(), "broken.csv")
    assert answers.baseline == "gpt_2Kbs"
    assert "baseline_refused" in {notice.code for notice in answers.notices}


def test_runs_without_a_number_have_no_ratio_and_no_place_in_the_ranking() -> None:
    answers = collect(Sweep("s", [make_run("a", targets=(1.6, 1.0))]), None)
    assert answers.cells["a", 1.0].status == "unreachable"
    assert answers.cells["a", 1.0].ratio is None
    assert answers.ranking(1.0) == []
    assert answers.counts(1.0) == {"reached": 0, "predicted": 0, "unreachable": 1, "not_available": 0}


def test_runs_may_have_different_targets() -> None:
    answers = collect(Sweep("s", [make_run("a", targets=(2.0, 1.8)), make_run("b", targets=(1.8, 1.6))]), None)
    assert answers.targets == (2.0, 1.8, 1.6)
    assert ("a", 1.6) not in answers.cells
    assert answers.focus == 1.8  # the one that both answer


def test_the_focus_is_the_lowest_loss_that_most_runs_answer() -> None:
    answers = collect(make_sweep(), None)
    assert answers.focus == 1.4
    assert answers.ranking(1.4)[0].tokens == pytest.approx(planted_tokens(1.4, 2000), rel=1e-12)


def test_comparing_train_with_validation_losses_is_noted() -> None:
    one, other = make_run("a"), make_run("b")
    other.fits["loss"] = "val_loss"
    assert {notice.code for notice in collect(Sweep("s", [one, other]), None).notices} == {"mixed_losses"}


def test_a_sweep_without_runs_has_no_baseline() -> None:
    answers = collect(Sweep("s", []), None)
    assert (answers.baseline, answers.targets, answers.focus) == (None, (), None)


def test_the_leading_ranking_keeps_to_one_kind_of_loss() -> None:
    runs = [make_run("a", 2000), make_run("b", 4000), make_run("c", 8000)]
    runs[0].fits["loss"] = "val_loss"
    answers = collect(Sweep("s", runs), None)
    assert answers.mixed
    assert [cell.run for cell in answers.ranking(1.6)] == ["a", "b", "c"]
    assert [cell.run for cell in answers.leading(1.6)] == ["b", "c"]
    assert answers.baseline == "b"
    assert answers.cells["a", 1.6].ratio is None  # not the same loss as the baseline's
    assert answers.cells["c", 1.6].ratio > 1


def test_being_first_where_nobody_else_was_asked_is_no_merit() -> None:
    lonely = make_run("lonely", 16000, targets=(2.4, 2.3, 2.2, 2.1))
    answers = collect(Sweep("s", [lonely, make_run("a", 2000, targets=(1.6,)), make_run("b", targets=(1.6,))]), None)
    assert answers.baseline == "a"
