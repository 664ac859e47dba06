"""The section `comparison` of params.yaml, as this package uses it."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any


@dataclass(frozen=True)
class Options:
    """Every key of the section; params.yaml says what each is for."""

    baseline: str | None
    figures: tuple[str, ...]
    smooth_half_width: float
    min_runs_per_target: int
    headline_targets: int
    hindsight_horizons: tuple[float, ...]
    batch_size_horizon: float
    scaling_huber: float
    scaling_resamples: int

    @classmethod
    def of(cls, params: dict[str, Any]) -> Options:
        """From the section, whose schema has checked it.

        Raises:
            KeyError: a key is missing.
        """
        values: dict[str, Any] = {field.name: params[field.name] for field in fields(cls)}
        lists = {name: tuple(value) for name, value in values.items() if isinstance(value, list)}
        return cls(**(values | lists))
