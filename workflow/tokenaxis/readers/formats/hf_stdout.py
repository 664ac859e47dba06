"""Standard output of the Hugging Face Trainer (also TRL, Axolotl, ms-swift): `{'loss': 2.3, ..., 'epoch': 0.1}`.

The mappings bear no step unless a trainer adds one (`global_step`, or ms-swift's `global_step/max_steps`); then it is
that of a progress bar: one that ends where the mapping begins, one drawn again right behind it, else the last before
it. `loss` is the mean since the mapping before, the step counts the updates done.
"""

from __future__ import annotations

import re
from array import array
from bisect import bisect_right
from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Any

from tokenaxis import units
from tokenaxis.declarations import Declaration
from tokenaxis.errors import Notice, TokenAxisError
from tokenaxis.readers.base import IntervalMean, RawLog, Reader, Sample
from tokenaxis.readers.content import read_content
from tokenaxis.readers.headers import Fact, line_of
from tokenaxis.readers.lines import readable, visible
from tokenaxis.readers.records import Records

NAME = "hf-stdout"
_MAPPING = rb"\{(?=[^{}\n]{0,8000}'(?:eval_)?loss': )(?=[^{}\n]{0,8000}'epoch': )'[^{}\n]{1,8000}\}"
_ITEM = rb"'([^'\n]{1,200})': (?:'([^'\n]{0,80})'|([^,'}\s]{1,40}))"
#: a bar of iterations; those of data sets count examples
_BAR = rb"(\d{1,12})/(\d{1,12}) \[[\d:]{1,12}<[\d:?]{1,12},? {1,3}[\d.?]{1,12}(?:it/s|s/it)"
#: ms-swift's step with its end
_STEP_OF = rb"(\d{1,15})/(\d{1,15})"
_STEPS = (b"global_step/max_steps", b"global_step", b"step")
#: bytes behind a mapping in which its bar is drawn again, nothing but white space before it
_AGAIN = 400
_HEADER = (
    (rb"Total train batch size \(w\. parallel[^)\n]{0,60}\) = ([\d,]+)", "sequences_per_step"),
    (rb"Total batch size \([\dx ]{1,40}\) = ([\d,]+)", "sequences_per_step"),
    (rb"Total (?:optimization )?steps = ([\d,]+)", "planned_steps"),
)
_NO_STEPS = TokenAxisError(
    "shows the Hugging Face Trainer's losses with epochs and no steps (no progress bar is among them)",
    remedy="give the trainer_state.json of its output folder or of a checkpoint-N/ in it instead, which has every step",
)
#: share of training losses that may stand at the step of the one before (a bar redrawn late)
_SAME = 0.1
_APART = TokenAxisError(
    "shows the Hugging Face Trainer's losses apart from its progress bar (buffered), so that their steps are lost",
    remedy=_NO_STEPS.remedy,
)


def sniff(sample: Sample) -> int:
    """Certain when a mapping stands beside a bar, or names a step."""
    for part in (sample.head, sample.tail):
        if b"loss': " in part:
            part = visible(part)
            mappings = re.findall(_MAPPING, part)
            if mappings and (re.search(_BAR, part) is not None or _own_step(mappings[-1]) is not None):
                return 87
    return 0


def lacks(sample: Sample) -> TokenAxisError | None:
    """Mappings without steps."""
    for part in (sample.head, sample.tail):
        if b"loss': " in part and re.search(_MAPPING, visible(part)) is not None:
            return _NO_STEPS
    return None


def read(path: str, declaration: Declaration) -> RawLog:
    """Read the standard output of a run.

    Raises:
        TokenAxisError: no mapping with a loss, none whose step is known, or all stand apart from the bar.
    """
    content = read_content(path)
    data = readable(content)
    mappings = list(re.finditer(_MAPPING, data))
    steps, total = _steps(data, mappings)
    records = Records(declaration.columns)
    line, counted, rewards = 1, 0, False
    for match, step in zip(mappings, steps, strict=True):
        line += content.data.count(b"\n", counted, match.start())
        counted = match.start()
        row = dict(_items(match.group()))
        rewards = rewards or "reward" in row
        if step is not None:
            records.add(line, {"step": step, **row})
    if not records.lines:
        raise TokenAxisError(_NO_STEPS.reason, remedy=_NO_STEPS.remedy)
    log = records.log(NAME, [*content.notices, *_notices(steps, rewards)], what="mapping")
    log.means["train_loss"] = IntervalMean(None, counted_after=True)
    log.tokens_convention = "after" if "tokens" in log.columns else None
    log.facts += _facts(data, total)
    return log


