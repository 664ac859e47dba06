"""Text logs of any trainer that writes names and numbers.

`step=100 loss=3.5 lr=1e-4`, `Step 100 | loss: 3.5`, `step 100/900, train loss 3.5`: the last resort before a text is
called no log. Only lines that name both a step and a loss are rows. Steps are taken as the log counts them, but of
trainers whose lines are known to count the update of their batch (`_COUNT_THE_BATCH`).
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from functools import cache
from itertools import islice, pairwise

from tokenaxis import units
from tokenaxis.columns import normalise
from tokenaxis.declarations import Declaration
from tokenaxis.errors import Notice, TokenAxisError
from tokenaxis.readers import naming
from tokenaxis.readers.base import RawLog, Reader, Sample
from tokenaxis.readers.cells import may_be_cut
from tokenaxis.readers.content import read_content
from tokenaxis.readers.formats._key_value_lines import FIRST_LINES, Repeats, Row, one_rank
from tokenaxis.readers.headers import line_of
from tokenaxis.readers.lines import readable, visible
from tokenaxis.readers.records import Records

NAME = "key-value"
_NUMBER = (
    r"(?:\d{1,3} days?, )?\d{1,6}:\d\d(?::\d\d(?:\.\d+)?)?"
    r"|[-+]?(?:\d(?:[\d,_]*\d)?\.?\d*(?:e[-+]?\d+)?|\.\d+|nan|inf(?:inity)?)"
)
_PAIR = re.compile(
    r"(?<![\w.])([A-Za-z_][\w/.\-]*(?: (?:loss|step|rate|norm|tokens|lr|train|val|valid))?)"
    r"[\"']?(?: *[:=] *| +)\[?[\"']?"
    rf"({_NUMBER})(K|M|B|T|ms|s|min|h)?(?:/\d+)?(?![\w.])",
    re.IGNORECASE,
)
#: lines that must be of the kind, and bytes of a line that are looked at
_NEEDED, _LONGEST = 2, 1000
#: bytes before a last line whose lines it is compared with
_TORN_WINDOW = 8192
#: lines of trainers that count an update before they log its loss
_COUNT_THE_BATCH = (
    ("torchtune", rb"Step \d+ \| loss:[-+.\dnaif]+ lr:[^\n]*tokens_per_second_per_gpu:"),
    ("lingua", rb"step: \d+ +acc: \d+ +loss: "),
    ("mistral-finetune", rb"step: \d+ - done \(%\): [\d.]+ - loss: "),
)
_LOSS_LINE = re.compile(rb"(?mi)^[^\n]{0,400}?loss[^\n]{0,400}")
#: lines by which a counter shows, and what grows and counts no updates
_COUNTED, _NO_COUNTERS = 3, ("time", "ep", "elapsed")
#: build-nanogpt's and nanoGPT's names of the batch, whose forks write lines of their own
_BATCH = (
    rb"(?i)(?:tokens ?(?:per|/) ?(?:optimi[sz]er )?(?:iteration|step|batch|update)|total desired batch size)"
    rb"[^\d\n]{0,30}([\d,_]+)(?![\w.])"
)
#: before the first name of a line: its loss is that of an evaluation
_EVALUATION = re.compile(r"(?<![\w./-])(?:val|valid|validation|eval|evaluation)(?![\w./-])", re.IGNORECASE)
#: in a row with a loss: perhaps another one
_VALIDATION = rb"[ ,|\t]([Vv]al|[Vv]alid|[Vv]alidation) ?[=:] ?\d{1,2}\.\d{2,}(?=[\s,|]|\Z)"
#: figures of rounding between two rows, below which tokens say little about the batch
_COARSE = 50
#: a progress bar with a loss in it
_BAR = rb"(?:\d+%\||it/s|s/it|rate:[\d.]+(?:s/it|it/s))[^\n]*loss"


@cache
def _candidate(step: str | None = None, *losses: str) -> re.Pattern[bytes]:
    """Lines with the words of a step and a loss, or with what is declared to be one."""
    steps = b"|".join([b"step|iter|update", *([re.escape(step.encode())] if step else [])])
    words = b"|".join([b"loss", *(re.escape(loss.encode()) for loss in losses)])
    return re.compile(rb"(?mi)^(?=[^\n]{0,400}(?:%s))(?=[^\n]{0,400}(?:%s))[^\n]+" % (steps, words))


def _lines(columns: Mapping[str, str]) -> re.Pattern[bytes]:
    return _candidate(columns.get("step"), *(columns[role] for role in ("train_loss", "val_loss") if role in columns))


def sniff(sample: Sample) -> int:
    """Hesitant: two lines of the head or the tail name a step and a loss, each with a number."""
    for part in (sample.head, sample.tail):
        if b"oss" not in part and b"OSS" not in part and not sample.columns:
            continue
        found = 0
        for match in _lines(sample.columns).finditer(visible(part)):
            if _row(match.group()[:_LONGEST].decode("utf-8", "replace"), sample.columns) is not None:
                found += 1
                if found == _NEEDED:
                    return 51
    return 0


def lacks(sample: Sample) -> TokenAxisError | None:
    """Losses that only a progress bar shows, or lines that name a loss and no step."""
    for part in (sample.head, sample.tail):
        if b"oss" not in part:
            continue
        part = visible(part)
        if re.search(_BAR, part, re.IGNORECASE) is not None:
            return TokenAxisError(
                "shows its losses in a progress bar, which counts batches of an epoch, not optimizer steps",
                remedy="give what its logger writes instead (CSV, TensorBoard, W&B), or have it print steps and losses",
            )
        counter = _counter(part)
        if counter is not None:
            return TokenAxisError(
                "its lines name a loss and no step",
                remedy=f"if {counter!r} counts optimizer steps, declare `defaults: {{columns: {{step: {counter}}}}}`",
            )
    return None


def _counter(part: bytes) -> str | None:
    """Name of the one whole number that grows from line to line with a loss."""
    seen: dict[str, list[int]] = {}
    lines = 0
    for match in islice(_LOSS_LINE.finditer(part), FIRST_LINES):
        pairs = {name: number for name, number, suffix in _PAIR.findall(match.group().decode("utf-8", "replace"))}
        if any(_role(name, ()) in ("train_loss", "val_loss") for name in pairs):
            lines += 1
            for name, number in pairs.items():
                if number.isdecimal() and _role(name, ()) is None and not normalise(name).startswith(_NO_COUNTERS):
                    seen.setdefault(name, []).append(int(number))
    grow = [
        name
        for name, numbers in seen.items()
        if len(numbers) == lines >= _COUNTED and all(one < other for one, other in pairwise(numbers))
    ]
    return grow[0] if len(grow) == 1 else None


def read(path: str, declaration: Declaration) -> RawLog:
    """Read the lines that name a step and a loss.

    Raises:
        TokenAxisError: there is no such line.
    """
    content = read_content(path)
    data = readable(content)
    lines = _lines(declaration.columns)
    torn = _torn(data, declaration.columns)
    data = data[:torn]
    records, repeats = Records(declaration.columns), Repeats(one_rank(data, lines))
    trainer = next((name for name, line in _COUNT_THE_BATCH if re.search(line, data) is not None), None)
    line, counted = 1, 0
    step_name: str | None = None
    for match in lines.finditer(data):
        text = match.group()[:_LONGEST]
        row = _row(text.decode("utf-8", "replace"), declaration.columns)
        if row is None:
            continue
        if row.name != step_name:
            step_name = row.call_step(step_name)
        line += content.data.count(b"\n", counted, match.start())
        counted = match.start()
        for known_line, known in repeats.fresh(text, line, row):
            records.add(known_line, known)
    if not records.lines:
        raise TokenAxisError(
            "has no line that names a step and a loss", remedy="convert it to CSV with the columns step and train_loss"
        )
    notice = Notice("read_by_names", "no reader knows this format: lines were read by the names before their numbers")
    log = records.log(NAME, [*content.notices, notice, *repeats.notices()], what="line")
    if torn is not None:
        message = f"line {line_of(content.data, torn)}, the last, may be cut inside; left out"
        log.warnings.append(Notice("torn_last_line", message))
    if trainer is not None:
        log.warnings += _before_the_batch(log, trainer)
    tokens = re.search(_BATCH, data[: 1 << 16])
    if tokens is not None:
        value = units.count(tokens.group(1).decode())
        if value:
            log.facts.append(("tokens_per_step", value, "emitted", f"line {line_of(data, tokens.start())}"))
    log.warnings += _rounded_tokens(log)
    if "val_loss" not in log.columns:
        log.warnings += _unnamed_validation(data)
    return log


def _torn(data: bytes, columns: Mapping[str, str]) -> int | None:
    """Where a last line begins that may be cut inside: no line end, and fewer names, or figures, than lines like it."""
    if data.endswith((b"\n", b"\r")):
        return None
    start = data.rfind(b"\n") + 1
    text = data[start : start + _LONGEST].decode("utf-8", "replace")
    last = _row(text, columns)
    if last is None:
        return None
    before = data[max(0, start - _TORN_WINDOW) : start].decode("utf-8", "replace").splitlines()
    rows = [row.cells for line in before if (row := _row(line[:_LONGEST], columns)) is not None]
    names = list(last.cells)
    alike = [cells[names[-1]] for cells in rows if list(cells) == names]
    if not alike:
        return start if any(list(cells)[: len(names)] == names for cells in rows) else None
    number = last.cells[names[-1]]
    return start if text.endswith(number) and may_be_cut(number, alike) else None


def _before_the_batch(log: RawLog, trainer: str) -> list[Notice]:
    steps = log.columns["step"]
    if not steps.min() >= 1:
        return []
    import numpy as np

    trained = ~np.isnan(log.columns["train_loss"]) if "train_loss" in log.columns else np.zeros(len(steps), bool)
    log.columns["step"] = np.where(trained, steps - 1, steps)
    message = f"{trainer} counts an update before it logs its loss: step N became N-1, the updates done before"
    return [Notice("steps_one_based", message)]


def _unnamed_validation(data: bytes) -> list[Notice]:
    """What is to declare where rows have a `val=3.1` that nothing calls a loss."""
    for match in islice(re.finditer(_VALIDATION, data[: 1 << 20]), FIRST_LINES):
        line = data[data.rfind(b"\n", 0, match.start()) + 1 : match.start()]
        if b"loss" in line[:_LONGEST].lower():
            name = match.group(1).decode()
            message = f"{name!r} may be the validation loss; if so: `defaults: {{columns: {{val_loss: {name}}}}}`"
            return [Notice("val_may_be_a_loss", message)]
    return []


def _rounded_tokens(log: RawLog) -> list[Notice]:
    """Leave out tokens that are rounded (`tokens=0.792B`) so that the batch seems to change from row to row."""
    import numpy as np

    if "tokens" not in log.columns or "tokens_per_step" in log.columns:
        return []
    known = ~np.isnan(log.columns["tokens"])
    tokens, steps = log.columns["tokens"][known], log.columns["step"][known]
    grain = next((10**power for power in range(12, 2, -1) if not (tokens % 10**power).any()), 0)
    if not grain or len(tokens) < _COUNTED or not bool((np.diff(steps) > 0).all() and (np.diff(tokens) >= 0).all()):
        return []
    sizes = np.diff(tokens) / np.diff(steps)
    slope = (tokens[-1] - tokens[0]) / (steps[-1] - steps[0])
    if slope <= 0 or (sizes == sizes[0]).all() or np.median(np.diff(tokens)) > _COARSE * grain:
        return []
    name = log.names.pop("tokens")
    del log.columns["tokens"]
    log.unusable = {key: lines for key, lines in log.unusable.items() if key[0] != "tokens"}
    power = 2 ** round(math.log2(slope))
    size = power if abs(power / slope - 1) < 0.01 else int(float(f"{slope:.3g}"))
    message = f"{name!r} is rounded to {grain:,}, which says little about the batch: left out"
    if not log.facts:
        message += f"; a step is of about {slope:,.0f} tokens, e.g. `defaults: {{tokens_per_step: {size}}}`"
    return [Notice("batch_is_rounded", message)]


def _row(text: str, columns: Mapping[str, str]) -> Row | None:
    """Names and numbers of a line; None unless a step and a loss are among them."""
    row: dict[str, str] = {}
    roles: dict[str, str] = {}
    declared = tuple(sorted(columns.items()))
    for name, number, suffix in _PAIR.findall(text):
        role = _role(name, declared)
        if role is None and " " in name:
            # the word before belongs to the text, not to the name: "INFO step=100"
            name = name.rsplit(" ", 1)[1]
            role = _role(name, declared)
        if role == "train_loss" and name.lower() == "loss" and _of_evaluation(text, columns):
            name, role = "validation loss", "val_loss"
        if role is None or role == "kind" or name in row:
            continue
        row[name] = number + suffix
        roles.setdefault(role, name)
    return Row(row, roles["step"]) if "step" in roles and ("train_loss" in roles or "val_loss" in roles) else None


def _of_evaluation(text: str, columns: Mapping[str, str]) -> bool:
    """Whether a line says before its first name and number that it is of an evaluation, and nobody says otherwise."""
    if not ("val" in text or "Val" in text or "VAL" in text) or "train_loss" in columns:
        return False
    match = _EVALUATION.search(text)
    return match is not None and match.start() < text.lower().find("loss")


@cache
def _role(name: str, declared: tuple[tuple[str, str], ...]) -> str | None:
    if len(name) > 80 or normalise(name) in ("time", "epoch"):
        return None
    return naming.role(name, dict(declared))


READER = Reader(
    NAME, "any text whose lines name a step and a loss before numbers", sniff, read, lacks, last_resort=True
)
