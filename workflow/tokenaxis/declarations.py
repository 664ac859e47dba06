"""What the user declares about a run: configs/sweeps/<sweep>.yaml, or flags of a script. A declaration always wins."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import Any


@dataclass(frozen=True)
class Declaration:
    """Everything that a user may say about one run. Nothing is defaulted here: None means "not declared".

    Attributes:
        format: name of the reader to use.
        columns: canonical column name -> the file's own name.
        tokens_per_step: fixed global batch in tokens.
        batch_schedule: ((start_tokens, tokens_per_step), ...) ascending; a step uses the last stage whose start is at
            or below the tokens consumed before it.
        tokens_convention: "before" or "after": whether a logged tokens column counts before or after the row's step.
        seq_len: tokens per sequence, for batches logged in sequences.
        fit_start_step: first step of the fit (the end of warm-up where the log does not show it).
        lr_schedule: planned schedule, e.g. {"kind": "cosine", "final": 0.1}; see the fits stage.
        planned_tokens, planned_steps: the planned end of the run.
        facts: fact key -> value (n_params, n_layers, ...), offered with source "declared".
    """

    format: str | None = None
    columns: dict[str, str] = field(default_factory=dict)
    tokens_per_step: float | None = None
    batch_schedule: tuple[tuple[float, float], ...] | None = None
    tokens_convention: str | None = None
    seq_len: int | None = None
    fit_start_step: int | None = None
    lr_schedule: dict[str, Any] | None = None
    planned_tokens: float | None = None
    planned_steps: int | None = None
    facts: dict[str, Any] = field(default_factory=dict)

    def as_dict(self) -> dict[str, Any]:
        """JSON-ready, without what was not declared."""
        return {key: value for key, value in asdict(self).items() if value not in (None, {}, ())}

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> Declaration:
        """The inverse of `as_dict`."""
        known = dict(data)
        if known.get("batch_schedule") is not None:
            known["batch_schedule"] = tuple((float(start), float(batch)) for start, batch in known["batch_schedule"])
        return cls(**known)
