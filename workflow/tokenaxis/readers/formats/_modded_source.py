"""What the training source that modded-nanogpt puts above its log says about batches and the model.

Names of its hyperparameters changed: `batch_size` in sequences with `sequence_length` (2024), `train_seq_len` a rank
(2025), `train_batch_size` in tokens (late 2025), then `train_bs_schedule`, which `get_bs` spreads over
`num_scheduled_iterations` in equal parts, and `train_bs_extension` after them (2026).
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

_PRODUCT = rb"\d[\d_]*(?: *\* *\d[\d_]*)*"
_SETTING = rb"(?m)^ +(\w+)(?: *: *int)? *= *(" + _PRODUCT + rb")(?= *(?:#|\r?$))"
_SCHEDULE = rb"(?m)^ +train_bs_schedule *(?:: *tuple)? *= *\(([\d_\s*,]{1,800})\)"
#: get_bs as the records have it; another rule would give other stages
_RULE = (
    rb"def get_bs\(step(?:: int)?\):\s+if step >= args\.num_scheduled_iterations:\s+return args\.train_bs_extension\s+"
    rb"x = step / args\.num_scheduled_iterations\s+bs_idx = int\(len\(args\.train_bs_schedule\) \* x\)\s+"
    rb"return args\.train_bs_schedule\[bs_idx\]"
)
#: a batch of one sequence a rank; the records are of eight ranks, or of as many as accumulation makes up for
_PER_RANK = rb"world_size \* args\.train_seq_len\b"
_EIGHT = rb"assert world_size == 8\b|grad_accum_steps = 8 // world_size"
_MODEL = rb"= GPT\([^)]{0,400}\bnum_layers=[^)]{0,400}\)"
_FACTS = {
    b"sequence_length": "seq_len",
    b"train_seq_len": "seq_len",
    b"train_max_seq_len": "seq_len",
    b"n_layer": "n_layers",
    b"num_layers": "n_layers",
    b"n_head": "n_heads",
    b"num_heads": "n_heads",
    b"n_embd": "d_model",
    b"model_dim": "d_model",
    b"vocab_size": "vocab_size",
}


class BatchPlan(NamedTuple):
    """The batch by step.

    Attributes:
        stages: (first step, tokens a step), ascending, from step 0.
        offset: byte where the source says so.
        note: by what names.
    """

    stages: tuple[tuple[int, int], ...]
    offset: int
    note: str

    @property
    def varies(self) -> bool:
        return len({size for _, size in self.stages}) > 1


def settings_of(source: bytes) -> Iterator[tuple[str, int, int, str]]:
    """(fact key, value, byte, name in the source) of the settings that are facts, each name's first."""
    for name, (value, offset) in _settings(source).items():
        if name in _FACTS and value > 0:
            yield _FACTS[name], value, offset, name.decode()
    call = re.search(_MODEL, source)
    if call is None:
        return
    for match in re.finditer(rb"\b(num_layers|num_heads|model_dim)=(\d{1,9})\b", call.group()):
        yield _FACTS[match.group(1)], int(match.group(2)), call.start(), match.group(1).decode()


def batch_plan(source: bytes) -> BatchPlan | None:
    """The batch that the source states; None where it does not, or by a rule that is not known."""
    settings = _settings(source)
    if re.search(_SCHEDULE, source) is not None:
        return _scheduled(source, settings)
    if b"train_batch_size" in settings:
        tokens, offset = settings[b"train_batch_size"]
        return _fixed(tokens, offset, "train_batch_size")
    if b"batch_size" in settings and b"sequence_length" in settings:
        sequences, offset = settings[b"batch_size"]
        return _fixed(sequences * settings[b"sequence_length"][0], offset, "batch_size * sequence_length")
    if b"train_seq_len" in settings and re.search(_PER_RANK, source) and re.search(_EIGHT, source):
        length, offset = settings[b"train_seq_len"]
        return _fixed(8 * length, offset, "train_seq_len * world_size, of which there are 8")
    return None


def _fixed(tokens: int, offset: int, note: str) -> BatchPlan | None:
    return BatchPlan(((0, tokens),), offset, note) if tokens > 0 else None


def _scheduled(source: bytes, settings: dict[bytes, tuple[int, int]]) -> BatchPlan | None:
    match = re.search(_SCHEDULE, source)
    scheduled = settings.get(b"num_scheduled_iterations", (0, 0))[0]
    extension = settings.get(b"train_bs_extension", (0, 0))[0]
    if match is None or re.search(_RULE, source) is None or not (0 < scheduled < 10**9 and extension > 0):
        return None
    parts = [part.strip() for part in match.group(1).split(b",") if part.strip()]
    if not all(re.fullmatch(_PRODUCT, part) for part in parts) or not parts:
        return None
    sizes = [_product(part) for part in parts]
    # the first step whose share of the schedule reaches part i of n: step * n >= i * scheduled
    starts = [-(-number * scheduled // len(sizes)) for number in range(len(sizes))]
    stages = [*zip(starts, sizes, strict=True), (scheduled, extension)]
    return BatchPlan(tuple(stages), match.start(), "train_bs_schedule") if min(sizes) > 0 else None


def _settings(source: bytes) -> dict[bytes, tuple[int, int]]:
    found: dict[bytes, tuple[int, int]] = {}
    for match in re.finditer(_SETTING, source):
        found.setdefault(match.group(1), (_product(match.group(2)), match.start(1)))
    return found


def _product(text: bytes) -> int:
    value = 1
    for factor in text.split(b"*")[:8]:
        value *= int(factor[:20])
    return min(value, 10**18)
