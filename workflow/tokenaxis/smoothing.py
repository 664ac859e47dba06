"""Smoothers of a loss series whose windows are counted in tokens. Arrays in, arrays out."""

from __future__ import annotations

import numpy as np

#: rows per block of the scan: one matrix product of this width replaces as many steps of the recurrence
BLOCK = 64
#: stretches of equal weight shorter than this are run as a plain loop
SHORTEST_STRETCH = 4 * BLOCK


def ema_weight(tokens_per_step: np.ndarray, token_window: float) -> np.ndarray:
    """Weight of a new row in an EMA over `token_window` tokens, (rows,): 2 / (max(window / batch, 1) + 1).

    Source: the reference script's `token_window_ema`; for a fixed batch it is the usual span-to-weight rule
    2 / (span + 1) with a span in steps. A window below one batch does not smooth at all.
    """
    return 2.0 / (np.maximum(token_window / tokens_per_step, 1.0) + 1.0)


def token_window_ema(loss: np.ndarray, tokens_per_step: np.ndarray, token_window: float) -> np.ndarray:
    """The reference's EMA, (rows,): one decay per *row*, seeded with the first loss.

    Args:
        loss: (rows,) nats per token.
        tokens_per_step: (rows,) global batch of each row.
        token_window: window in tokens.
    """
    return _scan(loss, ema_weight(tokens_per_step, token_window))


def token_window_ema_rowwise(loss: np.ndarray, tokens_per_step: np.ndarray, token_window: float) -> np.ndarray:
    """`token_window_ema` in the reference's own order of operations, so that even the last bit agrees.

    The printed tokens of `law: seed` have ten digits; `token_window_ema` (equal to 1e-12) is the fast form.
    """
    out = np.empty(len(loss))
    average = float(loss[0])
    weights = ema_weight(tokens_per_step, token_window)
    for i, (value, weight) in enumerate(zip(loss.tolist(), weights.tolist(), strict=True)):
        average = weight * value + (1 - weight) * average
        out[i] = average
    return out


def gap_aware_ema(loss: np.ndarray, step: np.ndarray, tokens_per_step: np.ndarray, token_window: float) -> np.ndarray:
    """EMA over `token_window` tokens that does not widen when a log is thinned, (rows,).

    A row that stands for m steps (those since the row before it) decays the past by (1 - w)^m. With every step logged
    this is `token_window_ema`.
    """
    return _scan(loss, _gap_weights(step, tokens_per_step, token_window))


def two_sided_ema(loss: np.ndarray, step: np.ndarray, tokens_per_step: np.ndarray, token_window: float) -> np.ndarray:
    """Gap-aware EMA run forward and backward and normalised exactly, (rows,): no lag, and no bias at the ends.

    Each row is averaged with weights that fall off exponentially on both sides over `token_window` tokens.
    """
    steps = np.diff(step, prepend=step[0])
    steps[0] = steps[1] if len(steps) > 1 else 1.0
    weight = ema_weight(tokens_per_step, token_window)
    ahead = np.power(1.0 - weight, steps)  # decay from the row before to this one
    behind = np.append(ahead[1:], 0.0)[::-1]  # the same going backward: decay from the row after to this one
    ones = np.ones(len(loss))
    total = _sums(loss, ahead) + _sums(loss[::-1], behind)[::-1] - loss
    count = _sums(ones, ahead) + _sums(ones, behind)[::-1] - 1.0
    return total / count


def _sums(values: np.ndarray, decay: np.ndarray) -> np.ndarray:
    """Exponentially decayed sums s_i = decay_i * s_(i-1) + values_i, from s_(-1) = 0."""
    rest = np.where(decay < 1.0, 1.0 - decay, 1.0)  # _scan averages: scale its input so that it sums
    if (decay >= 1.0).any():  # two rows of one step decay nothing; the average has no such case
        return _loop_sums(values, decay)
    return _scan(values / rest, rest, start=0.0)


def _loop_sums(values: np.ndarray, decay: np.ndarray) -> np.ndarray:
    out, total = [], 0.0
    for value, kept in zip(values.tolist(), decay.tolist(), strict=True):
        total = kept * total + value
        out.append(total)
    return np.array(out)


def _gap_weights(step: np.ndarray, tokens_per_step: np.ndarray, token_window: float) -> np.ndarray:
    weight = ema_weight(tokens_per_step, token_window)
    steps = np.diff(step, prepend=step[0] - 1.0)
    return np.where(steps == 1.0, weight, 1.0 - np.power(1.0 - weight, steps))


def _scan(values: np.ndarray, weight: np.ndarray, start: float | None = None) -> np.ndarray:
    """y_i = w_i x_i + (1 - w_i) y_(i-1) with y_(-1) = start (the first value where None), (rows,).

    Stretches of equal weight run as matrix products, block by block; where the weight keeps changing, as a loop.
    """
    if len(values) == 0:
        return np.empty(0)
    carried = float(values[0]) if start is None else start
    cuts = np.flatnonzero(weight[1:] != weight[:-1]) + 1
    bounds = [0, *cuts.tolist(), len(values)]
    out = np.empty(len(values))
    if len(bounds) - 1 > max(len(values) // BLOCK, 1):
        _loop(values, weight, carried, out)
        return out
    for first, last in zip(bounds[:-1], bounds[1:], strict=True):
        if last - first < SHORTEST_STRETCH:
            _loop(values[first:last], weight[first:last], carried, out[first:last])
        else:
            _blocks(values[first:last], float(weight[first]), carried, out[first:last])
        carried = float(out[last - 1])
    return out


def _loop(values: np.ndarray, weight: np.ndarray, carried: float, out: np.ndarray) -> None:
    averages = []
    for value, share in zip(values.tolist(), weight.tolist(), strict=True):
        carried = share * value + (1 - share) * carried
        averages.append(carried)
    out[:] = averages


def _blocks(values: np.ndarray, weight: float, carried: float, out: np.ndarray) -> None:
    """Constant weight: inside a block one triangular product, between blocks one number is carried."""
    rows = len(values)
    blocks = -(-rows // BLOCK)
    padded = np.full(blocks * BLOCK, values[-1])
    padded[:rows] = values
    lag = np.arange(BLOCK)
    decay = (1.0 - weight) ** (lag + 1)
    kernel = np.tril(weight * (1.0 - weight) ** np.maximum(lag[:, None] - lag[None, :], 0))
    inside = padded.reshape(blocks, BLOCK) @ kernel.T
    starts, kept = [], float(decay[-1])
    for last in inside[:, -1].tolist():
        starts.append(carried)
        carried = last + kept * carried
    inside += np.multiply.outer(np.array(starts), decay)
    out[:] = inside.ravel()[:rows]
