"""CSV and its kin: comma, tab, semicolon, bar or blanks between cells, with a header that names a step and a loss."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping, Sequence

from tokenaxis.declarations import Declaration
from tokenaxis.errors import Notice, TokenAxisError
from tokenaxis.readers import cells, naming, remedies
from tokenaxis.readers.base import RawLog, Reader, Sample
from tokenaxis.readers.content import Content, read_content, stays_on_disk
from tokenaxis.readers.content import sample as sample_of
from tokenaxis.readers.recognition import is_binary
from tokenaxis.readers.table import fast, runs, slow
from tokenaxis.readers.table.body import Body
from tokenaxis.readers.table.dialect import Dialect, detect, split, torn_tail
from tokenaxis.readers.table.finish import finish

NAME = "table"
#: bytes of a file in which its header is looked for, and of its end in which a torn line is
_HEAD, _TAIL = 1 << 20, 1 << 16
#: bytes of a file in which a header may name runs (compressed ones are looked at whatever these hold)
_HEADER = 4096
_TABLE_NAME = re.compile(r"\.(csv|tsv)(\.gz)?$", re.IGNORECASE)

#: header of what TensorBoard's page downloads
_TENSORBOARD = ("Wall time", "Step", "Value")


def _looked(sample: Sample) -> tuple[Dialect, naming.Naming] | None:
    head = sample.head
    if head[:1] in (b"{", b"[", b"") or is_binary(head):
        return None
    dialect = detect(head, sample.columns)
    return None if dialect is None else (dialect, naming.resolve(dialect.names, sample.columns))


def sniff(sample: Sample) -> int:
    """Confident when the header names a step and a loss and a line under it has as many cells and a number for step."""
    try:
        looked = _looked(sample)
    except TokenAxisError:
        return 0
    if looked is None:
        return 0
    dialect, found = looked
    if runs.is_table_of_runs(dialect.names) or (dialect.names == _TENSORBOARD and not sample.columns):
        return 0
    if not (found.has_step() and found.has_loss()) or _several_runs(dialect, sample) is not None:
        return 0
    if not dialect.rows:
        return 0 if sample.whole or dialect.delimiter == " " else 60
    step = found.candidates["step"][0][0].index
    for row in dialect.rows[:5]:
        if len(row) == len(dialect.names) and _is_number(row[step], dialect):
            return 80 if dialect.delimiter != " " else 60
    return 60 if _TABLE_NAME.search(sample.name) else 0


def _is_value(text: str) -> bool:
    """Whether a header's cell is a number, or blank, rather than a name."""
    try:
        float(text or "0")
    except ValueError:
        return False
    return True


def _several_runs(dialect: Dialect, sample: Sample) -> TokenAxisError | None:
    """The refusal of a table in which a column names several runs, and not one after the other, as far as is seen."""
    column = runs.run_column(dialect, sample.columns)
    if column is None:
        return None
    step = _step_position(dialect, sample.columns)
    names = runs.runs_seen(_rows_seen(dialect, sample.tail), dialect, column)
    if len(names) < 2:
        return None
    if step is None:
        return runs.several(dialect.names[column], names)
    head, whole = sample.head[dialect.body_start :].split(b"\n"), sample.whole
    try:
        runs.joined(head if whole else head[:-1], dialect, step, column)
    except TokenAxisError as error:
        return error
    return None


def _rows_seen(dialect: Dialect, tail: bytes) -> list[Sequence[str]]:
    last = tail.rstrip(b"\r\n\0 ").rsplit(b"\n", 1)[-1].decode("utf-8", "replace")
    return [*dialect.rows, split(last, dialect.delimiter)] if last else list(dialect.rows)


def _step_position(dialect: Dialect, columns: Mapping[str, str]) -> int | None:
    groups = naming.resolve(dialect.names, columns).candidates.get("step")
    return groups[0][0].index if groups else None


def parts(path: str) -> list[str]:
    """No parts: a table is one run. One that names several is gone through, since both its ends do not tell.

    Raises:
        TokenAxisError: it holds several runs.
    """
    with open(path, "rb", buffering=0) as stream:
        if not runs.may_name_runs(stream.read(_HEADER)):
            return []
    looked = sample_of(path)
    dialect = None if is_binary(looked.head) else detect(looked.head)
    column = None if dialect is None else runs.run_column(dialect, {})
    step = None if dialect is None else _step_position(dialect, {})
    if dialect is None or column is None or step is None or looked.whole:
        return []
    if len(runs.runs_seen(_rows_seen(dialect, looked.tail), dialect, column)) > 1:
        runs.joined(_lines(path if stays_on_disk(path) else read_content(path).data, dialect), dialect, step, column)
    return []


def _end_of(path: str) -> bytes:
    with open(path, "rb") as stream:
        stream.seek(-min(_TAIL, os.path.getsize(path)), os.SEEK_END)
        return stream.read()


def _lines(whole: bytes | str, dialect: Dialect) -> Iterator[bytes]:
    """Lines below the header of a table in memory, or in a file that stays on disk."""
    end = len(whole) if isinstance(whole, bytes) else os.path.getsize(whole)
    return Body(whole, dialect.body_start, end).raw_lines()


def _is_number(text: str, dialect: Dialect) -> bool:
    try:
        float(text)
    except ValueError:
        value, kind = cells.number(text, "step", dialect.decimal_comma)
        return kind is None and value == value
    return True


