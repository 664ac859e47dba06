"""Numbers as people and loggers write them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tokenaxis import units


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("1.2K", 1200.0),
        ("3.4M", 3_400_000.0),
        ("5B", 5e9),
        ("5G", 5e9),
        ("2T", 2e12),
        ("1.1m", 1_100_000.0),
        ("1,200", 1200.0),
        ("1,234,567", 1_234_567.0),
        ("1 234 567", 1_234_567.0),
        ("1_000", 1000.0),
        ("12.0", 12.0),
        ("1e9", 1e9),
        ("500 tokens", 500.0),
        ("1.25B tokens", 1.25e9),
    ],
)
def test_counts_are_read_with_their_unit(text: str, value: float) -> None:
    assert units.count(text) == value


@pytest.mark.parametrize("text", ["", "about 5", "5X", "1,20", "1,2000", "K", "1.2.3M", "0x10"])
def test_what_is_no_count_is_none(text: str) -> None:
    assert units.count(text) is None


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("0:32:48", 1968.0),
        ("9 days, 21:39:23", 9 * 86400 + 21 * 3600 + 39 * 60 + 23.0),
        ("1 day, 0:00:01", 86401.0),
        ("02:05", 125.0),
        ("0:00:01.5", 1.5),
        ("250ms", 0.25),
        ("1h 5m", 3900.0),
        ("3.5 s", 3.5),
        ("1.5", 1.5),
        ("2d3h", 2 * 86400 + 3 * 3600.0),
    ],
)
def test_durations_become_seconds(text: str, value: float) -> None:
    assert units.seconds(text) == value


@pytest.mark.parametrize("text", ["", "soon", "5 parsecs", "1:2:3:4"])
def test_what_is_no_duration_is_none(text: str) -> None:
    assert units.seconds(text) is None


def test_a_percentage_becomes_a_fraction() -> None:
    assert units.fraction("12.5%") == 0.125
    assert units.fraction("0.5") == 0.5
    assert units.fraction("half") is None


@given(st.integers(0, 10**15))
def test_thousands_separators_change_nothing(value: int) -> None:
    assert units.count(f"{value:,}") == value


@given(st.integers(0, 10**9))
def test_a_clock_survives_a_round_trip(value: int) -> None:
    hours, rest = divmod(value, 3600)
    assert units.seconds(f"{hours}:{rest // 60:02d}:{rest % 60:02d}") == value
