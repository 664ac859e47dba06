"""Standard output of MaxText: `completed step: 5, seconds: 0.4, TFLOP/s/device: 87.3, ..., loss: 9.7`.

Steps count from 0, the updates done before the batch. `eval metrics after step: N, loss=X` comes after the update of
step N, so after N + 1 updates. With multi-token prediction `loss` holds its part; `main_model_loss` is the model's.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from tokenaxis.declarations import Declaration
from tokenaxis.readers.base import RawLog, Reader, Sample
from tokenaxis.readers.content import read_content
from tokenaxis.readers.headers import Fact, amount, header_facts, whole
from tokenaxis.readers.lines import readable, visible
from tokenaxis.readers.textlog import broken_rows, build, find_rows, torn_offset

NAME = "maxtext"
_LINE = rb"\bcompleted step: \d+, seconds: "
_START = rb"(?m)^[^\n]{0,160}?\bcompleted step: "
_TRAIN = rb"(?m)^[^\n]{0,160}?\bcompleted step: (\d+), [^\n]{0,400}?(?<!\w)loss: ([^\s,]+)(?=[\s,]|\Z)"
_MAIN = rb"(?m)^[^\n]{0,160}?\bcompleted step: (\d+), [^\n]{0,400}?\bmain_model_loss: ([^\s,]+)"
_VAL = rb"(?m)^[^\n]{0,160}?\beval metrics after step: (\d+), +(?:eval_)?loss[=:] ?([^\s,]+)"
_SETTING = rb"(?m)^[^\n]{0,120}?\bConfig param (\w+): ([^\r\n]{1,80})"
_FACTS: dict[bytes, tuple[str, Callable[[bytes], Any]]] = {
    b"max_target_length": ("seq_len", whole),
    b"steps": ("planned_steps", whole),
    b"learning_rate": ("lr_peak", amount),
    b"emb_dim": ("d_model", whole),
    b"mlp_dim": ("d_ff", whole),
    b"num_decoder_layers": ("n_layers", whole),
    b"num_query_heads": ("n_heads", whole),
    b"num_kv_heads": ("n_kv_heads", whole),
    b"head_dim": ("head_dim", whole),
    b"vocab_size": ("vocab_size", whole),
    b"num_experts": ("moe_experts", whole),
    b"global_batch_size_to_train_on": ("global_batch_sequences", whole),
    b"dtype": ("precision", lambda text: {b"bfloat16": "bf16", b"float16": "fp16"}.get(text)),
}


def sniff(sample: Sample) -> int:
    """Certain when a step line is there."""
    parts = (part for part in (sample.head, sample.tail) if b"completed step: " in part)
    return 94 if any(re.search(_LINE, visible(part)) for part in parts) else 0


def read(path: str, declaration: Declaration) -> RawLog:
    """Read the standard output of a run.

    Raises:
        TokenAxisError: no step line.
    """
    content = read_content(path)
    data = readable(content)
    main = b"main_model_loss: " in data
    patterns = [re.compile(_MAIN if main else _TRAIN), re.compile(_VAL)]
    train = find_rows(data, patterns[0], ("step", "train_loss"))
    val = find_rows(data, patterns[1], ("step", "val_loss"))
    val.columns["step"] = val.columns["step"] + 1
    return build(
        NAME,
        content,
        [train, val],
        {"step": "step", "train_loss": "main_model_loss" if main else "loss", "val_loss": "eval loss"},
        broken=broken_rows(data, re.compile(_START), [train]),
        torn=torn_offset(data, patterns),
        facts=_facts(data[: int(train.offsets[0]) if len(train.offsets) else 1 << 17]),
        what="`completed step: N` line",
    )


def _facts(head: bytes) -> list[Fact]:
    facts = header_facts(head, re.compile(_SETTING), _FACTS, "configuration")
    found = {key: value for key, value, *_ in facts}
    if "global_batch_sequences" in found and "seq_len" in found:
        tokens = found["global_batch_sequences"] * found["seq_len"]
        note = "configuration: global_batch_size_to_train_on * max_target_length"
        facts.append(("tokens_per_step", tokens, "emitted", note))
    if found.get("moe_experts") == 1:
        facts = [fact for fact in facts if fact[0] != "moe_experts"]
    return facts


READER = Reader(NAME, "standard output of MaxText", sniff, read)
