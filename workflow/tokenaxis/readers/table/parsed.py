"""What both ways of parsing a table hand over."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from tokenaxis.errors import Notice

if TYPE_CHECKING:
    import numpy as np


@dataclass
class Parsed:
    """Rows in file order, before canonical columns are chosen.

    Attributes:
        values: index of a source -> float64 (rows,), NaN where the cell is blank or no finite number.
        lines: int64 (rows,), 1-based line of each row.
        unusable: index of a source -> kind ("nan", "inf", "text") -> int64 array of rows.
        kind_codes: int8 (rows,): 1 training, 2 validation, 0 neither; None without a `type` column.
        bad_lines: 1-based lines of rows that are no rows (wrong number of cells, torn).
        notices: oddities.
        whole: indices of sources that were parsed as integers.
    """

    values: dict[int, np.ndarray]
    lines: np.ndarray
    unusable: dict[int, dict[str, np.ndarray]] = field(default_factory=dict)
    kind_codes: np.ndarray | None = None
    bad_lines: list[int] = field(default_factory=list)
    notices: list[Notice] = field(default_factory=list)
    whole: frozenset[int] = frozenset()


#: loss of a `type` column -> code in `Parsed.kind_codes`
KIND_CODES = {"train_loss": 1, "val_loss": 2}
