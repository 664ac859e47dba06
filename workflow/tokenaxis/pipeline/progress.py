"""What a person at a terminal sees of long work: runs and rows done, the rate, the time left."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, TextIO, TypeVar

if TYPE_CHECKING:
    from tokenaxis.pipeline.runner import Task

Outcome = TypeVar("Outcome", bound="tuple[Task, str, str]")

#: seconds between two lines; short work says nothing
EVERY_S = 3.0


class Progress:
    """Says now and then how far a stage has come. Whole lines: several jobs may share the terminal.

    Args:
        stage: its name.
        say: takes a line.
        rows_of: rows of a run's log, or None where that is not known.
        clock: seconds.
        every: seconds between two lines.
    """

    def __init__(
        self,
        stage: str,
        say: Callable[[str], None],
        rows_of: Callable[[str], int | None],
        clock: Callable[[], float] = time.monotonic,
        every: float = EVERY_S,
    ):
        self.stage, self.say, self.rows_of, self.clock, self.every = stage, say, rows_of, clock, every
        self.done = self.rows = self.total = 0
        self.began = self.said = clock()

    @classmethod
    def on_terminal(cls, stage: str, results: Path, stream: TextIO = sys.stderr) -> Progress | None:
        """A progress on stderr, or None if nobody is watching."""
        if not stream.isatty():
            return None
        return cls(stage, lambda line: print(line, file=stream, flush=True), lambda run: _rows(results, run))

    def start(self, total: int) -> None:
        """`total` runs are to be computed."""
        self.total = total
        self.began = self.said = self.clock()

    def step(self, run_id: str) -> None:
        """One more is done."""
        self.done += 1
        self.rows += self.rows_of(run_id) or 0
        now = self.clock()
        if now - self.said >= self.every and self.done < self.total:
            self.said = now
            self.say(self.line(now - self.began))

    def line(self, elapsed: float) -> str:
        """The state after `elapsed` seconds, in words."""
        rate = self.done / elapsed
        left = (self.total - self.done) / rate
        rows = f", {_short(self.rows)} rows" if self.rows else ""
        return (
            f"{self.stage}: {self.done} of {self.total} runs{rows}, {rate:.3g} runs/s"
            f"{f', {_short(self.rows / elapsed)} rows/s' if self.rows else ''}, {_duration(left)} left"
        )


def followed(outcomes: Iterable[Outcome], total: int, progress: Progress | None) -> Iterator[Outcome]:
    """The outcomes as they come; `progress` is told of each."""
    if progress is not None:
        progress.start(total)
    for outcome in outcomes:
        if progress is not None:
            progress.step(outcome[0].run["id"])
        yield outcome


def _rows(results: Path, run_id: str) -> int | None:
    from pyarrow._parquet import ParquetReader

    try:
        reader = ParquetReader()
        reader.open(str(results / "token_axis" / f"{run_id}.parquet"), use_memory_map=False)
        return reader.metadata.num_rows
    except Exception:  # pyarrow's own errors and OSError: the run was refused, or is being written
        return None


def _short(number: float) -> str:
    for size, letter in ((1e9, "B"), (1e6, "M"), (1e3, "k")):
        if number >= size:
            return f"{number / size:.3g}{letter}"
    return f"{number:.0f}"


def _duration(seconds: float) -> str:
    if seconds < 90:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 5400 else f"{seconds / 3600:.1f} h"
