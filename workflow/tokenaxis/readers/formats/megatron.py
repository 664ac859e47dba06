"""Standard output of Megatron-LM, Megatron-DeepSpeed and GPT-NeoX: `iteration N/ TOTAL | name: value | ...`.

A line is written after the update of iteration N: consumed samples and tokens count AFTER it, `lm loss` is the mean
over the iterations since the line before (log_interval). Ranks may prefix their lines (`0: `). A field may be missing:
an iteration whose gradients overflowed logs no loss. Validation may be of several sets, and ends with the test set.
"""

from __future__ import annotations

import re
from array import array
from collections.abc import Mapping
from typing import TYPE_CHECKING, NamedTuple

from tokenaxis.declarations import Declaration
from tokenaxis.errors import Notice
from tokenaxis.readers.base import IntervalMean, RawLog, Reader, Sample
from tokenaxis.readers.content import read_content
from tokenaxis.readers.formats._megatron_arguments import arguments, arguments_in_sequences
from tokenaxis.readers.lines import readable, visible
from tokenaxis.readers.remedies import missing_column
from tokenaxis.readers.textlog import Rows, build

if TYPE_CHECKING:
    import numpy as np

NAME = "megatron"
_LINE = rb"(?m)^[^\n]{0,120}?\biteration +\d+/ *\d+ \| "
_ROW = rb"(?m)^[^\n]{0,120}?\biteration +(\d+)/ *(\d+) \|([^\n]*)"
_VAL = (
    rb"(?m)^[^\n]{0,120}?\b(valid|validation|test)(-[^\s|]{1,60})? (?:loss|results) at (?:iteration|step) (\d+)"
    rb"([^|\n]{0,120})\| lm[ _]loss(?: value)?: *([^\s|]+)(?= *\||\s*$)"
)
# bounded, so that a line of any length is read in proportion to it
_FIELD = rb"([A-Za-z][^:|]{0,80}?) {0,9}: {0,20}([^|]{0,80}?) \|"
#: name in a line -> canonical column; sequences are turned into tokens by the sequence length
_FIELDS = {
    b"lm loss": "train_loss",
    b"lm_loss": "train_loss",
    b"loss": "train_loss",
    b"learning rate": "lr",
    b"grad norm": "grad_norm",
    b"grad_norm": "grad_norm",
    b"consumed tokens": "tokens",
    b"consumed samples": "samples",
    b"global batch size": "sequences",
}
_COLUMNS = ("step", "tokens", "tokens_per_step", "train_loss", "lr", "grad_norm")
_MARKS = (b" arguments -----", b"pretrain_gpt.py", b"DeepSpeed", b"megatron", b"NeoXArgs")


def sniff(sample: Sample) -> int:
    """Certain when an iteration line is there, or the arguments that are printed before the first."""
    for part in (sample.head, sample.tail):
        if b"iteration" in part and re.search(_LINE, visible(part)):
            return 95
    head = sample.head
    return 80 if sum(mark in head for mark in _MARKS) >= 2 and b" ..." in head else 0


