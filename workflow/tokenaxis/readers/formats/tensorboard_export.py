"""What TensorBoard's page downloads of a scalar: CSV `Wall time,Step,Value`, or JSON `[[wall time, step, value], ...]`.

A file is one tag; its name says which: run-<run>-tag-<tag>.csv as downloaded, or what the user called it.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping

from tokenaxis.declarations import Declaration
from tokenaxis.errors import TokenAxisError
from tokenaxis.readers import naming
from tokenaxis.readers.base import RawLog, Reader, Sample
from tokenaxis.readers.content import Content, read_content
from tokenaxis.readers.formats import table
from tokenaxis.readers.remedies import FILE
from tokenaxis.readers.table.dialect import detect

NAME = "tensorboard-export"
_HEADER = b"Wall time,Step,Value"
_JSON = re.compile(rb"\[\s*\[\s*\d{9,10}(?:\.\d+)?\s*,\s*\d+\s*,\s*(?:-?\d[\d.eE+-]*|NaN|-?Infinity)\s*\]")
_NAME = re.compile(r"(?:^|.*?[/\\])?(?:run-(?P<run>.*)-)?tag-(?P<tag>.+)$", re.IGNORECASE)
_ENDING = re.compile(r"\.(csv|json)(\.gz)?$", re.IGNORECASE)
#: what may stand before a tag: its group, in whose place the page writes an underscore; dates
_GROUPS = frozenset(("charts", "scalars", "scalar", "losses", "metrics", "metric", "trainer", "log", "logs", "tb"))
#: tags that make columns beside the losses
_ROLES = frozenset(("train_loss", "val_loss", "lr", "grad_norm", "tokens", "tokens_per_step"))


def run_and_tag(path: str) -> tuple[str, str]:
    """("version_0", "train_loss") of run-version_0-tag-train_loss.csv; a name of the user's is a tag of no run."""
    stem = _ENDING.sub("", re.split(r"[/\\]", path)[-1])
    match = _NAME.match(stem)
    return ("", stem) if match is None else (match.group("run") or "", match.group("tag"))


def _role(name: str, columns: Mapping[str, str]) -> str | None:
    """What the values of a file stand for, by its name or by a declaration."""
    for canonical, own in columns.items():
        if own == "Value":
            return canonical
    words = re.split(r"[^A-Za-z0-9]+", run_and_tag(name)[1])
    for start in range(len(words)):
        if any(word.lower() not in _GROUPS and not word.isdigit() for word in words[:start]):
            return None
        role = naming.role("_".join(words[start:]), columns)
        if role in _ROLES:
            return role
    return None


def _is_export(sample: Sample) -> bool:
    return sample.head.lstrip().startswith(_HEADER) or _JSON.match(sample.head.lstrip()) is not None


def sniff(sample: Sample) -> int:
    """Certain when the content is a download and its name tells a loss or another column."""
    return 95 if _is_export(sample) and _role(sample.name, sample.columns) is not None else 0


def lacks(sample: Sample) -> TokenAxisError | None:
    """A download whose name does not say what the values are; one that is named after another tag lacks nothing."""
    if not _is_export(sample) or _NAME.match(sample.name) is not None:
        return None
    tag = run_and_tag(sample.name)[1]
    return TokenAxisError(
        f"is a scalar downloaded from TensorBoard, and its name does not tell a loss (its tag: {tag!r})",
        remedy=f"if it is one, declare in {FILE}: `defaults: {{columns: {{train_loss: Value}}}}`",
    )


def read(path: str, declaration: Declaration) -> RawLog:
    """Read one downloaded scalar.

    Raises:
        TokenAxisError: it holds no row, or nothing says what its values are.
    """
    content = read_content(path)
    canonical = _role(path, declaration.columns)
    if canonical is None:
        raise TokenAxisError(
            "is a scalar whose name tells no loss", remedy="declare `defaults: {columns: {train_loss: Value}}`"
        )
    if content.data.lstrip()[:1] == b"[":
        content = Content(_as_csv(content.data), content.notices)
    dialect = detect(content.data[: 1 << 16])
    if dialect is None or len(dialect.names) != 3:
        raise TokenAxisError("has not the three columns Wall time, Step, Value", remedy="download it again")
    sources = [naming.Source(index, name) for index, name in enumerate(dialect.names)]
    found = naming.Naming({"step": [[sources[1]]], canonical: [[sources[2]]], "elapsed_s": [[sources[0]]]})
    log = table.read_body(content, dialect, found, NAME, needs_loss=False)
    if "elapsed_s" in log.columns:
        times = log.columns["elapsed_s"]
        log.started = float(times[0])
        log.columns["elapsed_s"] = times - times[0]
    log.names[canonical] = run_and_tag(path)[1]
    return log


def _as_csv(data: bytes) -> bytes:
    """The same rows as the CSV has them."""
    try:
        rows = json.loads(data.decode("utf-8", "replace"))
        lines = [",".join("" if cell is None else repr(cell) for cell in row) for row in rows]
    except (ValueError, TypeError, RecursionError) as error:
        raise TokenAxisError(f"is no valid JSON ({error})", remedy="download it again") from None
    return b"\n".join([_HEADER, *(line.encode() for line in lines)]) + b"\n"


READER = Reader(NAME, "scalars that TensorBoard's page downloads (CSV and JSON), a tag a file", sniff, read, lacks)
