"""Standard output of NVIDIA NeMo: `Training epoch 0, iteration 5/99 | lr: ... | reduced_train_loss: ...`, or its bar.

`global_step` counts the updates done before the row's batch, `consumed_samples` the batch's as well. A row goes on
showing the last `val_loss` until the next evaluation, so only a change of it is one. NeMo 1 shows the same names in a
progress bar: `Epoch 0: 5/300 [..., reduced_train_loss=10.9, global_step=4.0, consumed_samples=1280.0]`.
"""

from __future__ import annotations

import re

from tokenaxis.declarations import Declaration
from tokenaxis.errors import Notice
from tokenaxis.readers.base import RawLog, Reader, Sample
from tokenaxis.readers.content import read_content
from tokenaxis.readers.headers import Fact, line_of
from tokenaxis.readers.lines import readable, visible, whole_lines
from tokenaxis.readers.textlog import Rows, build, find_rows

NAME = "nemo"
_LINE = rb"Training epoch (\d{1,9}), iteration (\d{1,15})/(\d{1,15}) \|[^\n]*?\breduced_train_loss: "
_BAR = rb"\d{1,15}/\d{1,15} \[[^\n]*?\breduced_train_loss[=:]"
_START = rb"(?m)^[^\n]{0,160}?(?:Training epoch \d{1,9}, iteration|\d{1,15}/\d{1,15} \[)"
_HEAD = rb"(?m)^[^\n]{0,160}?(?:Training epoch (\d{1,9}), iteration (\d{1,15})/\d{1,15} \||\d{1,15}/\d{1,15} \[)"
#: name in a row -> column; looked for from the row's beginning, in any order
_FIELDS = (
    ("train_loss", rb"reduced_train_loss"),
    ("step", rb"global_step"),
    ("lr", rb"lr"),
    ("grad_norm", rb"grad_norm"),
    ("val_loss", rb"val_loss"),
    ("tokens", rb"consumed_samples"),
    ("tokens_per_step", rb"global_batch_size"),
)
_NAMES = {name: own.decode() for name, own in _FIELDS}
_NO_SEQ_LEN = (
    "samples are not turned into tokens: the sequence length is not in the log; "
    "declare it, e.g. `defaults: {seq_len: 2048}`"
)
_SEQ_LEN = rb"\bseq(?:uence)?_length[\"']?[=:] ?(\d{1,9})\b"


def sniff(sample: Sample) -> int:
    """Certain when a row is there."""
    for part in (sample.head, sample.tail):
        if b"reduced_train_loss" in part and re.search(_LINE + rb"|" + _BAR, visible(part)):
            return 97
    return 0


def read(path: str, declaration: Declaration) -> RawLog:
    """Read the standard output of a run.

    Raises:
        TokenAxisError: no row.
    """
    content = read_content(path)
    data = readable(content)
    if not data.rstrip().endswith(b"]"):  # a bar is whole without a line end
        data = whole_lines(data)
    fields = b"".join(rb"(?:(?=[^\n]{0,600}?(?<![\w])" + own + rb"[=:] ?([^\s,|\]]+)))?" for _, own in _FIELDS)
    names = ("epoch", "iteration", *(name for name, _ in _FIELDS))
    rows = find_rows(data, re.compile(_HEAD + fields), names)
    rows = _with_losses(rows)
    last = re.search(rb"iteration \d{1,15}/(\d{1,15}) \|", data)
    a_pass = int(last.group(1)) + 1 if last is not None else 0
    passes = _count_steps(rows, a_pass)
    seq_len = declaration.seq_len or _stated_seq_len(data[: int(rows.offsets[0]) if len(rows.offsets) else 1 << 16])
    for name in ("tokens", "tokens_per_step"):
        rows.columns[name] = rows.columns[name] * (seq_len or float("nan"))
    _only_changes(rows)
    log = build(
        NAME,
        content,
        [rows],
        _NAMES,
        facts=_facts(data, a_pass if passes == 1 else 0, seq_len, declaration),
        warnings=[] if seq_len else [Notice("seq_len_unknown", _NO_SEQ_LEN)],
        what="row with `reduced_train_loss`",
    )
    log.tokens_convention = "after" if "tokens" in log.columns else None
    return log


def _with_losses(rows: Rows) -> Rows:
    import numpy as np

    has = ~np.isnan(rows.columns["train_loss"])
    for (name, _), indices in rows.unusable.items():
        if name == "train_loss":
            has[indices] = True
    return rows.only(has)


def _count_steps(rows: Rows, a_pass: int) -> int:
    """Steps of rows without a global step: epochs times iterations of an epoch. Returns the number of epochs begun."""
    import numpy as np

    epoch, iteration = rows.columns.pop("epoch"), rows.columns.pop("iteration")
    steps = rows.columns["step"]
    rows.columns["step"] = np.where(np.isnan(steps), epoch * a_pass + iteration, steps)
    return int(np.nanmax(epoch)) + 1 if not np.isnan(epoch).all() else 1


def _only_changes(rows: Rows) -> None:
    import numpy as np

    values = rows.columns["val_loss"]
    shown_again = np.r_[False, values[1:] == values[:-1]]
    rows.columns["val_loss"] = np.where(shown_again, np.nan, values)


def _stated_seq_len(head: bytes) -> int | None:
    match = re.search(_SEQ_LEN, head)
    return int(match.group(1)) or None if match is not None else None


def _facts(data: bytes, a_pass: int, seq_len: float | None, declaration: Declaration) -> list[Fact]:
    facts: list[Fact] = []
    if a_pass:
        facts.append(("planned_steps", a_pass, "emitted", "iteration N/LAST, the first of which is 0"))
    if seq_len and not declaration.seq_len:
        match = re.search(_SEQ_LEN, data)
        facts.append(("seq_len", int(seq_len), "emitted", f"line {line_of(data, match.start()) if match else 1}"))
    return facts


READER = Reader(NAME, "standard output of NVIDIA NeMo", sniff, read)
