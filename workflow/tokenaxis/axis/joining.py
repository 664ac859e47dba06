"""Several logs of one run -> one log, its rows in the order in which they were trained."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from tokenaxis.axis.concatenation import Piece, concatenate
from tokenaxis.axis.wording import counted
from tokenaxis.columns import LOSSES
from tokenaxis.errors import Notice, TokenAxisError
from tokenaxis.readers.remedies import glob_of, quoted

if TYPE_CHECKING:
    from tokenaxis.readers.base import RawLog

#: share of the steps that two logs have in common whose losses must agree for the one to hold the other's rows again
_SAME_ROWS = 0.99
#: seconds by which two writers must overlap to have written at the same time: clocks and flushes are not exact
_AT_ONCE = 5.0


def join_logs(pieces: Sequence[Piece], how: str) -> RawLog:
    """One log of all pieces; lines count on through the files.

    Args:
        pieces: oldest first.
        how: "attempts": each goes on where an earlier one was interrupted; "exports": each goes on where another ends,
            or holds some of its rows again; "snapshots": one holds what the others hold; "writers": event files of one
            folder; "columns": each holds other values of the same steps.

    Raises:
        TokenAxisError: they are not one run.
    """
    pieces = [_shifted(piece) for piece in pieces]
    if len(pieces) == 1:
        return pieces[0].log
    return _WAYS[how](pieces)


def _shifted(piece: Piece) -> Piece:
    if not piece.first_step:
        return piece
    step = piece.log.columns["step"]
    offset = piece.first_step - float(step[0])
    columns = piece.log.columns | {"step": step + offset}
    message = f"{piece.name}: its steps count from {step[0]:.0f}; step {piece.first_step} was declared as its first"
    notices = [*piece.log.warnings, Notice("first_step_declared", message)]
    return replace(piece, log=replace(piece.log, columns=columns, warnings=notices))


def _attempts(pieces: Sequence[Piece]) -> RawLog:
    """Pieces one after the other, so that the rule of attempts applies."""
    for piece in pieces[1:]:
        _refuse_second_beginning(pieces[0], piece, False)
    return concatenate(pieces, [])


def _exports(pieces: Sequence[Piece]) -> RawLog:
    """Pieces one after the other; rows that several hold count once."""
    notices: list[Notice] = []
    joined = [pieces[0]]
    for piece in pieces[1:]:
        same = _holds_again(joined, piece)
        _refuse_second_beginning(joined[0], piece, same)
        if same:
            piece, repeated = _without_rows_of(joined, piece)
            message = f"{piece.name} holds {counted(repeated, 'row')} of the files before it again: they count once"
            notices.append(Notice("overlapping_files", message))
        if len(piece.log.lines):
            joined.append(piece)
    return concatenate(joined, notices)


def _without_rows_of(earlier: Sequence[Piece], piece: Piece) -> tuple[Piece, int]:
    """A piece without the rows at steps that earlier ones have, and how many those were."""
    log = piece.log
    fresh = ~np.isin(log.columns["step"], np.concatenate([before.log.columns["step"] for before in earlier]))
    gone = int((~fresh).sum())
    unusable = {key: lines[np.isin(lines, log.lines[fresh])] for key, lines in log.unusable.items()}
    columns = {name: values[fresh] for name, values in log.columns.items()}
    kept = replace(log, columns=columns, lines=log.lines[fresh], rows_read=log.rows_read - gone, unusable=unusable)
    return replace(piece, log=kept), gone


def _holds_again(earlier: Sequence[Piece], piece: Piece) -> bool:
    """Whether a log's rows at steps that an earlier one has too are the same rows, and there are some."""
    return any((shared := _agreement(before.log, piece.log)) is not None and shared >= _SAME_ROWS for before in earlier)


def _agreement(one: RawLog, other: RawLog) -> float | None:
    """Share of common steps with equal losses; None without a common step."""
    for loss in LOSSES:
        if loss not in one.columns or loss not in other.columns:
            continue
        first, second = (
            dict(zip(log.columns["step"].tolist(), log.columns[loss].tolist(), strict=True)) for log in (one, other)
        )
        common = [
            step for step in second if step in first and first[step] == first[step] and second[step] == second[step]
        ]
        if common:
            return sum(first[step] == second[step] for step in common) / len(common)
    return None


