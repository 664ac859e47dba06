"""Batch stages: stretches of a run with one batch size."""

from __future__ import annotations

from typing import Any

import numpy as np

from tokenaxis.errors import Notice

#: with more stretches than this the batch varies from row to row (packed documents, padded batches): no stages
MAX_STAGES = 256


def stage_starts(tokens_per_step: np.ndarray) -> tuple[np.ndarray, list[Notice]]:
    """First row of every maximal run of rows with equal batch: int64 (stages,).

    A batch that varies from row to row has no stages: one stage stands for all rows, with a notice.

    Args:
        tokens_per_step: float64 (rows,).
    """
    starts = np.r_[0, np.flatnonzero(tokens_per_step[1:] != tokens_per_step[:-1]) + 1]
    if len(starts) <= MAX_STAGES:
        return starts, []
    text = (
        f"the batch size changes {len(starts) - 1:,} times, between {tokens_per_step.min():,.0f} and "
        f"{tokens_per_step.max():,.0f} tokens per step: shown as one stage with its mean"
    )
    return np.zeros(1, np.int64), [Notice("batch_varies", text)]


def describe_stages(
    starts: np.ndarray, step: np.ndarray, tokens: np.ndarray, tokens_per_step: np.ndarray
) -> list[dict[str, Any]]:
    """The stages as docs/artifacts.md describes them (`batch.stages`).

    Args:
        starts: int64 (stages,), first row of each.
        step, tokens, tokens_per_step: (rows,).
    """
    ends = np.r_[starts[1:] - 1, len(step) - 1]
    varies = len(starts) == 1 and not (tokens_per_step == tokens_per_step[0]).all()
    means = tokens_per_step.mean(keepdims=True) if varies else tokens_per_step[starts]
    return [
        {
            "first_step": int(step[start]),
            "last_step": int(step[end]),
            "first_tokens": float(tokens[start]),
            "last_tokens": float(tokens[end]),
            "tokens_per_step": float(mean),
        }
        for start, end, mean in zip(starts, ends, means, strict=True)
    ]
