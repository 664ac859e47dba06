"""Standard output of Megatron-LM, Megatron-DeepSpeed and GPT-NeoX: `iteration N/ TOTAL | name: value | ...`.

A line is written after the update of iteration N: consumed samples and tokens count AFTER it, `lm loss` is the mean
over the iterations since the line before (log_interval). Ranks may prefix their lines (`0: `). A field may be missing:
an iteration whose gradients overflowed logs no loss.
"""

from __future__ import annotations

import re
from array import array
from typing import TYPE_CHECKING, Any

from tokenaxis.declarations import Declaration
from tokenaxis.errors import Notice
from tokenaxis.readers.base import IntervalMean, RawLog, Reader, Sample
from tokenaxis.readers.content import read_content
from tokenaxis.readers.textlog import Fact, Rows, amount, build, find_rows, header_facts, whole, words

if TYPE_CHECKING:
    import numpy as np

NAME = "megatron"
_LINE = rb"(?m)^[^\n]{0,120}?\biteration +\d+/ *\d+ \| "
_ROW = rb"(?m)^[^\n]{0,120}?\biteration +(\d+)/ *(\d+) \|([^\n]*)"
_VAL = (
    rb"(?m)^[^\n]{0,60}?\bvalid(?:ation)? (?:loss|results) at (?:iteration|step) (\d+)[^|\n]*"
    rb"\| lm[ _]loss(?: value)?: *([^\s|]+) \|"
)
# bounded, so that a line of any length is read in proportion to it
_FIELD = rb"([A-Za-z][^:|]{0,80}?) {0,9}: {0,20}([^|]{0,80}?) \|"
#: name in a line -> canonical column; sequences are turned into tokens by the sequence length
_FIELDS = {
    b"lm loss": "train_loss",
    b"lm_loss": "train_loss",
    b"loss": "train_loss",
    b"learning rate": "lr",
    b"grad norm": "grad_norm",
    b"grad_norm": "grad_norm",
    b"consumed tokens": "tokens",
    b"consumed samples": "samples",
    b"global batch size": "sequences",
}
_COLUMNS = ("step", "tokens", "tokens_per_step", "train_loss", "lr", "grad_norm")
_ARGUMENT = rb"(?m)^(?:\[?\w+\]?: +)? {1,4}(\w+) \.{2,} ?([^\r\n]*)"
_MARKS = (b" arguments -----", b"pretrain_gpt.py", b"DeepSpeed", b"megatron", b"NeoXArgs")


def _choice(text: bytes) -> str | None:
    """The last part of an enumeration's name: PositionEmbeddingType.alibi."""
    return text.split(b".")[-1].decode("ascii", "replace") or None


def _precision(text: bytes) -> str | None:
    return {b"torch.bfloat16": "bf16", b"torch.float16": "fp16"}.get(text)


_FACTS: dict[bytes, tuple[str, Any]] = {
    b"num_layers": ("n_layers", whole),
    b"hidden_size": ("d_model", whole),
    b"ffn_hidden_size": ("d_ff", whole),
    b"num_attention_heads": ("n_heads", whole),
    b"kv_channels": ("head_dim", whole),
    b"seq_length": ("seq_len", whole),
    b"padded_vocab_size": ("padded_vocab_size", whole),
    b"max_position_embeddings": ("max_positions", whole),
    b"position_embedding_type": ("position_embedding", _choice),
    b"params_dtype": ("precision", _precision),
    b"world_size": ("world_size", whole),
    b"data_parallel_size": ("dp", whole),
    b"tensor_model_parallel_size": ("tp", whole),
    b"pipeline_model_parallel_size": ("pp", whole),
    b"num_experts": ("moe_experts", whole),
    b"train_iters": ("planned_steps", whole),
    b"lr": ("lr_peak", amount),
    b"min_lr": ("lr_final", amount),
    b"lr_decay_style": ("lr_schedule", words),
    b"log_interval": ("train_loss_interval_steps", whole),
}


def sniff(sample: Sample) -> int:
    """Certain when an iteration line is there, or the arguments that are printed before the first."""
    for part in (sample.head, sample.tail):
        if b"iteration" in part and re.search(_LINE, part):
            return 95
    head = sample.head
    return 80 if sum(mark in head for mark in _MARKS) >= 2 and b" ..." in head else 0


def read(path: str, declaration: Declaration) -> RawLog:
    """Read the standard output of a run.

    Raises:
        TokenAxisError: no iteration line.
    """
    content = read_content(path)
    data = content.data
    first = re.search(_ROW, data)
    facts = header_facts(data[: first.start() if first else 1 << 18], re.compile(_ARGUMENT), _FACTS, "arguments")
    seq_len = declaration.seq_len or next((value for key, value, _, _ in facts if key == "seq_len"), None)
    facts += _planned_tokens(data[: first.start() if first else 1 << 18], seq_len)
    train, broken, total = _train_rows(data, seq_len)
    if total and not any(key == "planned_steps" for key, *_ in facts):
        facts.append(("planned_steps", total, "emitted", "iteration N/ TOTAL"))
    val = find_rows(data, re.compile(_VAL), ("step", "val_loss"))
    if len(train.offsets):
        val.columns |= _consumed_at(train, val)
    names = {
        "step": "iteration",
        "tokens": "consumed tokens" if b"consumed tokens" in data else "consumed samples",
        "tokens_per_step": "global batch size",
        "train_loss": "lm loss",
        "val_loss": "lm loss value",
        "lr": "learning rate",
        "grad_norm": "grad norm",
    }
    log = build(
        NAME,
        content,
        [train, val],
        names,
        broken=broken,
        facts=facts,
        warnings=_notices(data, seq_len),
        what="`iteration N/ TOTAL` line",
    )
    log.tokens_convention = "after" if "tokens" in log.columns else None
    interval = next((value for key, value, _, _ in facts if key == "train_loss_interval_steps"), None)
    log.means["train_loss"] = IntervalMean(interval, counted_after=True)
    return log