def _refuse_second_beginning(first: Piece, piece: Piece, same: bool) -> None:
    """Two logs that both begin at the beginning are two runs, whatever their names say."""
    begins, began = (float(log.columns["step"][0]) for log in (piece.log, first.log))
    if begins > began or same or piece.first_step is not None:
        return
    own, last = quoted(glob_of(piece.name)), float(first.log.columns["step"].max())
    raise TokenAxisError(
        f"{piece.name} begins at step {begins:.0f}, where {first.name} begins too: two runs, not two attempts of one",
        remedy=f"declare `separate: [{own}]`; or, if it resumed and counts from 0 again, where it did, e.g. "
        f"`groups: [{{match: {quoted(glob_of(first.name))}, run: joined}}, "
        f"{{match: {own}, run: joined, first_step: {last:.0f}}}]`",
    )


def _snapshots(pieces: Sequence[Piece]) -> RawLog:
    """The newest; what an older one holds beside it is said."""
    newest = max(pieces, key=lambda piece: (float(piece.log.columns["step"].max()), piece is pieces[-1]))
    log = newest.log
    others = [piece for piece in pieces if piece is not newest]
    names = ", ".join(piece.name for piece in others)
    notices = [Notice("older_snapshots", f"{newest.name} was read; older snapshots of it were not used: {names}")]
    for piece in others:
        shared = _agreement(log, piece.log)
        if shared is not None and shared < _SAME_ROWS:
            message = f"{piece.name} holds other losses than {newest.name} at the same steps: of an abandoned attempt?"
            notices.append(Notice("snapshot_differs", message))
    return replace(log, warnings=[*log.warnings, *notices])


def _writers(pieces: Sequence[Piece]) -> RawLog:
    """Event files of one folder: attempts, or two processes that logged the same run at once."""
    groups: list[list[Piece]] = []
    for piece in pieces:
        at_once = [group for group in groups if any(_wrote_at_once(before, piece) for before in group)]
        if at_once:
            at_once[0].append(piece)
        else:
            groups.append([piece])
    chosen, notices = [], []
    for group in groups:
        best = max(group, key=lambda piece: len(piece.log.lines))
        chosen.append(best)
        for piece in group:
            if piece is not best:
                message = (
                    f"two writers at the same time: {best.name} ({_rows(best)}) and "
                    f"{piece.name} ({_rows(piece)}) log the same steps with different values; the "
                    f"longer, {best.name}, was read and the other left out"
                )
                notices.append(Notice("two_writers", message))
    return concatenate(chosen, notices)


def _rows(piece: Piece) -> str:
    return counted(len(piece.log.lines), "row")


def _wrote_at_once(one: Piece, other: Piece) -> bool:
    """Whether both logged steps of the same stretch while both ran, with different losses."""
    spans = [_span(piece.log) for piece in (one, other)]
    if None in spans:
        return False
    (begun, ended), (began, end) = spans  # type: ignore[misc]
    if min(ended, end) - max(begun, began) < _AT_ONCE:
        return False
    shared = _agreement(one.log, other.log)
    return shared is not None and shared < _SAME_ROWS


def _span(log: RawLog) -> tuple[float, float] | None:
    elapsed = log.columns.get("elapsed_s")
    if log.started is None or elapsed is None:
        return None
    return log.started + float(np.nanmin(elapsed)), log.started + float(np.nanmax(elapsed))


def _columns(pieces: Sequence[Piece]) -> RawLog:
    """Values of the same steps in several files, one row a step; where a file goes back, the stretches are attempts."""
    notices: list[Notice] = []
    for loss in LOSSES:
        holders = [piece for piece in pieces if loss in piece.log.columns]
        if len(holders) < 2:
            continue
        best = max(holders, key=lambda piece: int(np.isfinite(piece.log.columns[loss]).sum()))
        for piece in holders:
            shared = None if piece is best else _agreement(best.log, piece.log)
            if shared is not None and shared < _SAME_ROWS:
                pieces = [_without_column(other, loss) if other is piece else other for other in pieces]
                message = f"{best.name} was taken as {loss}, not {piece.name}, which differs"
                notices.append(Notice(f"{loss}_chosen", message))
    return concatenate([piece for piece in pieces if len(piece.log.columns) > 1], notices, by_step=True)


def _without_column(piece: Piece, name: str) -> Piece:
    log = piece.log
    columns = {own: values for own, values in log.columns.items() if own != name}
    unusable = {key: lines for key, lines in log.unusable.items() if key[0] != name}
    return replace(piece, log=replace(log, columns=columns, unusable=unusable))


_WAYS: dict[str, Callable[[Sequence[Piece]], RawLog]] = {
    "attempts": _attempts,
    "exports": _exports,
    "snapshots": _snapshots,
    "writers": _writers,
    "columns": _columns,
}
