"""The result of the token-axis stage: columns and what is known about them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import numpy as np


@dataclass
class TokenAxis:
    """One clean table, one row a step, in ascending steps.

    Attributes:
        columns: canonical name -> array (rows,): `step` int64, `attempt` int32, the rest float64 with NaN where the log
            has no value. Holds columns.ALWAYS, and the others where the log has them.
        meta: JSON-ready description; its keys are specified in docs/artifacts.md (token_axis).
    """

    columns: dict[str, np.ndarray]
    meta: dict[str, Any]