def _train_rows(data: bytes, seq_len: float | None) -> tuple[Rows, list[int], int]:
    """(rows, bytes of lines that break off before any field, planned iterations)."""
    import numpy as np

    offsets, total = array("q"), 0
    broken: list[int] = []
    columns = {name: array("d") for name in _COLUMNS}
    unusable: dict[tuple[str, str], list[int]] = {}
    field = re.compile(_FIELD)
    for match in re.finditer(_ROW, data):
        found = field.findall(match.group(3))
        cells = {_FIELDS[name.strip().lower()]: text for name, text in found if name.strip().lower() in _FIELDS}
        if not found:
            broken.append(match.start())
            continue
        total = int(match.group(2)[:18])
        row = len(offsets)
        offsets.append(match.start())
        cells["step"] = match.group(1)
        if seq_len:
            for sequences, tokens in (("samples", "tokens"), ("sequences", "tokens_per_step")):
                if tokens not in cells and sequences in cells:
                    cells[tokens] = _times(cells[sequences], seq_len)
        for name, column in columns.items():
            value, kind = _number(cells.get(name))
            column.append(value)
            if kind is not None:
                unusable.setdefault((name, kind), []).append(row)
    rows = Rows(np.array(offsets, np.int64), {name: np.array(column) for name, column in columns.items()})
    rows.unusable = {key: np.array(indices, np.int64) for key, indices in unusable.items()}
    return rows, broken, total


def _consumed_at(train: Rows, val: Rows) -> dict[str, np.ndarray]:
    """Tokens consumed and batch at validation lines, which do not state them: from the train lines around them.

    Between two train lines the batch is constant or, in a ramp-up, changes once, where the two counts put it. Where
    that does not fit, or after the last line, the tokens stay blank.
    """
    import numpy as np

    tokens, batch = np.full(len(val.offsets), np.nan), np.full(len(val.offsets), np.nan)
    following = np.searchsorted(train.offsets, val.offsets)
    known = train.columns
    for row, (step, after) in enumerate(zip(val.columns["step"].tolist(), following.tolist(), strict=True)):
        before = _state(known, after - 1) if after > 0 else (0.0, 0.0, float("nan"))
        if after == len(train.offsets) or known["step"][after] < step:
            batch[row] = before[2]
            continue
        later = _state(known, after)
        first, last = (before[2] if before[2] == before[2] else later[2]), later[2]
        steps, consumed = later[0] - before[0], later[1] - before[1]
        early = steps if first == last else (last * steps - consumed) / (last - first)
        fits = first * early + last * (steps - early) == consumed
        if fits and step >= before[0] and 0 <= early <= steps:
            done = step - before[0]
            tokens[row] = before[1] + first * min(done, early) + last * max(0.0, done - early)
            batch[row] = first if done <= early else last
        elif first == last:
            batch[row] = last
    return {"tokens": tokens, "tokens_per_step": batch}


def _state(columns: dict[str, np.ndarray], row: int) -> tuple[float, float, float]:
    """(step, tokens after it, batch) of a train line."""
    return tuple(float(columns[name][row]) for name in ("step", "tokens", "tokens_per_step"))  # type: ignore[return-value]


def _number(text: bytes | None) -> tuple[float, str | None]:
    if text is None:
        return float("nan"), None
    try:
        value = float(text)
    except ValueError:
        return float("nan"), "text"
    if value != value or value in (float("inf"), float("-inf")):
        return float("nan"), "nan" if value != value else "inf"
    return value, None


def _times(text: bytes, factor: float) -> bytes:
    value, kind = _number(text)
    return text if kind else repr(value * factor).encode()


def _planned_tokens(head: bytes, seq_len: float | None) -> list[Fact]:
    samples = header_facts(head, re.compile(_ARGUMENT), {b"train_samples": ("planned_tokens", whole)}, "arguments")
    return [(key, value * seq_len, source, f"{note} * seq_length") for key, value, source, note in samples if seq_len]


def _notices(data: bytes, seq_len: float | None) -> list[Notice]:
    notices = []
    if seq_len is None and b"consumed samples" in data and b"consumed tokens" not in data:
        message = (
            "consumed samples are not turned into tokens: the sequence length is not in the log; "
            "declare it, e.g. `defaults: {seq_len: 2048}`"
        )
        notices.append(Notice("seq_len_unknown", message))
    return notices


READER = Reader(NAME, "standard output of Megatron-LM, Megatron-DeepSpeed and GPT-NeoX", sniff, read)
