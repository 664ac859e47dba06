"""One metric of MLflow's file store, mlruns/<experiment>/<run>/metrics/<name>: `TIME_MS VALUE STEP` a line."""

from __future__ import annotations

import re

from tokenaxis.declarations import Declaration
from tokenaxis.readers import naming
from tokenaxis.readers.base import RawLog, Reader, Sample
from tokenaxis.readers.content import read_content
from tokenaxis.readers.textlog import broken_rows, build, find_rows, torn_offset

NAME = "mlflow"
_FIRST = rb"\d{12,14} [-+.\dEenaif]+ \d+\r?\n"
_ROW = rb"(?m)^(\d{12,14}) (\S+) (\d+)(?=\r?$)"
_START = rb"(?m)^\S"


def _loss(name: str, columns: dict[str, str]) -> str | None:
    role = naming.role(name, columns)
    return role if role in ("train_loss", "val_loss") else None


def sniff(sample: Sample) -> int:
    """Certain when the lines are of the form and the file is named after a loss."""
    return 90 if re.match(_FIRST, sample.head) and _loss(sample.name, dict(sample.columns)) else 0


def read(path: str, declaration: Declaration) -> RawLog:
    """Read one metric file.

    Raises:
        TokenAxisError: no row.
    """
    content = read_content(path)
    name = re.split(r"[/\\]", path)[-1]
    canonical = _loss(name, declaration.columns) or "train_loss"
    pattern = re.compile(_ROW)
    rows = find_rows(content.data, pattern, ("elapsed_s", canonical, "step"))
    broken = broken_rows(content.data, re.compile(_START), [rows])
    if len(rows.offsets):
        times = rows.columns["elapsed_s"]
        rows.columns["elapsed_s"] = (times - times[0]) / 1000
    names = {"step": "step", canonical: name, "elapsed_s": "timestamp"}
    torn = torn_offset(content.data, [pattern])
    return build(NAME, content, [rows], names, broken=broken, torn=torn, what="`TIME VALUE STEP` line")


READER = Reader(NAME, "one loss of MLflow's file store", sniff, read)
