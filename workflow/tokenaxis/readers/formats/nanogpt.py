"""Standard output of karpathy/nanoGPT: `iter N: loss X, time Yms, mfu Z%` and `step N: train loss X, val loss Y`.

train.py prints both with the number of updates done before. The train loss of a `step` line is a mean over many batches
in evaluation mode; it is used only where no `iter` line is there. Forks add fields (`lr`, `grad_norm`), and print a
`step` line without a train loss, or with perplexities between.
"""

from __future__ import annotations

import re

from tokenaxis import units
from tokenaxis.declarations import Declaration
from tokenaxis.errors import Notice
from tokenaxis.readers.base import RawLog, Reader, Sample
from tokenaxis.readers.content import read_content
from tokenaxis.readers.headers import Fact, amount, batch_by_header, header_facts, line_of, whole
from tokenaxis.readers.lines import LEAD, lead, readable, visible
from tokenaxis.readers.textlog import broken_rows, build, find_rows, torn_offset

NAME = "nanogpt"
_LINE = (
    rb"(?:[Ii]ter \d+: loss [-+.\dnaif]+(?=[\s,])"
    rb"|(?:[Ss]tep|[Ii]ter) \d+: (?:train loss [-+.\dnaif]+, [^\n]{0,60}?)?val loss [-+.\dnaif])"
)
_ITER = rb"[Ii]ter (\d+): loss ([^\s,]+)(?=[\s,]|\Z)"
#: fields that forks add, in any order -> column; looked for only where the first line has them
_ADDED = (
    (rb"[^\n]{0,120}?, lr:? ([^\s,]+)", "lr"),
    (rb"[^\n]{0,120}?, grad[_ ]?norm:? ([^\s,]+)", "grad_norm"),
)
_STEP = (
    rb"(?:[Ss]tep|[Ii]ter) (\d+): (?:train loss ([^\s,]+), (?:train perplexity [^\s,]+, )?)?"
    rb"val loss ([^\s,]+)(?=[\s,]|\Z)"
)
_START = rb"(?:[Ii]ter \d+(?::|\Z)|[Ss]tep \d+(?:: (?:train|val) loss|\Z))"
_SETTING = rb" *([a-z_]+) *= *([0-9.e+-]+)(?= *(?:#.*)?\r?$)"
_SETTINGS = {
    b"block_size": ("seq_len", whole),
    b"n_layer": ("n_layers", whole),
    b"n_head": ("n_heads", whole),
    b"n_embd": ("d_model", whole),
    b"max_iters": ("planned_steps", whole),
    b"warmup_iters": ("warmup_steps", whole),
    b"learning_rate": ("lr_peak", amount),
}

#: what the header says, fact, unit, and what notes call it
_BATCH = rb" *[Tt]okens per iteration(?: will be)?: *([\d,]+)"
_COUNTS = (
    (_BATCH, "tokens_per_step", "", "tokens per iteration"),
    (rb"number of parameters: ([\d.]+)M", "n_params_without_positions", "M", "rounded, without the position table"),
    (rb"([\d.]+) M parameters", "n_params", "M", "M parameters"),
)


def sniff(sample: Sample) -> int:
    """Certain when an `iter` or `step` line is there."""
    for part in (sample.head, sample.tail):
        if b"loss " in part and re.search(rb"(?m)^" + LEAD + rb"(?!iter[^\n]*\btokens\b)" + _LINE, visible(part)):
            return 90
    return 0


def read(path: str, declaration: Declaration) -> RawLog:
    """Read the standard output of a run.

    Raises:
        TokenAxisError: no row.
    """
    content = read_content(path)
    data = readable(content)
    begin = rb"(?m)^" + lead(data, _LINE)
    added = _added(data, begin)
    behind = b"".join(rb"(?:(?=" + field + rb"))?" for field, _ in added)
    patterns = [re.compile(begin + _ITER + behind), re.compile(begin + _STEP)]
    iters = find_rows(data, patterns[0], ("step", "train_loss", *(name for _, name in added)))
    evals = find_rows(data, patterns[1], ("step", "train_loss", "val_loss"))
    broken = broken_rows(data, re.compile(begin + _START), [iters, evals])
    names = {"step": "iter", "train_loss": "loss", "val_loss": "val loss"}
    warnings = []
    if len(iters.offsets):
        del evals.columns["train_loss"]
        evals.unusable = {key: rows for key, rows in evals.unusable.items() if key[0] != "train_loss"}
    else:
        names |= {"step": "step", "train_loss": "train loss"}
        message = "no `iter` lines: train_loss is the mean over evaluation batches that `step` lines give"
        warnings.append(Notice("train_loss_is_a_mean", message))
    facts = _facts(data[: 1 << 16], begin)
    return build(
        NAME,
        content,
        [iters, evals],
        names,
        broken=broken,
        torn=torn_offset(data, patterns),
        facts=batch_by_header(data, b"okens per iteration", begin + _BATCH, [iters, evals], facts),
        warnings=warnings,
        what="`iter N: loss X` line",
    )


def _added(data: bytes, begin: bytes) -> list[tuple[bytes, str]]:
    """The fields of forks that the first `iter` line has."""
    match = re.search(begin + _ITER + rb"[^\n]*", data)
    return [(field, name) for field, name in _ADDED if match is not None and re.match(field, match.group())]


def _facts(head: bytes, begin: bytes) -> list[Fact]:
    facts = header_facts(head, re.compile(begin + _SETTING), _SETTINGS, "configuration")
    for pattern, key, unit, what in _COUNTS:
        match = re.search(begin + pattern, head)
        value = None if match is None else units.count(match.group(1).decode() + unit)
        if match is not None and value and value < 1e18:
            facts.append((key, int(value), "emitted", f"header, line {line_of(head, match.start())}: {what}"))
    return facts


READER = Reader(NAME, "standard output of nanoGPT", sniff, read)
