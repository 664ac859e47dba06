"""First, best and last loss of a run, for the metadata of its token axis (`losses`) and so for its passport."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tokenaxis.columns import LOSSES

if TYPE_CHECKING:
    from collections.abc import Mapping

    import numpy as np


def summarise(columns: Mapping[str, np.ndarray]) -> dict[str, dict[str, Any]]:
    """Loss column -> {rows, first, best, last}, the three as {loss, step, tokens}; a column without values is left out.

    Args:
        columns: of a token axis (rows,): `step`, `tokens`, and the losses it has, NaN where a row has none.
    """
    import numpy as np

    found = {}
    for column in LOSSES:
        rows = np.flatnonzero(np.isfinite(columns[column])) if column in columns else np.empty(0, dtype=np.int64)
        if rows.size:
            places = {"first": rows[0], "best": rows[np.argmin(columns[column][rows])], "last": rows[-1]}
            found[column] = {"rows": int(rows.size)} | {
                name: {
                    "loss": float(columns[column][row]),
                    "step": int(columns["step"][row]),
                    "tokens": float(columns["tokens"][row]),
                }
                for name, row in places.items()
            }
    return found