def read(path: str, declaration: Declaration) -> RawLog:
    """Read the standard output of a run.

    Raises:
        TokenAxisError: no iteration line.
    """
    content = read_content(path)
    data = readable(content)
    first = re.search(_ROW, data)
    head = data[: first.start() if first else 1 << 18]
    facts = arguments(head)
    seq_len = declaration.seq_len or next((value for key, value, _, _ in facts if key == "seq_len"), None)
    facts += arguments_in_sequences(head, seq_len)
    train = _train_rows(data, seq_len, _fields(declaration.columns))
    if train.total and not any(key == "planned_steps" for key, *_ in facts):
        facts.append(("planned_steps", train.total, "emitted", "iteration N/ TOTAL"))
    val, notices = _validation(data)
    if len(train.rows.offsets):
        val.columns |= _consumed_at(train.rows, val)
        if not len(val.offsets) and _no_loss(train.rows):
            raise missing_column("train_loss", sorted(train.names), declaration.columns)
    names = {
        "step": "iteration",
        "tokens": "consumed tokens" if b"consumed tokens" in data else "consumed samples",
        "tokens_per_step": "global batch size",
        "train_loss": "lm loss",
        "val_loss": "lm loss value",
        "lr": "learning rate",
        "grad_norm": "grad norm",
    }
    log = build(
        NAME,
        content,
        [train.rows, val],
        names | {canonical: own for canonical, own in declaration.columns.items() if canonical in names},
        broken=train.broken,
        facts=facts,
        warnings=_notices(data, seq_len) + notices,
        what="`iteration N/ TOTAL` line",
    )
    log.tokens_convention = "after" if "tokens" in log.columns else None
    interval = next((value for key, value, _, _ in facts if key == "train_loss_interval_steps"), None)
    log.means["train_loss"] = IntervalMean(interval, counted_after=True)
    return log


class _Train(NamedTuple):
    """Rows of iteration lines; bytes of lines that break off before any field; planned iterations; names of fields."""

    rows: Rows
    broken: list[int]
    total: int
    names: set[str]


def _fields(declared: Mapping[str, str]) -> dict[bytes, str]:
    """Name in a line, lower case -> column; a declared name takes the place of those that are known for its column."""
    fields = {name: column for name, column in _FIELDS.items() if column not in declared}
    return fields | {own.strip().lower().encode(): canonical for canonical, own in declared.items()}


def _no_loss(train: Rows) -> bool:
    import numpy as np

    flagged = any(name == "train_loss" for name, _ in train.unusable)
    return not flagged and bool(np.isnan(train.columns["train_loss"]).all())


def _validation(data: bytes) -> tuple[Rows, list[Notice]]:
    """Validation losses of one set: of several the first, of the test set none unless it is all there is."""
    import numpy as np

    names: list[bytes] = []
    offsets, steps, values = array("q"), array("d"), array("d")
    unusable: dict[tuple[str, str], list[int]] = {}
    for match in re.finditer(_VAL, data):
        names.append(_set_name(*match.group(1, 2, 4)))
        value, trouble = _number(match.group(5))
        if trouble is not None:
            unusable.setdefault(("val_loss", trouble), []).append(len(offsets))
        offsets.append(match.start())
        steps.append(float(match.group(3)[:18]))
        values.append(value)
    rows = Rows(
        np.array(offsets),
        {"step": np.array(steps), "val_loss": np.array(values)},
        {key: np.array(indices, np.int64) for key, indices in unusable.items()},
    )
    sets = sorted(dict.fromkeys(names), key=lambda name: (name == b"test", name != b""))
    if len(sets) < 2:
        return rows, []
    chosen = rows.only(np.array([name == sets[0] for name in names]))
    if sets[1:] == [b"test"]:
        return chosen, []
    shown = ", ".join(repr(name.decode("utf-8", "replace")) for name in sets[:6] if name)
    message = f"validation losses of several sets ({shown}); the first was taken as val_loss"
    return chosen, [Notice("val_loss_chosen", message)]


def _set_name(kind: bytes, name: bytes | None, where: bytes) -> bytes:
    """Which set a validation line is of: b"test", b"" for the one that has no name, or its name."""
    if kind == b"test" or b"test set" in where:
        return b"test"
    return b" ".join((name or b"", where.replace(b"on validation set", b"").strip())).strip()


