"""Standard output of karpathy/nanoGPT: `iter N: loss X, time Yms, mfu Z%` and `step N: train loss X, val loss Y`.

train.py prints both with the number of updates done before. The train loss of a `step` line is a mean over many batches
in evaluation mode; it is used only where no `iter` line is there.
"""

from __future__ import annotations

import re

from tokenaxis import units
from tokenaxis.declarations import Declaration
from tokenaxis.errors import Notice
from tokenaxis.readers.base import RawLog, Reader, Sample
from tokenaxis.readers.content import read_content
from tokenaxis.readers.textlog import (
    Fact,
    amount,
    broken_rows,
    build,
    find_rows,
    header_facts,
    line_of,
    torn_offset,
    whole,
)

NAME = "nanogpt"
_FIRST = rb"(?m)^(?:iter \d+: loss [-+.\dnaif]+|step \d+: train loss [-+.\dnaif]+, val loss)"
_ITER = rb"(?m)^iter (\d+): loss ([^\s,]+)(?=[\s,]|\Z)"
_STEP = rb"(?m)^step (\d+): train loss ([^\s,]+), val loss ([^\s,]+)(?=[\s,]|\Z)"
_START = rb"(?m)^(?:iter \d+(?::|\Z)|step \d+(?:: train loss|\Z))"
_SETTING = rb"(?m)^ *([a-z_]+) *= *([0-9.e+-]+)(?= *(?:#.*)?\r?$)"
_SETTINGS = {
    b"block_size": ("seq_len", whole),
    b"n_layer": ("n_layers", whole),
    b"n_head": ("n_heads", whole),
    b"n_embd": ("d_model", whole),
    b"max_iters": ("planned_steps", whole),
    b"warmup_iters": ("warmup_steps", whole),
    b"learning_rate": ("lr_peak", amount),
}


def sniff(sample: Sample) -> int:
    """Certain when an `iter` or `step` line is there."""
    for part in (sample.head, sample.tail):
        if (b"iter " in part or b"train loss" in part) and re.search(_FIRST, part):
            return 90
    return 0


def read(path: str, declaration: Declaration) -> RawLog:
    """Read the standard output of a run.

    Raises:
        TokenAxisError: no row.
    """
    content = read_content(path)
    data = content.data
    patterns = [re.compile(_ITER), re.compile(_STEP)]
    iters = find_rows(data, patterns[0], ("step", "train_loss"))
    evals = find_rows(data, patterns[1], ("step", "train_loss", "val_loss"))
    broken = broken_rows(data, re.compile(_START), [iters, evals])
    names = {"step": "iter", "train_loss": "loss", "val_loss": "val loss"}
    warnings = []
    if len(iters.offsets):
        del evals.columns["train_loss"]
        evals.unusable = {key: rows for key, rows in evals.unusable.items() if key[0] != "train_loss"}
    else:
        names |= {"step": "step", "train_loss": "train loss"}
        message = "no `iter` lines: train_loss is the mean over evaluation batches that `step` lines give"
        warnings.append(Notice("train_loss_is_a_mean", message))
    return build(
        NAME,
        content,
        [iters, evals],
        names,
        broken=broken,
        torn=torn_offset(data, patterns),
        facts=_facts(data[: 1 << 16]),
        warnings=warnings,
        what="`iter N: loss X` line",
    )


def _facts(head: bytes) -> list[Fact]:
    facts = header_facts(head, re.compile(_SETTING), _SETTINGS, "configuration")
    tokens = re.search(rb"(?m)^tokens per iteration will be: ([\d,]+)", head)
    if tokens is not None:
        value = units.count(tokens.group(1).decode())
        if value:
            note = f"header, line {line_of(head, tokens.start())}: tokens per iteration"
            facts.append(("tokens_per_step", value, "emitted", note))
    params = re.search(rb"(?m)^number of parameters: ([\d.]+)M", head)
    if params is not None:
        value = units.count(params.group(1).decode() + "M")
        if value:
            note = f"header, line {line_of(head, params.start())}: rounded, without the position table"
            facts.append(("n_params_without_positions", int(value), "emitted", note))
    return facts


READER = Reader(NAME, "standard output of nanoGPT", sniff, read)
