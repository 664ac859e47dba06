"""Lines of a key-value log that are rows, and those that are none: of other ranks, or written before."""

from __future__ import annotations

import math
import re
from collections import deque
from itertools import islice, pairwise

from tokenaxis.errors import Notice
from tokenaxis.readers.lines import rank_of
from tokenaxis.readers.records import as_number

#: rows among which a line is looked for that was written before (a screen that was drawn again)
_RECENT = 1024
#: lines by which it is seen whether ranks take turns, and bytes of a line in which a rank stands
FIRST_LINES, _LEAD = 400, 100
_PHASE = re.compile(r"^(?:train|training|val|valid|validation|eval|evaluation)[ _/.\-]")


class Row:
    """Names and numbers of a line.

    Attributes:
        cells: name -> number as the line has it.
        name: of the step.
    """

    def __init__(self, cells: dict[str, str], name: str) -> None:
        self.cells = cells
        self.name = name

    def call_step(self, known: str | None) -> str:
        """Give the step the name that lines before gave it if it is the same but for its phase (`val step`)."""
        if known is None:
            return self.name
        if known not in self.cells and _PHASE.sub("", self.name.lower()) == _PHASE.sub("", known.lower()):
            self.cells[known] = self.cells.pop(self.name)
            self.name = known
        return known

    @property
    def number(self) -> float:
        """The step; -infinity for what is none."""
        number, _ = as_number(self.cells[self.name], "step")
        return number if number == number else -math.inf


class Repeats:
    """Lines that are no rows of their own: those of other ranks, and those that stand among the last ones already.

    Lines that stand above and lead to a step that was done before are a run that does them again.
    """

    def __init__(self, rank: int | None) -> None:
        self.rank = rank
        self.recent: deque[bytes] = deque(maxlen=_RECENT)
        self.known: set[bytes] = set()
        self.others = self.again = 0
        self.pending: list[tuple[int, Row]] = []
        self.before = self.highest = self.redone_to = -math.inf

    def fresh(self, text: bytes, line: int, row: Row) -> list[tuple[int, dict[str, str]]]:
        """Rows to take now that a line came."""
        if self.rank is not None and rank_of(text[:_LEAD]) not in (None, self.rank):
            self.others += 1
            return []
        if text in self.known and row.number > self.redone_to:
            self.pending.append((line, row))
            return []
        rows = [(line, row.cells)]
        if row.number < self.before:
            self.redone_to = self.highest  # until then equal lines are equal by chance
        if self.pending:
            if row.number <= self.before:
                rows[:0] = [(earlier, known.cells) for earlier, known in self.pending]
            else:
                self.again += len(self.pending)
            self.pending.clear()
        self.before = row.number
        self.highest = max(self.highest, row.number)
        if len(self.recent) == _RECENT:
            self.known.discard(self.recent[0])
        self.recent.append(text)
        self.known.add(text)
        return rows

    def notices(self) -> list[Notice]:
        notices = []
        if self.others:
            message = f"ranks take turns; lines of rank {self.rank} were taken, {self.others} of others left out"
            notices.append(Notice("lines_of_other_ranks", message))
        again = self.again + len(self.pending)
        if again:
            message = f"{again} lines stand above word for word; they were left out and are no resume"
            notices.append(Notice("reprinted_lines", message))
        return notices


def one_rank(data: bytes, pattern: re.Pattern[bytes]) -> int | None:
    """The lowest of the ranks that take turns in writing lines; None where they do not."""
    lines = islice(pattern.finditer(data), FIRST_LINES)
    ranks = [rank for match in lines if (rank := rank_of(match.group()[:_LEAD])) is not None]
    turns = sum(one != other for one, other in pairwise(ranks))
    return min(ranks) if len(set(ranks)) > 1 and turns >= 0.3 * len(ranks) else None
