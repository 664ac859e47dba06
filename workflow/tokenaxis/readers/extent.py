"""From which step to which a log reaches, by its first look alone: what tells attempts of one run from runs."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from tokenaxis.columns import LOSSES
from tokenaxis.errors import TokenAxisError
from tokenaxis.readers import cells, events, naming
from tokenaxis.readers.base import Sample
from tokenaxis.readers.lines import visible
from tokenaxis.readers.records import flatten
from tokenaxis.readers.table.dialect import Dialect, detect, split

#: what a step is called in text logs
_TEXT_STEP = re.compile(
    rb"(?mi)(?:(?<!per )\b(?:step|iter|iteration|update)[\"']?\s{0,9}[:= ]\s{0,9}(\d{1,15})"
    rb"|^s:(\d{1,15}) |^(\d{1,15}) (?:train|val)\b)"
)


#: formats whose lines call their steps otherwise, or name another count as well; compiled when one is asked for
_OWN_STEPS = {
    "hf-stdout": rb"'global_step(?:/max_steps)?': '?(\d{1,15})|(\d{1,15})/\d{1,15} \[[\d:]{1,12}<",
    "nemo": rb"global_step[=:] ?(\d{1,15})",
    "composer": rb"batch=(\d{1,15})/",
    "fairseq": rb"num_updates\W{1,4}(\d{1,15})",
}

#: a later stretch goes on where an earlier one ends if it begins at most this many logging intervals after it ...
GAP = 10
#: ... and beyond this share of the earlier one's steps: two runs whose warm-up was cut off begin alike, not equal
BEYOND_BEGINNING = 0.05


@dataclass(frozen=True)
class Extent:
    """Steps of a log: the first, the last, and how far its first two rows lie apart."""

    first: int
    last: int
    interval: int


def goes_on(chain: Sequence[Extent], steps: Extent) -> bool:
    """Whether a stretch begins inside the steps of a run so far, or right after them, and not where that began.

    It may end before the run did: the later attempt counts also where it is shorter.
    """
    first, last = chain[0].first, max(before.last for before in chain)
    interval = max(steps.interval, *(before.interval for before in chain))
    beginning = first + max(interval, BEYOND_BEGINNING * (last - first))
    # a first step of just an interval is a start from 0
    return beginning < steps.first <= last + GAP * interval


def extent(sample: Sample, reader: str) -> Extent | None:
    """The extent of a log; None where the first look does not show it (compressed, binary).

    Args:
        sample: the first look at the file.
        reader: name of the format.
    """
    if not sample.whole and not sample.tail:
        return None
    try:
        own = _OWN_STEPS.get(reader)
        steps = _FINDERS.get(reader, _in_text)(sample) if own is None else _named(own, sample)
    except (TokenAxisError, UnicodeDecodeError):
        return None
    if not steps:
        return None
    distinct = list(dict.fromkeys(steps))
    return Extent(steps[0], max(steps), abs(distinct[1] - distinct[0]) if len(distinct) > 1 else 1)


def _whole_lines(sample: Sample) -> tuple[list[bytes], list[bytes]]:
    """Lines of the head and of the tail that are seen from end to end."""
    head = sample.head.split(b"\n")
    if sample.whole:
        return head, []
    return head[:-1], sample.tail.split(b"\n")[1:]


def _in_table(sample: Sample) -> list[int]:
    dialect = detect(sample.head, sample.columns)
    if dialect is None:
        return []
    found = naming.resolve(dialect.names, sample.columns).candidates.get("step")
    if not found:
        return []
    head, tail = _whole_lines(sample)
    below = [line for line in head if line.strip()][1:]
    return list(_cells([*below, *tail], found[0][0].index, dialect))


def _cells(lines: Iterable[bytes], column: int, dialect: Dialect) -> Iterable[int]:
    for line in lines:
        row = split(line.decode("utf-8", "replace").strip("\r"), dialect.delimiter)
        if len(row) == len(dialect.names):
            step = step_of(row[column])
            if step is not None:
                yield step


def _in_records(sample: Sample) -> list[int]:
    steps = []
    head, tail = _whole_lines(sample)
    for line in (*head, *tail):
        try:
            record = json.loads(line)
        except (ValueError, RecursionError):
            continue
        if not isinstance(record, dict):
            continue
        for key, value in flatten(record):
            if naming.role(key, sample.columns) == "step":
                step = step_of(str(value))
                steps += [] if step is None else [step]
                break
    return steps


def _in_text(sample: Sample) -> list[int]:
    found = (_TEXT_STEP.findall(visible(sample.head)), _TEXT_STEP.findall(visible(sample.tail)))
    return [int(b"".join(groups)) for part in found for groups in part]


def _named(pattern: bytes, sample: Sample) -> list[int]:
    found = (groups for part in (sample.head, sample.tail) for groups in re.findall(pattern, visible(part)))
    return [int(groups if isinstance(groups, bytes) else b"".join(groups)) for groups in found]


def _in_events(sample: Sample) -> list[int]:
    """Steps of the scalars at both ends, of the losses where there are some."""
    found = list(events.scalars(sample.head))
    if not found:
        return []  # where it begins is not seen
    found += events.scalars(sample.tail[events.frame_start(sample.tail) :])
    losses = [scalar.step for scalar in found if naming.role(scalar.tag, sample.columns) in LOSSES]
    return [step for step in losses or [scalar.step for scalar in found] if step >= 0]


def step_of(text: str) -> int | None:
    """The step that a cell holds; None where it holds none."""
    try:
        value = float(text)
    except ValueError:
        value, _ = cells.number(text, "step")
    return int(value) if 0 <= value < 2**53 and value == int(value) else None


def _nothing(sample: Sample) -> list[int]:
    return []


_FINDERS = {
    "table": _in_table,
    "jsonl": _in_records,
    "tensorboard": _in_events,
    **dict.fromkeys(("wandb-offline", "parquet", "wandb-export", "mlflow", "json-history"), _nothing),
}
