"""The runs of a sweep directory: which files are logs, which of them make one run, and why the others are not.

This runs each time the Snakefile is parsed, on the main machine and in every cluster job. So a file that was seen
before costs a stat, and nothing here imports numpy or pyarrow.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from tokenaxis import readers
from tokenaxis.errors import Notice, TokenAxisError, printable
from tokenaxis.pipeline.hashes import file_stamp
from tokenaxis.readers import sqlite
from tokenaxis.sweep import beside
from tokenaxis.sweep.copies import without_copies
from tokenaxis.sweep.declared import SweepDeclaration
from tokenaxis.sweep.folders import walk
from tokenaxis.sweep.grouping import group
from tokenaxis.sweep.ids import run_ids
from tokenaxis.sweep.known import Known
from tokenaxis.sweep.model import Discovery, Group, LogFile, Run, Seen
from tokenaxis.sweep.twins import without_twins
from tokenaxis.sweep.unmatched import unmatched

__all__ = ["Discovery", "LogFile", "Run", "discover"]

#: runs that a notice names
_SHOWN = 5


def discover(
    root: Path,
    declared: SweepDeclaration,
    ignore: list[str],
    cache: Path | None = None,
    only: Sequence[str] | None = None,
) -> Discovery:
    """Look at every file below `root`, and say which make which run.

    Args:
        root: the sweep directory.
        declared: the sweep's declarations.
        ignore: glob patterns of file and folder names that are passed over.
        cache: a file that remembers what was seen, keyed by path, size and times.
        only: look at just these files, relative to `root`.

    Raises:
        TokenAxisError: `root` is not a directory.
    """
    if not root.is_dir():
        raise TokenAxisError(
            "is not a directory of raw logs", file=str(root), remedy="give one: --config logs=DIR sweep=NAME"
        )
    known = Known(root, cache)
    found = Discovery()
    files = walk(root, ignore, found) if only is None else [(path, os.stat(root / path)) for path in only]
    files = sorted(files)
    logs, empty_events, settings = _look(files, declared, known, found)
    logs, equal = without_copies(logs, declared, known, found)
    groups = group(logs, declared, known.extent)
    groups = without_twins(groups, declared, known.extent, known.sample, found)
    _place_empty_events(empty_events, groups, found)
    beside_of = beside.settings_of(groups, settings)
    declarations = _Declarations(declared)
    for number, (one, run_id) in enumerate(zip(groups, run_ids([one.key for one in groups]), strict=True)):
        _add(found, one, run_id, declarations, tuple(beside_of.get(number, ())))
    _note_equal(found, equal)
    if only is None:
        found.notices += unmatched(declared, [path for path, _ in files], [one.name for one in groups])
    for names in (found.refused, found.passed_over):
        names.sort(key=lambda entry: entry["name"])
    known.save()
    return found


def _look(
    files: Sequence[tuple[str, os.stat_result]], declared: SweepDeclaration, known: Known, found: Discovery
) -> tuple[list[Seen], list[LogFile], list[LogFile]]:
    """(logs, event files without a scalar, files that may state settings); the rest goes to `found`."""
    logs: list[Seen] = []
    empty_events: list[LogFile] = []
    settings: list[LogFile] = []
    beside_databases = _beside_databases(files)
    for path, entry_stat in files:
        name = printable(path)
        if declared.ignores(path):
            found.passed_over.append({"name": name, "reason": "ignored by declaration"})
            continue
        if not stat.S_ISREG(entry_stat.st_mode):
            found.passed_over.append({"name": name, "reason": "not a regular file"})
            continue
        log = LogFile(path, entry_stat.st_size, file_stamp(entry_stat) + beside_databases.get(path, ""))
        kind, detail = known.look(log)
        if kind != "log":
            kind, detail = _again(log, kind, detail, declared, known)
        if kind == "log":
            logs.append(Seen(log, detail[0], tuple(detail[1])))
        elif kind == "refused" and "tfevents" in os.path.basename(path):
            empty_events.append(log)
            found.refused.append({"name": name, "reason": detail[0], "remedy": detail[1]})
        elif kind == "refused":
            found.refused.append({"name": name, "reason": detail[0], "remedy": detail[1]})
        else:
            if beside.states_settings(path):
                settings.append(log)
            found.passed_over.append({"name": name, "reason": detail[0]})
    return logs, empty_events, settings


def _beside_databases(files: Sequence[tuple[str, os.stat_result]]) -> dict[str, str]:
    """Path of a database -> stamps of what its writer left beside it, which is read with it."""
    found: dict[str, str] = {}
    for path, entry_stat in files:
        for ending in sqlite.BESIDE:
            if path.endswith(ending):
                own = path.removesuffix(ending)
                found[own] = f"{found.get(own, '')}{ending}{file_stamp(entry_stat)}"
    return found


def _again(log: LogFile, kind: str, detail: list, declared: SweepDeclaration, known: Known) -> tuple[str, list]:
    """A file that is no log by itself, with what is declared for it."""
    if not declared.entries:
        return kind, detail
    forced = declared.forced_format(log.path)
    if forced is not None:
        return "log", [forced, []]
    columns = declared.columns_of(log.path)
    if columns:
        again = known.look(log, columns)
        if again[0] != "passed_over":
            kind, detail = again
    if kind == "refused":
        try:
            declared_format = declared.of(log.path).format
        except TokenAxisError:
            declared_format = None
        if declared_format is not None:
            return "log", [declared_format, []]
    return kind, detail


def _place_empty_events(empty: Sequence[LogFile], groups: Sequence[Group], found: Discovery) -> None:
    """Event files without a scalar beside others of their folder are no trouble: the run was started again."""
    if not empty:
        return
    runs = {os.path.dirname(log.path): one.name for one in groups if one.format == "tensorboard" for log in one.files}
    for log in empty:
        run = runs.get(os.path.dirname(log.path))
        if run is not None:
            name = printable(log.path)
            found.refused = [entry for entry in found.refused if entry["name"] != name]
            reason = f"an event file without a scalar, beside those of run {printable(run)}"
            found.passed_over.append({"name": name, "reason": reason})


def _add(
    found: Discovery, one: Group, run_id: str, declarations: _Declarations, facts_from: tuple[LogFile, ...]
) -> None:
    name = printable(one.name)
    try:
        declared, format_name = declarations.of(one)
    except TokenAxisError as error:
        found.refused.append({"name": name, "reason": printable(error.reason), "remedy": error.remedy})
        return
    because = None if one.because is None else printable(one.because)
    found.runs.append(Run(run_id, name, format_name, one.files, declared, one.part, one.join, because, facts_from))


def _note_equal(found: Discovery, equal: Mapping[str, str]) -> None:
    """Say of each run whose files all have the bytes of another run's which that is (`same_bytes_as`)."""
    if not equal:
        return
    run_of = {file.path: run for run in found.runs for file in run.files}
    for number, run in enumerate(found.runs):
        others = [run_of.get(equal.get(file.path, "")) for file in run.files]
        other = others[0]
        if other is not None and other.id != run.id and others == [other] * len(other.files):
            found.runs[number] = replace(run, same_bytes_as=other.id)
    alike = {run.id: run.same_bytes_as for run in found.runs if run.same_bytes_as is not None}
    if alike:
        shown = ", ".join(f"{run} = {other}" for run, other in list(alike.items())[:_SHOWN])
        text = (
            f"{len(alike)} {'run has' if len(alike) == 1 else 'runs have'} the same bytes as another: {shown}"
            f"{', ...' if len(alike) > _SHOWN else ''}; names, folders or declarations make them runs of their own: "
            "`ignore:` passes over what is a copy"
        )
        found.notices.append(Notice("same_bytes", text).as_dict())


class _Declarations:
    """What is declared for runs, JSON-ready; worked out once for all runs that the same entries fit."""

    def __init__(self, declared: SweepDeclaration):
        self.declared = declared
        self.known: dict[tuple[int, ...], tuple[dict[str, Any], str | None]] = {}

    def of(self, one: Group) -> tuple[dict[str, Any], str]:
        """(declaration, reader's name).

        Raises:
            TokenAxisError: what is declared is wrong.
        """
        fitting = self.declared.fitting(one.name, *(log.path for log in one.files))
        if fitting not in self.known:
            declaration = self.declared.of_entries(fitting)
            self.known[fitting] = declaration.as_dict(), declaration.format
        declared, format_name = self.known[fitting]
        return declared, readers.by_name(format_name or one.format).name
