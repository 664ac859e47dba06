"""What discovery finds in a sweep directory: files, runs, and what was left aside."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class LogFile:
    """One file below the sweep directory.

    Attributes:
        path: relative to the sweep directory.
        bytes: its size.
        stamp: changes with its content. It holds mtime and ctime: tools that copy a tree restore the mtime, nothing
            restores the ctime.
        format: its reader's name, where that is not the run's.
        part: which of the runs in the file, where it holds several.
        first_step: declared step at which the file begins; it counts from 0 again.
    """

    path: str
    bytes: int
    stamp: str
    format: str | None = None
    part: str | None = None
    first_step: int | None = None


@dataclass(frozen=True)
class Run:
    """One run of a sweep.

    Attributes:
        id: safe name, see ids.py.
        name: shown name: the path of its first file, its folder, or what is declared.
        format: reader's name.
        files: its logs, oldest first.
        declared: what was declared for it, JSON-ready.
        part: which run of its file, where that holds several.
        join: how rows of several files become one log: "attempts", "exports", "snapshots", "writers" or "columns"
            (see axis/joining.py); None for one file.
        grouped_because: in words, why these files are one run, or why a file that looks like part of a run is not.
        facts_from: files beside the logs whose settings are facts of this run.
        same_bytes_as: id of another run whose log has the same bytes, or None.
    """

    id: str
    name: str
    format: str
    files: tuple[LogFile, ...]
    declared: dict[str, Any]
    part: str | None = None
    join: str | None = None
    grouped_because: str | None = None
    facts_from: tuple[LogFile, ...] = ()
    same_bytes_as: str | None = None

    def as_record(self) -> dict[str, Any]:
        """JSON-ready. (dataclasses.asdict copies deeply: ten times the cost, which counts with 10,000 runs.)"""
        files, facts_from = ([vars(file).copy() for file in files] for files in (self.files, self.facts_from))
        return vars(self) | {"files": files, "facts_from": facts_from}


@dataclass
class Discovery:
    """What was found: runs, files that look like logs but cannot be used, files that are no logs, and notices
    ({code, message}) about the sweep as a whole."""

    runs: list[Run] = field(default_factory=list)
    refused: list[dict[str, Any]] = field(default_factory=list)
    passed_over: list[dict[str, str]] = field(default_factory=list)
    notices: list[dict[str, str]] = field(default_factory=list)


@dataclass(frozen=True)
class Seen:
    """A file that a reader reads: `format` is the reader's name, `parts` the runs in it (empty where it is one run)."""

    log: LogFile
    format: str
    parts: tuple[str, ...] = ()


@dataclass(frozen=True)
class Group:
    """Files that make one run; attributes as in `Run`, `key` is what its id is made from."""

    name: str
    key: str
    format: str
    files: tuple[LogFile, ...]
    join: str | None = None
    because: str | None = None
    part: str | None = None