def _items(mapping: bytes) -> Iterator[tuple[str, Any]]:
    for name, quoted, plain in re.findall(_ITEM, mapping):
        # Transformers 5 prints four figures: tokens of many rows would be the same
        rounded = b"tokens" in name and b"e+" in quoted
        if name not in _STEPS and not rounded:
            yield name.decode("utf-8", "replace"), (quoted or plain).decode("utf-8", "replace")


def _own_step(mapping: bytes) -> tuple[int, int] | None:
    """(step, planned steps or 0) that a mapping names itself."""
    items = {name: quoted or plain for name, quoted, plain in re.findall(_ITEM, mapping)}
    for name in _STEPS:
        text = items.get(name)
        if text is None:
            continue
        match = re.fullmatch(_STEP_OF, text)
        if match is not None:
            return int(match.group(1)), int(match.group(2))
        if re.fullmatch(rb"\d{1,15}(?:\.0)?", text):
            return int(text.split(b".")[0]), 0
    return None


def _steps(data: bytes, mappings: Sequence[re.Match[bytes]]) -> tuple[list[int | None], int]:
    """Step of each mapping, and the planned steps or 0."""
    own = [_own_step(match.group()) for match in mappings]
    if any(named is not None for named in own):
        return [None if named is None else named[0] for named in own], max(named[1] for named in own if named)
    ends, counts, totals = array("q"), array("q"), array("q")
    for bar in re.finditer(_BAR, data):
        ends.append(bar.end())
        counts.append(int(bar.group(1)))
        totals.append(int(bar.group(2)))
    total = _training_total(mappings, ends, totals)
    kept = [index for index, end in enumerate(totals) if end == total]
    ends, counts = array("q", (ends[index] for index in kept)), array("q", (counts[index] for index in kept))
    steps = [_step_at(data, match, ends, counts, total) for match in mappings]
    trained = [step for step, match in zip(steps, mappings, strict=True) if b"'loss': " in match.group()]
    same = sum(before is not None and before == step for before, step in pairwise(trained))
    if same > max(1, _SAME * len(trained)):
        raise TokenAxisError(_APART.reason, remedy=_APART.remedy)
    return steps, total


def _step_at(data: bytes, match: re.Match[bytes], ends: Sequence[int], counts: Sequence[int], total: int) -> int | None:
    """Step of a mapping: a bar on its line, a bar drawn again right behind it, else the last bar before it."""
    before = bisect_right(ends, match.start()) - 1
    same_line = before >= 0 and not data[ends[before] : match.start()].strip(b" ]")
    after = data[match.end() : match.end() + _AGAIN]
    behind = None if same_line else re.search(_BAR, after)
    if behind is not None and int(behind.group(2)) == total:
        between = after[: behind.start()]
        if b"\n" in between and not between.translate(None, b" \t\n0123456789%|").strip(_BLOCKS):
            return int(behind.group(1))
    return counts[before] if before >= 0 else None


#: what bars are drawn with, as bytes of UTF-8 and of its misreadings
_BLOCKS = "▏▎▍▌▋▊▉█#=>-.".encode()


def _training_total(mappings: Sequence[re.Match[bytes]], ends: Sequence[int], totals: Sequence[int]) -> int:
    """The end of the bar that most training losses stand behind; evaluation has bars of its own."""
    nearest = Counter[int]()
    for match in mappings:
        before = bisect_right(ends, match.start()) - 1
        if before >= 0 and b"'loss': " in match.group():
            nearest[totals[before]] += 1
    return nearest.most_common(1)[0][0] if nearest else 0


def _notices(steps: Sequence[int | None], rewards: bool) -> list[Notice]:
    notices = []
    unknown = sum(step is None for step in steps)
    if unknown:
        message = f"{unknown} losses stand before the first progress bar, so that their step is not known; left out"
        notices.append(Notice("losses_without_step", message))
    if rewards:
        message = "rows hold rewards: their loss is that of a policy (reinforcement learning), not nats per token"
        notices.append(Notice("loss_of_a_policy", message))
    return notices


def _facts(data: bytes, total: int) -> list[Fact]:
    facts: list[Fact] = []
    for pattern, key in _HEADER:
        match = re.search(pattern, data[: 1 << 18])
        value = None if match is None else units.count(match.group(1).decode())
        if match is not None and value and not any(key == found for found, *_ in facts):
            facts.append((key, int(value), "emitted", f"line {line_of(data, match.start())}"))
    if total and not any(key == "planned_steps" for key, *_ in facts):
        facts.append(("planned_steps", total, "emitted", "end of the progress bar"))
    return facts


READER = Reader(NAME, "standard output of the Hugging Face Trainer with a progress bar", sniff, read, lacks)
