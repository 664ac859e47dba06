"""Numbers in words: digits, units, ends of intervals, order of names."""

from __future__ import annotations

import pytest

from tokenaxis.comparison import quantities as q


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (2_310_000, "2.31M"),
        (1.05e9, "1.05B"),
        (999_499, "999K"),
        (999_999, "1.00M"),
        (1000, "1.00K"),
        (512, "512"),
        (0, "0"),
        (3.3e12, "3.30T"),
        (12_345, "12.3K"),
        (0.5, "0.500"),
        (None, "—"),
        (float("nan"), "—"),
        (float("inf"), "—"),
    ],
)
def test_tokens_have_three_digits_and_a_prefix(value: float | None, text: str) -> None:
    assert q.short(value) == text


def test_exact_numbers_give_the_number_back() -> None:
    assert q.exact(2_310_000.0) == "2,310,000"
    assert q.exact(0.1 + 0.2) == "0.30000000000000004"


@pytest.mark.parametrize(("value", "text"), [(1.6, "1.60"), (3.2875, "3.2875"), (2.0, "2.00"), (1.600001, "1.600001")])
def test_two_targets_never_look_alike(value: float, text: str) -> None:
    assert q.target(value) == text


def test_an_interval_without_an_upper_end_says_so() -> None:
    assert q.interval(2.25e6, 2.38e6) == "[2.25M, 2.38M]"
    assert q.interval(2.25e6, None) == "[2.25M, unbounded)"
    assert q.interval(None, None) == ""
    assert q.times_interval(1.1, None) == "[1.10, unbounded)"


def test_flop_are_in_scientific_notation() -> None:
    assert q.flop(1.234e18) == "1.23e18"
    assert q.flop(None) == "—"


@pytest.mark.parametrize(("seconds", "text"), [(42, "42.0 s"), (750, "12.5 min"), (112_320, "31.2 h")])
def test_durations_take_the_unit_that_suits(seconds: float, text: str) -> None:
    assert q.duration(seconds) == text


def test_runs_are_in_the_order_in_which_people_count() -> None:
    names = ["gpt_16Kbs", "gpt_4Kbs", "gpt_2Kbs", "a", "²", "10", "9", ""]
    assert sorted(names, key=q.natural) == ["", "9", "10", "a", "gpt_2Kbs", "gpt_4Kbs", "gpt_16Kbs", "²"]


def test_both_ends_of_a_long_name_stay() -> None:
    short = q.elided("sweep/very/long/name/of/a/run_with_lr_0.0003", 20)
    assert len(short) == 20
    assert short.startswith("sweep/very") and short.endswith("0.0003")


def test_a_chance_has_no_more_digits_than_a_model_can_know() -> None:
    assert [q.chance(value) for value in (0.0, 0.009, 0.01, 0.234, 0.99, 0.995)] == [
        "<1%",
        "<1%",
        "1%",
        "23%",
        "99%",
        ">99%",
    ]
