"""Metrics of MLflow's file store: mlruns/<experiment>/<run>/metrics/<name>, `TIME_MS VALUE STEP` a line."""

from __future__ import annotations

import re
from collections.abc import Mapping

from tokenaxis.declarations import Declaration
from tokenaxis.errors import TokenAxisError
from tokenaxis.readers import naming
from tokenaxis.readers.base import RawLog, Reader, Sample
from tokenaxis.readers.content import read_content
from tokenaxis.readers.textlog import broken_rows, build, find_rows, torn_offset

NAME = "mlflow"
_FIRST = rb"\d{12,14} [-+.\dEenaif]+ \d+\r?\n"
_ROW = rb"(?m)^(\d{12,14}) (\S+) (\d+)(?=\r?$)"
_START = rb"(?m)^\S"
NO_STEPS = "has all its values at step 0: they were logged without a step"
STEPS_REMEDY = "log with a step, e.g. mlflow.log_metric(name, value, step=step), or write step and loss to a CSV"

#: metrics that make columns; a run is made of the files of its losses and of these
_ROLES = frozenset(("train_loss", "val_loss", "lr", "grad_norm", "tokens", "tokens_per_step"))


def _role(name: str, columns: Mapping[str, str]) -> str | None:
    role = naming.role(name, columns)
    return role if role in _ROLES else None


def sniff(sample: Sample) -> int:
    """Certain when the lines are of the form and the file is named after a loss, or another column."""
    return 90 if re.match(_FIRST, sample.head) and _role(sample.name, sample.columns) else 0


def read(path: str, declaration: Declaration) -> RawLog:
    """Read one metric file.

    Raises:
        TokenAxisError: no row, or no steps.
    """
    content = read_content(path)
    parts = re.split(r"[/\\]", path)
    behind = parts[parts.index("metrics") + 1 :] if "metrics" in parts else parts[-1:]
    name = "/".join(behind)
    canonical = _role(name, declaration.columns) or _role(parts[-1], declaration.columns) or "train_loss"
    pattern = re.compile(_ROW)
    rows = find_rows(content.data, pattern, ("elapsed_s", canonical, "step"))
    broken = broken_rows(content.data, re.compile(_START), [rows])
    started = None
    if len(rows.offsets) > 1 and not rows.columns["step"].any():
        raise TokenAxisError(NO_STEPS, remedy=STEPS_REMEDY)
    if len(rows.offsets):
        times = rows.columns["elapsed_s"]
        started = float(times[0]) / 1000
        rows.columns["elapsed_s"] = (times - times[0]) / 1000
    names = {"step": "step", canonical: name, "elapsed_s": "timestamp"}
    torn = torn_offset(content.data, [pattern])
    what = "`TIME VALUE STEP` line"
    log = build(NAME, content, [rows], names, broken=broken, torn=torn, what=what, needs_loss=False)
    log.started = started
    return log


READER = Reader(NAME, "metrics of MLflow's file store: the losses of a run, its rate and counts", sniff, read)
