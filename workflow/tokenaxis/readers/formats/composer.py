"""Standard output of MosaicML's Composer and LLM Foundry: `[batch=5/100]:`, then `Train loss/train/total: 9.8` a line.

`[batch=N]` counts the batches done, this one among them, `Train time/batch` and `time/token` those before it. An
evaluation's block is headed `[Eval batch=...]` and belongs to the batch last named. Before 0.11 every value stood on a
line of its own behind the batch: `[batch=5/100]: loss/train/total: 9.8`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from tokenaxis.declarations import Declaration
from tokenaxis.readers.base import RawLog, Reader, Sample
from tokenaxis.readers.content import read_content
from tokenaxis.readers.lines import lead, readable, visible, whole_lines
from tokenaxis.readers.records import Records

NAME = "composer"
_HEAD = rb"\[(?:epoch=\d+[^\]]*\]\[)?batch=\d+/\d+\]:?"
_BLOCK = (
    _HEAD
    + rb"(?:\s*\n[^\n]{0,60}?\s(?:Train )?[\w./-]+(?: [\w./-]+)?: "
    + rb"|[ \t]+(?:Train )?(?:loss/|metrics/|trainer/|wall_))"
)
_MARK = rb"\[(epoch=\d+[^\]]*\]\[)?(Eval )?batch=(\d+)/(\d+)\]:?[ \t]*(.*)"
_VALUE = rb"\s*(?:Train |Eval )?([\w./ ()-]{1,120}?): +([-+.\w]+)\s*"
#: Composer's names -> canonical; the first loss that a block has counts
_LOSSES = ("loss/train/total", "metrics/train/LanguageCrossEntropy", "LanguageCrossEntropy")
_EVALS = ("metrics/eval/LanguageCrossEntropy", "metrics/eval/CrossEntropy", "LanguageCrossEntropy")
_LR = r"lr-\w+/group0"
_GRAD = "l2_norm/grad/global"


def sniff(sample: Sample) -> int:
    """Certain when a batch in brackets is followed by a value."""
    parts = (part for part in (sample.head, sample.tail) if b"batch=" in part)
    return 90 if any(re.search(_BLOCK, visible(part)) for part in parts) else 0


def read(path: str, declaration: Declaration) -> RawLog:
    """Read the standard output of a run.

    Raises:
        TokenAxisError: no batch with a loss.
    """
    content = read_content(path)
    records = Records(declaration.columns)
    planned = 0
    for line, row, total in _rows(whole_lines(readable(content))):
        planned = max(planned, total)
        records.add(line, row)
    log = records.log(NAME, list(content.notices), what="block")
    if "tokens" in log.columns:
        log.tokens_convention = "before"
    if planned:
        log.facts.append(("planned_steps", planned, "emitted", "[batch=N/TOTAL]"))
    return log


def _rows(data: bytes) -> Iterator[tuple[int, dict[str, Any], int]]:
    """(line, values by canonical name, planned batches or 0) of each block."""
    before, marks, pairs = re.compile(lead(data, _HEAD)), re.compile(_MARK), re.compile(_VALUE)
    values: dict[str, bytes] = {}
    step, total, start, of_epoch, evaluation = -1, 0, 0, False, False
    for number, line in enumerate(data.split(b"\n"), 1):
        led = before.match(line)
        text = line if led is None else line[led.end() :]
        mark = marks.match(text)
        if mark is not None:
            batch = int(mark.group(3)[:15])
            if bool(mark.group(2)) != evaluation or (not evaluation and batch - 1 != step):
                yield from _row(start, step, values, evaluation, of_epoch, total)
                values, start, evaluation = {}, number, bool(mark.group(2))
            if not evaluation:
                of_epoch = mark.group(1) is not None
                step, total = batch - 1, 0 if of_epoch else int(mark.group(4)[:15])
            text = mark.group(5)
        value = pairs.fullmatch(text[:400])
        if value is not None and start:
            values.setdefault(value.group(1).decode("utf-8", "replace").strip(), value.group(2))
        elif text.strip() and mark is None and values:
            yield from _row(start, step, values, evaluation, of_epoch, total)
            values = {}
    yield from _row(start, step, values, evaluation, of_epoch, total)


def _row(
    line: int, step: int, values: dict[str, bytes], evaluation: bool, of_epoch: bool, total: int
) -> Iterator[tuple[int, dict[str, Any], int]]:
    """One block; a batch that counts within an epoch takes its step from `time/batch`, else there is none."""
    own = {name: text.decode("utf-8", "replace") for name, text in values.items()}
    loss = next((own[name] for name in (_EVALS if evaluation else _LOSSES) if name in own), None)
    if loss is None or step < 0:
        return
    if evaluation:
        yield line, {"step": step + 1, "val_loss": loss}, 0
        return
    row: dict[str, Any] = {"train_loss": loss}
    if "time/batch" in own or not of_epoch:
        row["step"] = own.get("time/batch", step)
    for name, text in own.items():
        if re.fullmatch(_LR, name):
            row.setdefault("lr", text)
    row |= {name: own[key] for name, key in (("tokens", "time/token"), ("grad_norm", _GRAD)) if key in own}
    yield line, row, total


READER = Reader(NAME, "standard output of Composer and LLM Foundry", sniff, read)