def _train_rows(data: bytes, seq_len: float | None, fields: Mapping[bytes, str]) -> _Train:
    import numpy as np

    offsets, total = array("q"), 0
    names: set[str] = set()
    broken: list[int] = []
    columns = {name: array("d") for name in _COLUMNS}
    unusable: dict[tuple[str, str], list[int]] = {}
    field = re.compile(_FIELD)
    for match in re.finditer(_ROW, data):
        # a line that is whole may end without a bar
        found = field.findall(match.group(3) + (b" |" if match.end() < len(data) else b""))
        cells = {fields[name.strip().lower()]: text for name, text in found if name.strip().lower() in fields}
        if not found:
            broken.append(match.start())
            continue
        total = int(match.group(2)[:18])
        row = len(offsets)
        if row == 0:
            names.update(name.decode("utf-8", "replace").strip() for name, _ in found)
        offsets.append(match.start())
        cells["step"] = match.group(1)
        if seq_len:
            for sequences, tokens in (("samples", "tokens"), ("sequences", "tokens_per_step")):
                if tokens not in cells and sequences in cells:
                    cells[tokens] = _times(cells[sequences], seq_len)
        for name, column in columns.items():
            value, kind = _number(cells.get(name))
            column.append(value)
            if kind is not None:
                unusable.setdefault((name, kind), []).append(row)
    rows = Rows(np.array(offsets, np.int64), {name: np.array(column) for name, column in columns.items()})
    rows.unusable = {key: np.array(indices, np.int64) for key, indices in unusable.items()}
    return _Train(rows, broken, total, names)


def _consumed_at(train: Rows, val: Rows) -> dict[str, np.ndarray]:
    """Tokens consumed and batch at validation lines, which do not state them: from the train lines around them.

    Between two train lines the batch is constant or, in a ramp-up, changes once, where the two counts put it. Where
    that does not fit, or after the last line, the tokens stay blank.
    """
    import numpy as np

    tokens, batch = np.full(len(val.offsets), np.nan), np.full(len(val.offsets), np.nan)
    following = np.searchsorted(train.offsets, val.offsets)
    known = train.columns
    for row, (step, after) in enumerate(zip(val.columns["step"].tolist(), following.tolist(), strict=True)):
        before = _state(known, after - 1) if after > 0 else (0.0, 0.0, float("nan"))
        if after == len(train.offsets) or known["step"][after] < step:
            batch[row] = before[2]
            continue
        later = _state(known, after)
        first, last = (before[2] if before[2] == before[2] else later[2]), later[2]
        steps, consumed = later[0] - before[0], later[1] - before[1]
        early = steps if first == last else (last * steps - consumed) / (last - first)
        fits = first * early + last * (steps - early) == consumed
        if fits and step >= before[0] and 0 <= early <= steps:
            done = step - before[0]
            tokens[row] = before[1] + first * min(done, early) + last * max(0.0, done - early)
            batch[row] = first if done <= early else last
        elif first == last:
            batch[row] = last
    return {"tokens": tokens, "tokens_per_step": batch}


def _state(columns: dict[str, np.ndarray], row: int) -> tuple[float, float, float]:
    """(step, tokens after it, batch) of a train line."""
    return tuple(float(columns[name][row]) for name in ("step", "tokens", "tokens_per_step"))  # type: ignore[return-value]


def _number(text: bytes | None) -> tuple[float, str | None]:
    if text is None:
        return float("nan"), None
    try:
        value = float(text)
    except ValueError:
        return float("nan"), "text"
    if value != value or value in (float("inf"), float("-inf")):
        return float("nan"), "nan" if value != value else "inf"
    return value, None


def _times(text: bytes, factor: float) -> bytes:
    value, kind = _number(text)
    return text if kind else repr(value * factor).encode()


def _notices(data: bytes, seq_len: float | None) -> list[Notice]:
    notices = []
    if seq_len is None and b"consumed samples" in data and b"consumed tokens" not in data:
        message = (
            "consumed samples are not turned into tokens: the sequence length is not in the log; "
            "declare it, e.g. `defaults: {seq_len: 2048}`"
        )
        notices.append(Notice("seq_len_unknown", message))
    return notices


READER = Reader(NAME, "standard output of Megatron-LM, Megatron-DeepSpeed and GPT-NeoX", sniff, read)
