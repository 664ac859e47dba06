"""The loss series that laws, crossings and sweeps work on: plain arrays, no files."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import numpy as np


@dataclass(frozen=True)
class LossSeries:
    """One loss of one run on its token axis; only rows with a finite loss.

    Attributes:
        name: "train_loss" or "val_loss".
        step: float64 (rows,), ascending.
        tokens: float64 (rows,), tokens consumed before the step, non-decreasing.
        loss: float64 (rows,), nats per token, finite.
        tokens_per_step: float64 (rows,), global batch in tokens.
        lr: float64 (rows,) or None when the log has none; NaN where a row has none.
        warmup_end_step: first step past the learning-rate warm-up; None when the log does not show it.
        inside_warmup: the lr still climbs at the last row.
        fit_start_step: declared first step of a fit, or None.
        nonfinite_tail: number of rows after the last finite loss whose loss is nan or inf (a diverged run).
        batch_schedule: declared ((start_tokens, tokens_per_step), ...) or None.
        lr_schedule: declared plan, or None.
        planned_tokens: planned end of the run in tokens, or None.
    """

    name: str
    step: np.ndarray
    tokens: np.ndarray
    loss: np.ndarray
    tokens_per_step: np.ndarray
    lr: np.ndarray | None = None
    warmup_end_step: int | None = None
    inside_warmup: bool = False
    fit_start_step: int | None = None
    nonfinite_tail: int = 0
    batch_schedule: tuple[tuple[float, float], ...] | None = None
    lr_schedule: dict[str, Any] | None = None
    planned_tokens: float | None = None
