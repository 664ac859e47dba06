"""Rows of several logs in one: columns, lines, facts and warnings put together."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from tokenaxis.columns import NAMES
from tokenaxis.errors import Notice, TokenAxisError
from tokenaxis.readers.remedies import CONVENTION

if TYPE_CHECKING:
    from tokenaxis.readers.base import RawLog


@dataclass(frozen=True)
class Piece:
    """One of a run's logs.

    Attributes:
        name: its file, for messages.
        log: its rows.
        first_step: declared step at which it begins, where it counts from 0 again; else None.
    """

    name: str
    log: RawLog
    first_step: int | None = None


def concatenate(pieces: Sequence[Piece], notices: list[Notice], by_step: bool = False) -> RawLog:
    """Rows of all pieces, file after file, or (`by_step`) by attempt and step; lines count on through the files.

    Raises:
        TokenAxisError: they count tokens in different ways.
    """
    if len(pieces) == 1:
        return replace(pieces[0].log, warnings=[*pieces[0].log.warnings, *notices])
    logs = [piece.log for piece in pieces]
    conventions = {log.tokens_convention for log in logs if "tokens" in log.columns}
    if len(conventions) > 1:
        raise TokenAxisError(
            "its files count tokens in different ways",
            remedy=CONVENTION,
        )
    offsets = np.cumsum([0, *(_lines(log) for log in logs)])
    columns = {
        name: np.concatenate([log.columns.get(name, np.full(len(log.lines), np.nan)) for log in logs])
        for name in NAMES
        if any(name in log.columns for log in logs)
    }
    lines = np.concatenate([log.lines + start for log, start in zip(logs, offsets, strict=False)])
    if by_step:
        order = _order([log.columns["step"] for log in logs])
        columns = {name: values[order] for name, values in columns.items()}
        lines = lines[order]
    joined = replace(
        logs[0],
        columns=columns,
        lines=lines,
        names={name: own for log in reversed(logs) for name, own in log.names.items()},
        rows_read=sum(log.rows_read for log in logs),
        bad_lines=sorted(
            line + int(start) for log, start in zip(logs, offsets, strict=False) for line in log.bad_lines
        ),
        unusable=_unusable(logs, offsets),
        facts=list(dict.fromkeys(fact for log in logs for fact in _hashable(log.facts))),
        tokens_convention=next(iter(conventions), None),
        means={name: mean for log in reversed(logs) for name, mean in log.means.items()},
    )
    joined.warnings = [_line_notice(pieces, offsets), *_named_warnings(pieces), *notices]
    return joined


def _order(steps: Sequence[np.ndarray]) -> np.ndarray:
    """Rows by attempt (counted within each file), then step, then file."""
    attempts = [np.r_[0, np.cumsum(step[1:] < step[:-1])] for step in steps]
    files = np.repeat(np.arange(len(steps)), [len(step) for step in steps])
    return np.lexsort((files, np.concatenate(steps), np.concatenate(attempts)))


def _lines(log: RawLog) -> int:
    return max([int(log.lines.max(initial=0)), *log.bad_lines])


def _unusable(logs: Sequence[RawLog], offsets: np.ndarray) -> dict[tuple[str, str], np.ndarray]:
    found: dict[tuple[str, str], list[np.ndarray]] = {}
    for log, start in zip(logs, offsets, strict=False):
        for key, lines in log.unusable.items():
            found.setdefault(key, []).append(lines + start)
    return {key: np.concatenate(parts) for key, parts in found.items()}


def _hashable(facts: list) -> list:
    return [fact for fact in facts if not isinstance(fact[1], list | dict)]


def _line_notice(pieces: Sequence[Piece], offsets: np.ndarray) -> Notice:
    parts = [f"{piece.name} from line {int(start) + 1}" for piece, start in zip(pieces, offsets, strict=False)]
    return Notice("several_files", f"{len(pieces)} files are one run; line numbers count on: {', '.join(parts)}")


def _named_warnings(pieces: Sequence[Piece]) -> list[Notice]:
    """The files' own warnings; one that all have stands once."""
    texts: dict[Notice, list[str]] = {}
    for piece in pieces:
        for notice in piece.log.warnings:
            texts.setdefault(notice, []).append(piece.name)
    return [
        notice
        if len(names) == len(pieces) or notice.message.startswith(names[0])
        else Notice(notice.code, f"{', '.join(names)}: {notice.message}")
        for notice, names in texts.items()
    ]
