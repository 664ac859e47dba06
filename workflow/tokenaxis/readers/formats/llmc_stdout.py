"""Standard output of karpathy/llm.c's train_gpt2cu: a header table, `step N/TOTAL | loss ...` and `val loss X`.

Train lines count from 1: `step N` is the loss of the batch of update N, before which N-1 updates were done. A
`val loss` line bears no step; it is the loss after the updates of the train line above it.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from tokenaxis.declarations import Declaration
from tokenaxis.errors import Notice, TokenAxisError
from tokenaxis.readers.base import RawLog, Reader, Sample
from tokenaxis.readers.content import read_content
from tokenaxis.readers.headers import Fact, amount, batch_by_header, header_facts, whole, words
from tokenaxis.readers.lines import LEAD, NOTHING_MORE, lead, readable, visible
from tokenaxis.readers.textlog import Rows, broken_rows, build, find_rows, one_based, torn_offset

if TYPE_CHECKING:
    import numpy as np

NAME = "llmc-stdout"
_HEADER = b"| train data pattern"
_LINE = rb"step +\d+/\d+ \| (?:train )?loss "
# a value counts as whole once what follows it was written: another process may break into the line after that
_ROW = (
    rb"step +(\d+)/\d+ \| (?:train )?loss +([^\s|(]+)(?: \([^)|\n]*\))? ?\|"
    rb"(?: norm +([^\s|(]+)(?: \([^)|\n]*\))? ?\|)?(?: lr +([^\s|(]+) ?\|)?"
)
_START = rb"step +\d+/"
_VAL = rb"val loss +([^\s|]+)"
_NAMES = {"step": "step", "train_loss": "loss", "grad_norm": "norm", "lr": "lr", "val_loss": "val loss"}
_TABLE = rb"\| ([A-Za-z_()&. ]{1,60}?) {1,60}\| ([^|\n]{1,200}?) {1,200}\|"
_BATCH = rb"\| total batch size +\| (\d+) +\|"
_FACTS: dict[bytes, tuple[str, Callable[[bytes], Any]]] = {
    b"total batch size": ("tokens_per_step", whole),
    b"sequence length T": ("seq_len", whole),
    b"num_layers L": ("n_layers", whole),
    b"num_heads NH": ("n_heads", whole),
    b"channels C": ("d_model", whole),
    b"vocab_size V": ("vocab_size", whole),
    b"padded_vocab_size Vp": ("padded_vocab_size", whole),
    b"max_sequence_length T": ("max_positions", whole),
    b"num_parameters": ("n_params", whole),
    b"device": ("gpu", words),
    b"peak TFlops": ("peak_tflops", lambda text: amount(text) if amount(text) > 0 else None),
    b"precision": ("precision", lambda text: text.decode().lower()),
    b"num_processes": ("n_gpus", whole),
    b"train_num_batches": ("planned_steps", whole),
    b"LR scheduler": ("lr_schedule", words),
    b"learning rate (LR)": ("lr_peak", amount),
    b"warmup iterations": ("warmup_steps", amount),
    b"final LR fraction": ("lr_final_fraction", amount),
    b"weight decay": ("weight_decay", amount),
    b"micro batch size B": ("micro_batch_sequences", whole),
}


def sniff(sample: Sample) -> int:
    """Certain when the header table or a step line is there."""
    head = sample.head
    if _HEADER in head and (b"num_layers L" in head or b"sequence length T" in head or b"max_sequence" in head):
        return 95
    line = rb"(?m)^" + LEAD + _LINE + NOTHING_MORE
    return 90 if any(b"step " in part and re.search(line, visible(part)) for part in (head, sample.tail)) else 0


def read(path: str, declaration: Declaration) -> RawLog:
    """Read the standard output of a run.

    Raises:
        TokenAxisError: the run ended before its first step.
    """
    content = read_content(path)
    data = readable(content)
    begin = rb"(?m)^" + lead(data, _LINE)
    pattern, val_pattern = re.compile(begin + _ROW), re.compile(begin + _VAL)
    train = find_rows(data, pattern, ("step", "train_loss", "grad_norm", "lr"))
    val = find_rows(data, val_pattern, ("val_loss",))
    broken = broken_rows(data, re.compile(begin + _START), [train])
    val.columns = {"step": _val_steps(train, val), **val.columns}
    warnings = _cut_lines(train)
    warnings += one_based(train, "step N")
    facts = batch_by_header(data, b"total batch size", begin + _BATCH, [train, val], _facts(data[: 1 << 16], begin))
    if not len(train.offsets):
        why = "out of memory" if b"out of memory" in data else "no `step N/TOTAL` line"
        raise TokenAxisError(f"has no step: the run ended before its first one ({why})", remedy="remove it")
    return build(
        NAME,
        content,
        [train, val],
        _NAMES,
        broken=broken,
        torn=torn_offset(data, [val_pattern]),
        facts=facts,
        warnings=warnings,
        what="`step N/TOTAL` line",
    )


def _val_steps(train: Rows, val: Rows) -> np.ndarray:
    """Updates done at each `val loss` line: those of the train line above, or one less than the train line below."""
    import numpy as np

    if not len(train.offsets):
        return np.full(len(val.offsets), np.nan)
    above = np.searchsorted(train.offsets, val.offsets) - 1
    steps = train.columns["step"]
    return np.where(above >= 0, steps[np.maximum(above, 0)], steps[0] - 1)


def _cut_lines(train: Rows) -> list[Notice]:
    """Lines into which another process wrote: what stood before the break was kept."""
    import numpy as np

    if "lr" not in train.columns or np.isnan(train.columns["lr"]).all():
        return []
    cut = np.isnan(train.columns["lr"])
    for (name, _), rows in train.unusable.items():
        if name == "lr":
            cut[rows] = False
    if not cut.any():
        return []
    steps = ", ".join(f"{step:.0f}" for step in train.columns["step"][cut][:5])
    return [Notice("cut_lines", f"{int(cut.sum())} lines break off after the loss (step {steps}); the loss was kept")]


def _facts(head: bytes, begin: bytes) -> list[Fact]:
    facts = header_facts(head, re.compile(begin + _TABLE), _FACTS, "header")
    peak = next((fact for fact in facts if fact[0] == "peak_tflops"), None)
    if peak is not None:
        facts.append(("peak_source", "llm.c's own table of devices", "emitted", peak[3]))
    return facts


READER = Reader(NAME, "standard output of llm.c", sniff, read)
