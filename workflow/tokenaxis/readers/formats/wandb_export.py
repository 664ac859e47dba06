"""CSV that Weights & Biases exports from a chart: `"Step","RUN - train/loss","RUN - train/loss__MIN",...`.

Runs stand side by side, each with MIN and MAX twins; each is a part of the file and a run of its own. `Step` is the
number of the log call there, which is not the optimizer step unless each step was logged.
"""

from __future__ import annotations

import re
from dataclasses import replace

from tokenaxis.columns import LOSSES, normalise
from tokenaxis.declarations import Declaration
from tokenaxis.errors import Notice, TokenAxisError
from tokenaxis.readers import naming, remedies
from tokenaxis.readers.base import RawLog, Reader, Sample
from tokenaxis.readers.content import read_content
from tokenaxis.readers.formats import table
from tokenaxis.readers.table.dialect import Dialect, detect, split

NAME = "wandb-export"
_TWIN = re.compile(r"__(MIN|MAX)$")
_SEPARATOR = " - "
_SHOWN = 6
#: bytes in which the header of many runs is looked for
_HEADER = 1 << 22


def _axis(head: bytes) -> str | None:
    """What a chart's data are over, the name of the first column; None where the header is that of no chart."""
    if b"__MIN" not in head or b" - " not in head:
        return None
    first = head.split(b"\n", 1)[0].decode("utf-8", "replace")
    return next(iter(split(first, ",")), "").strip()


def sniff(sample: Sample) -> int:
    """Certain when columns `RUN - METRIC` with MIN and MAX twins stand beside a step, or a count of tokens."""
    axis = _axis(sample.head)
    if axis is None:
        return 0
    return 90 if naming.role(axis, sample.columns) in ("step", "tokens") else 0


def lacks(sample: Sample) -> TokenAxisError | None:
    """A chart over something else than steps."""
    axis = _axis(sample.head)
    if axis is None:
        return None
    again = "set the chart's x axis to Step (or train/global_step) and export it again"
    if re.search(r"step|iter|update", axis, re.IGNORECASE):
        declared = f"`defaults: {{columns: {{step: {remedies.quoted(axis)}}}}}`"
        again += f"; or, if these are optimizer steps, declare in {remedies.FILE}: {declared}"
    return TokenAxisError(f"is a Weights & Biases chart over {axis!r}, not over steps", remedy=again)


def read(path: str, declaration: Declaration) -> RawLog:
    """Read one run of an export.

    Raises:
        TokenAxisError: it holds several runs and no declared column says which.
    """
    return _read(path, declaration, None)


def read_part(path: str, declaration: Declaration, part: str) -> RawLog:
    """Read the run `part` of an export.

    Raises:
        TokenAxisError: it has no such run, or no loss of it.
    """
    return _read(path, declaration, part)


def parts(path: str) -> list[str]:
    """The runs of an export, in the order of their columns; empty when the header cannot be read.

    Raises:
        OSError: the file cannot be opened.
    """
    with open(path, "rb") as stream:
        head = stream.read(_HEADER)
    try:
        dialect = detect(head, {})
    except TokenAxisError:
        return []
    return [] if dialect is None else _runs(dialect)


def _read(path: str, declaration: Declaration, part: str | None) -> RawLog:
    content = read_content(path)
    dialect = detect(content.data[:_HEADER], declaration.columns)
    if dialect is None:
        raise TokenAxisError("is not a table: its first line names no columns")
    run = _run(dialect, declaration) if part is None else part
    if part is not None and part not in _runs(dialect):
        raise TokenAxisError(f"holds no run {part!r} any more", remedy="start the engine again")
    found = _naming(dialect, run, declaration)
    if not found.has_step(declaration.tokens_per_step):
        if "tokens" in found.candidates and "tokens" not in declaration.columns:
            raise TokenAxisError(
                f"is a chart over tokens ({dialect.names[0]!r}) without steps",
                remedy=f"{remedies.declare('tokens_per_step: 524288')}, from which the steps follow",
            )
        raise remedies.missing_column("step", dialect.names, declaration.columns)
    if not found.has_loss():
        raise remedies.missing_column(
            "train_loss", [name for name in dialect.names if _owner(name) == run], declaration.columns
        )
    log = table.read_body(content, dialect, found, NAME, declaration.tokens_per_step)
    _drop_rows_of_other_runs(log)
    own = normalise(log.names["step"].rsplit(_SEPARATOR, 1)[-1])
    if "step" not in declaration.columns and own in ("step", "_step"):
        message = (
            f"{log.names['step']!r} is the number of the log call in an export, which is the optimizer step only "
            "if each step was logged"
        )
        log.warnings.append(Notice("step_is_log_index", message))
    return log


def _owner(name: str) -> str | None:
    """The run that a column belongs to."""
    return name.rsplit(_SEPARATOR, 1)[0] if _SEPARATOR in name else None


def _runs(dialect: Dialect) -> list[str]:
    return list(dict.fromkeys(run for name in dialect.names if (run := _owner(name)) is not None))


def _run(dialect: Dialect, declaration: Declaration) -> str:
    runs = _runs(dialect)
    declared = {_owner(name) for name in declaration.columns.values()} - {None}
    chosen = [run for run in runs if run in declared]
    if len(chosen) == 1:
        return chosen[0]
    if len(runs) == 1:
        return runs[0]
    if not runs:
        raise TokenAxisError("has no column of the form RUN - METRIC")
    shown = ", ".join(repr(run) for run in runs[:_SHOWN]) + (", ..." if len(runs) > _SHOWN else "")
    columns = [name for name in dialect.names if _owner(name) == runs[0]]
    example = next((name for name in columns if not _TWIN.search(name)), columns[0])
    raise TokenAxisError(
        f"holds {len(runs)} runs side by side ({shown}); a file must be one run",
        remedy="export each run by itself, or declare which: "
        f"`defaults: {{columns: {{train_loss: {remedies.quoted(example)}}}}}`",
    )


def _naming(dialect: Dialect, run: str, declaration: Declaration) -> naming.Naming:
    """The run's metrics under their own names; twins and other runs are no columns."""
    names = []
    for name in dialect.names:
        owner = _owner(name)
        if owner is None:
            names.append(name)
        else:
            names.append("" if owner != run or _TWIN.search(name) else name.rsplit(_SEPARATOR, 1)[1])
    declared = {c: n.rsplit(_SEPARATOR, 1)[1] if _owner(n) == run else n for c, n in declaration.columns.items()}
    found = naming.resolve(names, declared)
    found.candidates = {
        canonical: [[replace(source, name=dialect.names[source.index]) for source in group] for group in groups]
        for canonical, groups in found.candidates.items()
    }
    return found


def _drop_rows_of_other_runs(log: RawLog) -> None:
    """Rows that are blank for this run belong to a longer one."""
    import numpy as np

    losses = [name for name in LOSSES if name in log.columns]
    keep = np.zeros(len(log.lines), bool)
    for name in losses:
        keep |= ~np.isnan(log.columns[name])
    for lines in log.unusable.values():
        keep |= np.isin(log.lines, lines)
    if keep.all():
        return
    log.columns = {name: values[keep] for name, values in log.columns.items()}
    log.rows_read -= int((~keep).sum())
    log.lines = log.lines[keep]


READER = Reader(
    NAME,
    "CSV export of a Weights & Biases chart, one run or several side by side",
    sniff,
    read,
    lacks,
    parts=parts,
    read_part=read_part,
)