def lacks(sample: Sample) -> TokenAxisError | None:
    """What is missing in a table that is no log yet."""
    try:
        looked = _looked(sample)
    except TokenAxisError as error:
        return error
    if looked is None:
        return None
    dialect, found = looked
    if runs.is_table_of_runs(dialect.names):
        return runs.table_of_runs()
    if dialect.names == _TENSORBOARD:
        return None  # its own reader says what it lacks
    named = _TABLE_NAME.search(sample.name) is not None
    if not named and (dialect.delimiter == " " or not (found.has_step() and found.has_loss())):
        return None
    if named and all(_is_value(name) for name in dialect.names):
        return TokenAxisError("has no header line", remedy="give its columns names: step,train_loss,...")
    if not found.has_step() and not found.has_loss():
        return None
    if not found.has_step():
        return remedies.missing_column("step", dialect.names, sample.columns)
    if not found.has_loss():
        return remedies.missing_column("train_loss", dialect.names, sample.columns)
    several = _several_runs(dialect, sample)
    if several is not None:
        return several
    if not dialect.rows and sample.whole:
        return TokenAxisError("has a header and no row: no data", remedy="remove it, or wait until it holds rows")
    return None


def read(path: str, declaration: Declaration) -> RawLog:
    """Read a delimited table.

    Raises:
        TokenAxisError: it is empty, has no header, step, loss or row, or contradicts itself.
    """
    if stays_on_disk(path):
        with open(path, "rb") as stream:
            head = stream.read(_HEAD)
        return _read_table(Content(head), path, declaration)
    content = read_content(path)
    if b"\n" not in content.data:
        content.data = content.data.replace(b"\r", b"\n")
    return _read_table(content, content.data, declaration)


def _read_table(content: Content, whole: bytes | str, declaration: Declaration) -> RawLog:
    if is_binary(content.data[:8192]):
        raise TokenAxisError("is binary, not a text table")
    dialect = detect(content.data[:_HEAD], declaration.columns)
    if dialect is None:
        raise TokenAxisError("is not a table: its first line names no columns", remedy="give it a header line")
    found = naming.resolve(dialect.names, declaration.columns)
    if not found.has_step(declaration.tokens_per_step):
        raise remedies.missing_column("step", dialect.names, declaration.columns)
    if not found.has_loss():
        raise remedies.missing_column("train_loss", dialect.names, declaration.columns)
    log = read_body(content, dialect, found, NAME, declaration.tokens_per_step, whole)
    if declaration.format != NAME:  # declared to be one table, it is one run
        log.warnings += _run_changes(content, whole, dialect, found, declaration)
    return log


def _run_changes(
    content: Content, whole: bytes | str, dialect: Dialect, found: naming.Naming, declaration: Declaration
) -> list[Notice]:
    """What is said of a table whose column of run names changes; errors as in `runs.joined`."""
    column = runs.run_column(dialect, declaration.columns)
    if column is None or "step" not in found.candidates:
        return []
    if isinstance(whole, bytes):
        if runs.is_constant(whole, dialect, column):
            return []
    elif len(runs.runs_seen(_rows_seen(dialect, _end_of(whole)), dialect, column)) < 2:
        return []  # a table so large is not gone through once more where both its ends name the same run
    notice = runs.joined(_lines(whole, dialect), dialect, found.candidates["step"][0][0].index, column)
    return [] if notice is None else [notice]


def read_body(
    content: Content,
    dialect: Dialect,
    found: naming.Naming,
    reader: str,
    tokens_per_step: float | None = None,
    whole: bytes | str | None = None,
    needs_loss: bool = True,
) -> RawLog:
    """Parse and finish a table whose header was understood.

    Args:
        content: the content, or its beginning.
        dialect: how it is written.
        found: what its columns stand for.
        reader: name of the format.
        tokens_per_step: declared fixed batch, see `finish`.
        whole: the whole content, or the path of a file that stays on disk; None = `content` is all.
        needs_loss: False for one of several files of a run.
    """
    source = content.data if whole is None else whole
    end = len(source) if isinstance(source, bytes) else os.path.getsize(source)
    torn = _torn(source, end, dialect, content.cut)
    body = Body(source, dialect.body_start, end if torn is None else torn)
    parsed = fast.parse(body, dialect, found)
    if parsed is None:
        parsed = slow.parse(body, dialect, found)
    if torn is not None:
        torn_line = dialect.header_line + 1 + body.lines
        parsed.bad_lines.append(torn_line)
        message = f"line {torn_line}, the last, is torn (cut inside, fewer fields or digits than the others); left out"
        parsed.notices.append(Notice("torn_last_line", message))
    if not len(parsed.lines):
        raise TokenAxisError("has a header and no row: no data", remedy="remove it, or wait until it holds rows")
    parsed.notices[:0] = content.notices
    log = finish(parsed, found, reader, tokens_per_step, needs_loss)
    log.names = {canonical: dialect.as_written(name) for canonical, name in log.names.items()}
    return log


def _torn(source: bytes | str, end: int, dialect: Dialect, cut: bool) -> int | None:
    """Byte where a torn last line begins."""
    start = max(dialect.body_start, end - _TAIL)
    if isinstance(source, bytes):
        tail = source[start:end]
    else:
        with open(source, "rb") as stream:
            stream.seek(start)
            tail = stream.read(end - start)
    if cut and tail and not tail.endswith(b"\n"):
        return start + tail.rfind(b"\n") + 1
    found = torn_tail(tail, dialect)
    return None if found is None else start + found


READER = Reader(
    NAME,
    "CSV, TSV and other delimited tables (gz, BOM, UTF-16, CRLF) whose header names a step and a loss",
    sniff,
    read,
    lacks,
    parts=parts,
)
