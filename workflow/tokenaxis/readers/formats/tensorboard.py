"""TensorBoard event files (SummaryWriter, Lightning, Keras, Megatron, clu): scalars as floats or as tensors.

Scalars of one step that were written one after the other are one row. The event's step is the step, whatever a scalar
is called; elapsed time counts from the first event.
"""

from __future__ import annotations

import json
from typing import Any

from tokenaxis.declarations import Declaration
from tokenaxis.errors import Notice, TokenAxisError
from tokenaxis.readers import events, naming, remedies
from tokenaxis.readers.base import IntervalMean, RawLog, Reader, Sample
from tokenaxis.readers.content import read_content
from tokenaxis.readers.records import Records, flatten
from tokenaxis.readers.settings import facts_of

NAME = "tensorboard"
_VERSION = b"\x1a\x0dbrain.Event:"
#: where transformers' TensorBoardCallback puts what it was started with
_SETTINGS = ("args/text_summary", "model_config/text_summary")
_NO_SCALARS = "is an event file without a scalar"


def sniff(sample: Sample) -> int:
    """Certain when the first record states the version of event files."""
    return 99 if _VERSION in sample.head[:64] and not _is_empty(sample) else 0


def _is_empty(sample: Sample) -> bool:
    return sample.whole and not any(True for _ in events.scalars(sample.head))


def lacks(sample: Sample) -> TokenAxisError | None:
    """An event file that holds only its version."""
    if _VERSION in sample.head[:64] and _is_empty(sample):
        return TokenAxisError(f"{_NO_SCALARS}: no data", remedy="remove it, or wait until it holds some")
    return None


def read(path: str, declaration: Declaration) -> RawLog:
    """Read an event file.

    Raises:
        TokenAxisError: it holds no scalar that is known as a loss.
    """
    content = read_content(path)
    declared = {canonical: name for canonical, name in declaration.columns.items() if canonical != "step"}
    records = Records(declared)
    row: dict[str, Any] = {}
    first_record, start = 0, None
    tags: dict[str, None] = {}
    for scalar in events.scalars(content.data):
        tags[scalar.tag] = None
        if start is None:
            start = scalar.wall_time
        if naming.role(scalar.tag, declared) in (None, "step", "kind", "elapsed_s") or scalar.tag == "step":
            continue
        if row and (row["step"] != scalar.step or scalar.tag in row):
            records.add(first_record, row)
            row = {}
        if not row:
            first_record, row = scalar.record, {"step": scalar.step, "elapsed_s": scalar.wall_time - start}
        row[scalar.tag] = scalar.value
    if row:
        records.add(first_record, row)
    if not tags:
        raise TokenAxisError(f"{_NO_SCALARS}: no data", remedy="remove it, or wait until it holds some")
    if not records.rows:
        raise remedies.missing_column("train_loss", list(tags), declaration.columns)
    notices = list(content.notices)
    left = len(content.data) - events.whole_bytes(content.data)
    if left:
        notices.append(Notice("torn_last_line", f"the last record is torn or damaged: {left:,} bytes were not read"))
    log = records.log(NAME, notices, what="event")
    log.started = start
    _read_texts(log, content.data)
    return log


def _read_texts(log: RawLog, data: bytes) -> None:
    """Settings among the texts of an event file; a Hugging Face Trainer's losses are means over its logging_steps."""
    for tag, text in events.texts(data):
        try:
            settings = json.loads(text) if tag in _SETTINGS else None
        except (ValueError, RecursionError):
            continue
        if not isinstance(settings, dict):
            continue
        log.facts += facts_of(dict(flatten(settings)), f"{tag.removesuffix('/text_summary')} in the event file")
        if "logging_steps" in settings and "per_device_train_batch_size" in settings:
            log.means["train_loss"] = IntervalMean(None, counted_after=True)


READER = Reader(NAME, "TensorBoard event files", sniff, read, lacks)
