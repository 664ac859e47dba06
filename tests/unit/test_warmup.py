"""Where the learning-rate warm-up ends, as far as the log shows it."""

from __future__ import annotations

import numpy as np
import pytest

from tokenaxis.axis.warmup import Warmup, find_warmup, summarise_rate

PEAK = 1e-3
ONE_STAGE = np.array([0])


def ramp(rows: int, warm: int, every: int = 1) -> tuple[np.ndarray, np.ndarray]:
    """(step, lr): lr = peak * min(1, (step + 1) / warm)."""
    step = np.arange(0, rows, every)
    return step, PEAK * np.minimum(1.0, (step + 1) / warm)


def found(step: np.ndarray, lr: np.ndarray | None, starts: np.ndarray = ONE_STAGE) -> Warmup:
    return find_warmup(step, lr, starts)


def test_the_warmup_ends_at_the_first_row_within_1_percent_of_the_peak() -> None:
    assert found(*ramp(4000, 200)).end_step == 197


def test_sparse_rows_end_it_at_the_first_row_past_it() -> None:
    assert found(*ramp(4000, 200, every=20)).end_step == 200


def test_a_rate_at_its_peak_from_step_0_has_no_warmup() -> None:
    assert found(*ramp(3000, 1)).end_step == 0


def test_a_rate_that_still_climbs_at_the_last_row_is_inside_warmup() -> None:
    warmup = found(*ramp(150, 1000))
    assert warmup.end_step is None
    assert warmup.inside
    assert "warm-up" in warmup.reason


def test_a_rate_printed_with_few_digits_climbs_in_stairs() -> None:
    step, lr = ramp(500, 1000)
    assert found(step, np.round(lr, 5)).inside


def test_a_log_that_starts_past_the_warmup_does_not_show_it() -> None:
    step, lr = ramp(2500, 200)
    warmup = found(step[1300:], lr[1300:])
    assert (warmup.end_step, warmup.inside) == (None, False)
    assert "1300" in warmup.reason


def test_a_log_that_starts_past_the_warmup_of_a_decaying_rate_does_not_show_it_either() -> None:
    step = np.arange(1300, 2500)
    assert found(step, PEAK * np.cos(step / 2500 * np.pi / 2)).end_step is None


def test_a_log_that_starts_inside_the_warmup_shows_its_end() -> None:
    step, lr = ramp(2500, 200)
    assert found(step[100:], lr[100:]).end_step == 197


def test_a_rate_scaled_with_the_batch_has_its_end_of_warmup_in_the_first_stage() -> None:
    step, lr = ramp(3000, 200)
    lr[1200:] *= np.sqrt(2)
    lr[2400:] *= np.sqrt(2)
    assert found(step, lr, np.array([0, 1200, 2400])).end_step == 197


def test_a_batch_that_grows_inside_the_warmup_does_not_end_it() -> None:
    assert 593 <= (found(*ramp(3000, 600), np.array([0, 200])).end_step or 0) <= 599


def test_a_batch_that_grows_inside_the_warmup_of_a_log_that_ends_there_leaves_it_open() -> None:
    assert found(*ramp(400, 600), np.array([0, 200])).inside


def test_a_warmup_that_ends_shortly_before_a_switch_ends_there() -> None:
    step, lr = ramp(1000, 190)
    lr[200:] *= 2
    assert found(step, lr, np.array([0, 200])).end_step == 188


def test_a_decay_after_the_warmup_does_not_move_its_end() -> None:
    step, lr = ramp(4000, 200)
    lr[199:] *= 0.5 * (1 + np.cos(np.pi * np.arange(4000 - 199) / (4000 - 199)))
    assert found(step, lr).end_step == 197


def test_a_rate_raised_once_at_the_last_row_is_not_inside_warmup() -> None:
    step, lr = ramp(1000, 1)
    lr[-1] *= 1.5
    assert not found(step, lr).inside


def test_rows_without_a_rate_are_passed_over() -> None:
    step, lr = ramp(1000, 200)
    lr[::2] = np.nan
    assert found(step, lr).end_step == 197
    lr[197] = np.nan
    assert found(step, lr).end_step == 199


@pytest.mark.parametrize(
    ("lr", "word"),
    [(None, "no learning rate"), (np.full(5, np.nan), "nowhere positive"), (np.zeros(5), "nowhere positive")],
)
def test_without_a_rate_the_reason_is_given(lr: np.ndarray | None, word: str) -> None:
    warmup = found(np.arange(5), lr)
    assert (warmup.end_step, warmup.inside) == (None, False)
    assert word in warmup.reason


def test_a_constant_rate_after_warmup_is_said_to_be_constant() -> None:
    step, lr = ramp(1000, 200)
    rate = summarise_rate(step, lr, found(step, lr))
    assert rate is not None
    assert (rate.peak, rate.last, rate.constant_after_warmup) == (PEAK, PEAK, True)


def test_a_decaying_or_scaled_rate_is_not_constant() -> None:
    step, lr = ramp(1000, 200)
    for change in (0.5, 2.0):
        changed = lr * np.where(step > 800, change, 1.0)
        rate = summarise_rate(step, changed, found(step, changed, np.array([0, 801])))
        assert rate is not None
        assert not rate.constant_after_warmup


def test_inside_warmup_nothing_is_constant_yet() -> None:
    step, lr = ramp(150, 1000)
    rate = summarise_rate(step, lr, found(step, lr))
    assert rate is not None
    assert not rate.constant_after_warmup


def test_without_a_rate_there_is_no_summary() -> None:
    assert summarise_rate(np.arange(3), None, found(np.arange(3), None)) is None
    assert summarise_rate(np.arange(3), np.full(3, np.nan), found(np.arange(3), None)) is None
