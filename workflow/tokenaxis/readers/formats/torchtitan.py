"""Standard output of pytorch/torchtitan: `... step: 10  loss: 3.5  grad_norm: 1.2  memory: ...`, coloured or not.

Steps count from 1: the line of step N gives the loss of the batch of update N, before which N-1 updates were done.
Until early 2025 its train.py logged the mean of the losses since the line before (`losses_since_last_log`); those lines
have no `tflops:`, and their batch size stands behind `Training starts at step`. Ranks of a pipeline's stages but the
last log a loss of -1.
"""

from __future__ import annotations

import re

from tokenaxis import units
from tokenaxis.declarations import Declaration
from tokenaxis.errors import Notice, TokenAxisError
from tokenaxis.readers.base import IntervalMean, RawLog, Reader, Sample
from tokenaxis.readers.content import read_content
from tokenaxis.readers.headers import Fact, batch_by_header, line_of
from tokenaxis.readers.lines import readable, visible
from tokenaxis.readers.textlog import Rows, broken_rows, build, find_rows, one_based, torn_offset

NAME = "torchtitan"
_LINE = rb"\bstep: +\d+ +loss: +[-+.\dnaif]+ +(?:grad_norm|memory|tps):"
_TRAIN = rb"(?m)^[^\n]{0,200}?(?<!validate )\bstep: +(\d+) +loss: +(\S+)(?: +grad_norm: +(\S+))?(?= |$)"
#: fields that forks add behind the others
_ADDED = (("grad_norm", rb" gnorm: ([^\s|]+)"), ("lr", rb" lr: ([^\s|]+)"))
_VAL = rb"(?m)^[^\n]{0,200}?validate step: +(\d+) +loss: +(\S+)"
_MEAN = rb"Training starts at step \d+, with local batch size"
_START = rb"(?m)^[^\n]{0,200}?\bstep: +\d+(?: +loss:|\s*\Z)"
_BATCH = rb"global batch size:? *(\d+)[^\n]{0,80}?sequence length:? *(\d+)"
#: since 2026
_TOKENS = rb"(?<![\d,])([\d,]{1,20}) tokens per train step"
_SETTINGS = (
    (_TOKENS, "tokens_per_step"),
    (rb"maximum context length (\d+)", "seq_len"),
    (rb"local batch size:? *(\d+)", "micro_batch_sequences"),
    (rb"global batch size:? *(\d+)", "global_batch_sequences"),
    (rb"sequence length:? *(\d+)", "seq_len"),
    (rb"total steps:? *(\d+)", "planned_steps"),
    (rb"\(warmup:? *(\d+)\)", "warmup_steps"),
    (rb"size: ([\d,]+) total parameters", "n_params"),
    (rb"\bn_layers=(\d+)", "n_layers"),
    (rb"Args\([^\n]{0,200}?\bdim=(\d+)", "d_model"),
    (rb"\bn_heads=(\d+)", "n_heads"),
    (rb"\bn_kv_heads=(\d+)", "n_kv_heads"),
    (rb"\bvocab_size=(\d+)", "vocab_size"),
)


def sniff(sample: Sample) -> int:
    """Certain when a step line is there."""
    for part in (sample.head, sample.tail):
        if b"step:" in part and re.search(_LINE, visible(part)):
            return 88
    return 85 if b"torchtitan" in sample.head and b"Training starts at step" in sample.head else 0


def read(path: str, declaration: Declaration) -> RawLog:
    """Read the standard output of a run.

    Raises:
        TokenAxisError: no step line.
    """
    content = read_content(path)
    data = readable(content)
    names: tuple[str, ...] = ("step", "train_loss", "grad_norm")
    patterns = [re.compile(_TRAIN), re.compile(_VAL)]
    first = re.search(_TRAIN + rb"[^\n]*", data)
    for name, field in _ADDED:
        if first is not None and re.search(field, first.group()) is not None:
            patterns[0] = re.compile(patterns[0].pattern + rb"(?:(?=[^\n]{0,300}?" + field + rb"))?")
            names += (name,)
    train = find_rows(data, patterns[0], names)
    val = find_rows(data, patterns[1], ("step", "val_loss"))
    broken = broken_rows(data, re.compile(_START), [train, val])
    facts = _facts(data[: int(train.offsets[0]) if len(train.offsets) else 1 << 16])
    mark, batch = (b"tokens per train step", _TOKENS)
    if mark not in data:
        mark, batch = b"global batch size", _BATCH
    train, warnings = _last_stage(train)
    log = build(
        NAME,
        content,
        [train, val],
        {"step": "step", "train_loss": "loss", "val_loss": "validate loss", "grad_norm": "grad_norm", "lr": "lr"},
        broken=broken,
        torn=torn_offset(data, patterns),
        facts=batch_by_header(data, mark, batch, [train, val], facts),
        warnings=[*one_based(train, "step: N"), *warnings],
        what="`step: N  loss: X` line",
    )
    if first is not None and b" tflops:" not in first.group() and re.search(_MEAN, data[: first.start()]):
        log.means["train_loss"] = IntervalMean()
    return log


def _last_stage(train: Rows) -> tuple[Rows, list[Notice]]:
    """Rows with a loss, without those of ranks that compute none.

    Raises:
        TokenAxisError: all are.
    """
    without = train.columns["train_loss"] == -1
    if not without.any():
        return train, []
    if without.all():
        raise TokenAxisError(
            "its losses are all -1, which ranks of a pipeline's stages but the last write",
            remedy="give the log of a rank of the last stage (LOG_RANK; torchrun --local-ranks-filter)",
        )
    message = f"{int(without.sum())} rows with a loss of -1 are of pipeline stages that compute none; left out"
    return train.only(~without), [Notice("stages_without_loss", message)]


def _facts(head: bytes) -> list[Fact]:
    facts: list[Fact] = []
    for pattern, key in _SETTINGS:
        match = re.search(pattern, head)
        value = None if match is None else units.count(match.group(1).decode())
        if match is not None and value and value < 1e15:
            facts.append((key, int(value), "emitted", f"line {line_of(head, match.start())}"))
    found = {key: value for key, value, _, _ in facts}
    if "tokens_per_step" not in found and "global_batch_sequences" in found and "seq_len" in found:
        tokens = found["global_batch_sequences"] * found["seq_len"]
        facts.append(("tokens_per_step", tokens, "emitted", "global batch size * sequence length"))
    return facts


READER = Reader(NAME, "standard output of torchtitan", sniff, read)
