"""Rows whose step is none: what is wrong with it, by kind, and when it is no step column at all."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from tokenaxis.errors import Notice, TokenAxisError

if TYPE_CHECKING:
    import numpy as np

#: whole numbers above this are not exact in float64, nor in the JSON of most programs
LARGEST_STEP = 2.0**53
_SHOWN = 5
REMEDY = (
    "declare the column that counts optimizer steps in configs/sweeps/<sweep>.yaml, e.g. "
    "`defaults: {columns: {step: global_step}}`"
)


def refuse_beyond(steps: np.ndarray, lines: np.ndarray) -> None:
    """Refuse a log with a step that float64 does not count exactly.

    Dropping such rows would be wrong in silence: it is a counter of something else (nanoseconds, hashes), of which a
    few rows look like steps.

    Args:
        steps: float64 (rows,), NaN where a row has none.
        lines: int64 (rows,), 1-based lines of the file.

    Raises:
        TokenAxisError: a step beyond 2^53, with its line.
    """
    import numpy as np

    if not len(steps) or not np.fmax.reduce(steps) > LARGEST_STEP:
        return
    row = int(np.argmax(steps > LARGEST_STEP))
    raise TokenAxisError(
        f"the step column holds no optimizer steps: {steps[row]:.17g} is beyond 2^53, where steps are no longer exact",
        line=int(lines[row]),
        remedy=f"correct the line if it is damaged; else {REMEDY}",
    )


def refuse_mostly_bad(steps: np.ndarray, good: np.ndarray, lines: np.ndarray) -> None:
    """Refuse a log in which hardly every second number in the step column is a step: it counts something else.

    Args:
        steps, lines: as in `refuse_beyond`.
        good: bool (rows,), rows with a usable step.

    Raises:
        TokenAxisError: epochs, fractions or negative numbers, with the first line of them.
    """
    import numpy as np

    wrong = ~good & ~np.isnan(steps)
    if 2 * int(good.sum()) > int(good.sum()) + int(wrong.sum()) or not wrong.any():
        return
    first = int(np.argmax(wrong))
    why = "is below 0" if steps[first] < 0 else "is no whole number"
    raise TokenAxisError(
        f"the step column holds no optimizer steps: {steps[first]:g} {why}", line=int(lines[first]), remedy=REMEDY
    )


def notices(steps: np.ndarray, lines: np.ndarray) -> list[Notice]:
    """A notice for each kind of unusable step among rows that were dropped: blank, negative, or a fraction.

    Args:
        steps: float64 (rows,), the steps of just these rows.
        lines: int64 (rows,), their lines.
    """
    import numpy as np

    negative = steps < 0
    blank = np.isnan(steps)
    kinds = (
        ("rows_without_step", blank, "without a usable step"),
        ("negative_steps", negative, "with a step below 0"),
        ("fractional_steps", ~blank & ~negative, "with a step that is no whole number"),
    )
    return [Notice(code, _described(steps[where], lines[where], words)) for code, where, words in kinds if where.any()]


def _described(steps: np.ndarray, lines: Sequence[int] | np.ndarray, words: str) -> str:
    count = len(steps)
    shown = ", ".join(str(int(line)) for line in lines[:_SHOWN]) + (", ..." if count > _SHOWN else "")
    first = "" if steps[0] != steps[0] else f"; the first is {steps[0]:g}"
    return (
        f"{count:,} {'row' if count == 1 else 'rows'} {words} left out (line{'' if count == 1 else 's'} {shown}{first})"
    )
