"""A declared batch schedule, integrated exactly: tokens before any step, whatever the log shows of it."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from tokenaxis.errors import TokenAxisError


@dataclass(frozen=True)
class BatchSchedule:
    """Stages of a run by step. A step uses the last stage whose start is at or below the tokens consumed before it.

    Attributes:
        first_step: float64 (stages,), first step of each stage, non-decreasing (a stage may be empty).
        first_tokens: float64 (stages,), tokens consumed before that step.
        tokens_per_step: float64 (stages,).
    """

    first_step: np.ndarray
    first_tokens: np.ndarray
    tokens_per_step: np.ndarray

    @classmethod
    def from_pairs(cls, pairs: Iterable[tuple[float, float]]) -> BatchSchedule:
        """From ((start_tokens, tokens_per_step), ...).

        Raises:
            TokenAxisError: empty, not starting at 0 tokens, starts that do not ascend, or a batch that is not positive.
        """
        from fractions import Fraction  # exact, and 2 ms of import that most runs do without

        stages = [(float(start), float(batch)) for start, batch in pairs]
        _check(stages)
        step, tokens = Fraction(0), Fraction(0)
        rows: list[tuple[float, float, float]] = []
        for index, (_, batch) in enumerate(stages):
            rows.append((float(step), float(tokens), batch))
            if index + 1 < len(stages):
                missing = Fraction(stages[index + 1][0]) - tokens
                steps = max(0, math.ceil(missing / Fraction(batch)))
                step, tokens = step + steps, tokens + steps * Fraction(batch)
        first_step, first_tokens, per_step = (np.array(values) for values in zip(*rows, strict=True))
        return cls(first_step, first_tokens, per_step)

    def tokens_before(self, step: np.ndarray) -> np.ndarray:
        """Tokens consumed before each step: float64, shape of `step` (steps counted from 0)."""
        stage = self._stage(step)
        return self.first_tokens[stage] + (step - self.first_step[stage]) * self.tokens_per_step[stage]

    def batch_at(self, step: np.ndarray) -> np.ndarray:
        """Tokens that each step uses: float64, shape of `step`."""
        return self.tokens_per_step[self._stage(step)]

    def _stage(self, step: np.ndarray) -> np.ndarray:
        return np.searchsorted(self.first_step, step, side="right") - 1


def _check(stages: list[tuple[float, float]]) -> None:
    remedy = (
        "declare e.g. `defaults: {batch_schedule: [[0, 250000], [300000000, 500000]]}`: start in tokens, "
        "tokens per step"
    )
    if not stages or stages[0][0] != 0:
        raise TokenAxisError("the declared batch schedule does not start at 0 tokens", remedy=remedy)
    if not all(math.isfinite(start) and math.isfinite(batch) and batch > 0 for start, batch in stages):
        raise TokenAxisError("the declared batch schedule holds a batch that is not a positive number", remedy=remedy)
    if any(later[0] <= earlier[0] for earlier, later in zip(stages, stages[1:], strict=False)):
        raise TokenAxisError("the starts of the declared batch schedule do not ascend", remedy=remedy)
