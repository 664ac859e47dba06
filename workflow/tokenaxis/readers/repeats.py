"""Rows that a console shows more than once: every rank writes the line, or a recorded screen was drawn again.

Neither is a resume, which does steps again. Only a log whose steps do not ascend is looked at, so that others cost one
comparison.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING

from tokenaxis.columns import LOSSES
from tokenaxis.errors import Notice
from tokenaxis.readers.lines import rank_of

if TYPE_CHECKING:
    import numpy as np

    from tokenaxis.readers.textlog import Rows

#: bytes of a line in which its rank is looked for
_LEAD = 100
#: ranks write one line each before the next step's: their rows lie at most so many rows apart
_NEAR = 1024
#: share of the steps that must stand more than once, or with two ranks (one may miss lines), and of rows after which
#: the rank changes (a job that was resumed elsewhere changes it once)
_MOST, _ALTERNATING = 0.8, 0.3


def once_each(data: bytes, found: Sequence[Rows], whole_lines: bool = True) -> tuple[list[Rows], list[Notice]]:
    """Rows without repeats, and what was left out.

    Args:
        data: the log, in which rows begin at their offsets.
        found: rows by pattern, each in file order.
        whole_lines: lines hold times, so that two lines of the same bytes are one that was printed again.
    """
    import numpy as np

    kept: list[Rows] = []
    left = Counter[str]()
    others: set[int] = set()
    for rows in found:
        steps = rows.columns["step"]
        if len(steps) > 1 and not bool((np.diff(steps) > 0).all()):
            keep, chosen, ranks = _of_one_rank(data, rows)
            left["rank"] += len(rows.offsets) - int(keep.sum())
            others |= ranks - {chosen}
            rows = rows.only(keep)
            keep = _distinct(rows)
            left["repeated"] += len(keep) - int(keep.sum())
            rows = rows.only(keep)
        kept.append(rows)
    if whole_lines:
        flags = [_printed_once(data, rows) for rows in kept]
        if not all(keep.all() for keep in flags):
            kept, left["reprinted"] = _whole_stretches(kept, flags)
    return kept, _notices(left, others)


def _whole_stretches(found: list[Rows], flags: list[np.ndarray]) -> tuple[list[Rows], int]:
    """(rows, how many were left out) without those that stand above word for word.

    Lines that go back to earlier steps are left out only if all of them stand above: a run that does its steps again
    with the same numbers writes lines, of evaluations say, that are equal by right.

    Args:
        found: rows by pattern.
        flags: bool (rows,) of each pattern, False for what stands above.
    """
    import numpy as np

    offsets = np.concatenate([rows.offsets for rows in found])
    steps = np.concatenate([np.nan_to_num(rows.columns["step"], nan=-1.0) for rows in found])
    order = np.argsort(offsets, kind="stable")
    keep, ordered = np.concatenate(flags)[order], steps[order]
    falls = np.r_[False, ordered[1:] < ordered[:-1]]
    stretch = np.cumsum(falls)
    before = np.r_[
        -1.0, np.maximum.accumulate(ordered)[np.flatnonzero(falls) - 1]
    ]  # the highest step above each stretch
    redone = keep & (ordered <= before[stretch])
    keep |= np.isin(stretch, stretch[redone])
    kept = np.empty(len(order), bool)
    kept[order] = keep
    parts = np.split(kept, np.cumsum([len(rows.offsets) for rows in found])[:-1])
    return [rows.only(part) for rows, part in zip(found, parts, strict=True)], int((~kept).sum())


def _notices(left: Counter[str], others: set[int]) -> list[Notice]:
    notices = []
    if left["rank"]:
        message = f"{len(others) + 1} ranks wrote the same steps; lines of one were taken, {left['rank']} left out"
        notices.append(Notice("lines_of_other_ranks", message))
    if left["repeated"]:
        message = (
            f"rows stand more than once, as where every rank writes them; {left['repeated']} repeats were left out"
        )
        notices.append(Notice("repeated_lines", message))
    if left["reprinted"]:
        message = (
            f"{left['reprinted']} rows stand above word for word (a recorded screen, overlapping pieces); "
            "they were left out and are no resume"
        )
        notices.append(Notice("reprinted_lines", message))
    return notices


def _of_one_rank(data: bytes, rows: Rows) -> tuple[np.ndarray, int | None, set[int]]:
    """(rows to keep, the rank that they are of, ranks that take turns)."""
    import numpy as np

    everything = np.ones(len(rows.offsets), bool)
    ranks = [rank_of(data[start : start + _LEAD].split(b"\n", 1)[0]) for start in rows.offsets.tolist()]
    numbers = np.array([-1 if rank is None else rank for rank in ranks])
    counts = Counter(rank for rank in ranks if rank is not None)
    if len(counts) < 2:
        return everything, None, set()
    if (numbers[1:] != numbers[:-1]).mean() < _ALTERNATING and not _same_steps(rows, numbers, counts):
        return everything, None, set()
    most = max(counts.values())
    chosen = min(rank for rank, count in counts.items() if count >= 0.9 * most)
    return numbers == chosen, chosen, set(counts)


def _same_steps(rows: Rows, numbers: np.ndarray, counts: Counter[int]) -> bool:
    """Whether the two ranks with most rows have the same steps: files of ranks one behind the other."""
    import numpy as np

    (one, most), (other, _) = counts.most_common(2)
    steps = rows.columns["step"]
    return len(np.intersect1d(steps[numbers == one], steps[numbers == other])) >= _MOST * most


def _distinct(rows: Rows) -> np.ndarray:
    """Rows that are no copy of a near one with the same step and losses; all, unless most steps have copies."""
    import numpy as np

    values = [rows.columns[name].tolist() for name in ("step", *LOSSES) if name in rows.columns]
    seen: dict[tuple[str, ...], int] = {}
    keep = np.ones(len(rows.offsets), bool)
    distances = []
    copied = set()
    for row, cells in enumerate(zip(*values, strict=True)):
        key = tuple(map(repr, cells))
        earlier = seen.get(key)
        if earlier is not None and row - earlier <= _NEAR:
            keep[row] = False
            copied.add(key)
            distances.append(row - earlier)
        seen[key] = row
    copies = len(keep) / max(1, len(seen))
    near = bool(distances) and float(np.median(distances)) <= 2 * copies
    return keep if near and len(copied) >= _MOST * len(seen) else np.ones(len(keep), bool)


def _printed_once(data: bytes, rows: Rows) -> np.ndarray:
    """Rows whose line is not, byte for byte, that of an earlier row."""
    import numpy as np

    keep = np.ones(len(rows.offsets), bool)
    highest = np.maximum.accumulate(np.nan_to_num(rows.columns["step"], nan=-1.0))
    again = set(rows.columns["step"][1:][rows.columns["step"][1:] <= highest[:-1]].tolist())
    if not again:
        return keep
    seen: set[bytes] = set()
    for row, (start, step) in enumerate(zip(rows.offsets.tolist(), rows.columns["step"].tolist(), strict=True)):
        if step in again:
            end = data.find(b"\n", start)
            line = data[start : end if end >= 0 else len(data)]
            keep[row] = line not in seen
            seen.add(line)
    return keep
