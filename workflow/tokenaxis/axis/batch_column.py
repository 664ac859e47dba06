"""A batch column of the log: its usable cells, and what may stand in the others."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tokenaxis.axis.wording import counted
from tokenaxis.errors import Notice, TokenAxisError

_UNKNOWN = "the batch size is unknown where the log's batch column is blank"


@dataclass(frozen=True)
class BatchColumn:
    """Cells of a batch column, one a step.

    Attributes:
        cells: float64 (rows,), positive; NaN where the cell is blank or no positive number.
        unusable: int64, rows whose cell was zero or negative.
    """

    cells: np.ndarray
    unusable: np.ndarray

    @classmethod
    def from_values(cls, values: np.ndarray | None) -> BatchColumn | None:
        """From the log's values (rows,); None where there is no column or not one positive number in it."""
        if values is None:
            return None
        usable = values > 0
        if usable.all():
            return cls(values, np.empty(0, np.int64))
        if not usable.any():
            return None
        return cls(np.where(usable, values, np.nan), np.flatnonzero(values <= 0))

    @property
    def known(self) -> np.ndarray:
        """bool (rows,): the cell holds a batch size."""
        return ~np.isnan(self.cells)

    def filled(self, step: np.ndarray, declared: float | None) -> tuple[np.ndarray, list[Notice]]:
        """One batch for every row: float64 (rows,), and what was assumed.

        A blank cell gets the batch of the row before it: the only possible value between two equal ones, and else as
        good as a row that was not logged at all (the switch lies between two known rows, see `switch_bounds`).
        Rows before the first known one have no such neighbour. They are filled where the log knows a single batch
        size, where one is declared, or where it is step 0 alone.

        Args:
            step: int64 (rows,), ascending.
            declared: declared fixed batch, or None.

        Raises:
            TokenAxisError: the first rows have no batch and more than one value is possible.
        """
        known = self.known
        if known.all():
            return self.cells, []
        index = np.maximum.accumulate(np.where(known, np.arange(len(known)), -1))
        filled = self.cells[np.maximum(index, 0)]
        leading = int(np.argmax(known))
        if leading:
            filled[:leading] = self._before_first(step, leading, declared)
        blank = np.flatnonzero(~known)
        text = (
            f"{counted(len(blank), 'row')} without a usable batch size (steps {step[blank[0]]} to {step[blank[-1]]}) "
        )
        return filled, [Notice("batch_filled", text + "got the batch size of their neighbours")]

    def _before_first(self, step: np.ndarray, leading: int, declared: float | None) -> float:
        first = self.cells[leading]
        if np.nanmin(self.cells) == np.nanmax(self.cells) or (leading == 1 and step[0] == 0):
            return float(first)
        if declared is not None:
            return declared
        reason = (
            f"{_UNKNOWN}: its first {counted(leading, 'row')} (to step {step[leading - 1]}) come before any batch size"
        )
        remedy = f"declare what it was before, e.g. `defaults: {{tokens_per_step: {first:.0f}}}`, or batch_schedule"
        raise TokenAxisError(reason, remedy=remedy)

    def switch_bounds(self, step: np.ndarray) -> tuple[float, float, np.ndarray]:
        """How far the tokens of the last row may lie from those that `filled` gives.

        Where two neighbouring known rows n > 1 steps apart differ (b0, b1), the switch is somewhere between: at least
        one step used b0, so the n steps consumed between b0·n and b0 + b1·(n - 1) tokens.

        Returns:
            (lowest, highest, rows): what to add to the tokens of the last row, lowest <= 0 <= highest; and the rows
            before which a switch is hidden, int64.
        """
        rows = np.flatnonzero(self.known)
        batch, gap = self.cells[rows], np.diff(step[rows])
        hidden = np.flatnonzero((batch[1:] != batch[:-1]) & (gap > 1))
        change = (batch[hidden + 1] - batch[hidden]) * (gap[hidden] - 1)
        lowest, highest = float(change[change < 0].sum()), float(change[change > 0].sum())
        return lowest, highest, rows[hidden + 1]
