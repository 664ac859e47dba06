"""Standard output of nanotron: `iteration: 10 / 1500 | consumed_tokens: 2.62M | ... | lm_loss: 9.1 | lr: ...`.

An iteration counts the update of its batch. Numbers are rounded to three figures (`262K`), so tokens and batch are not
read from the lines but from the configuration that it prints, or are declared.
"""

from __future__ import annotations

import math
import re

from tokenaxis import units
from tokenaxis.declarations import Declaration
from tokenaxis.errors import Notice
from tokenaxis.readers.base import RawLog, Reader, Sample
from tokenaxis.readers.content import read_content
from tokenaxis.readers.headers import Fact, line_of
from tokenaxis.readers.lines import readable, visible
from tokenaxis.readers.textlog import build, find_rows, one_based, torn_offset

NAME = "nanotron"
_LINE = rb"\biteration: [\d.]+[KMB]? / [\d.]+[KMB]? \| consumed_tokens: "
_ROW = (
    rb"(?m)^[^\n]{0,160}?\biteration: (\d+) / \d+ \| consumed_tokens: [^\n]{0,400}?\| lm_loss: ([^\s|]+) \|"
    rb"(?: lr: ([^\s|]+) \|)?(?:(?=[^\n]{0,200}?\| grad_norm: ([^\s|]+)))?"
)
#: name in the printed configuration -> fact; the batch is the product of the last four
_SETTINGS = {
    b"hidden_size": "d_model",
    b"num_hidden_layers": "n_layers",
    b"num_attention_heads": "n_heads",
    b"num_key_value_heads": "n_kv_heads",
    b"intermediate_size": "d_ff",
    b"vocab_size": "vocab_size",
    b"train_steps": "planned_steps",
    b"tp": "tp",
    b"pp": "pp",
    b"dp": "dp",
    b"sequence_length": "seq_len",
    b"micro_batch_size": "micro_batch_sequences",
    b"batch_accumulation_per_replica": "accumulation",
}
_SETTING = rb"\b(%s)=(\d{1,12})\b" % b"|".join(_SETTINGS)
_BATCH = ("dp", "seq_len", "micro_batch_sequences", "accumulation")


def sniff(sample: Sample) -> int:
    """Certain when an iteration line is there."""
    parts = (part for part in (sample.head, sample.tail) if b"consumed_tokens: " in part)
    return 94 if any(re.search(_LINE, visible(part)) for part in parts) else 0


def read(path: str, declaration: Declaration) -> RawLog:
    """Read the standard output of a run.

    Raises:
        TokenAxisError: no iteration line.
    """
    content = read_content(path)
    data = readable(content)
    pattern = re.compile(_ROW)
    rows = find_rows(data, pattern, ("step", "train_loss", "lr", "grad_norm"))
    facts = _facts(data[: int(rows.offsets[0]) if len(rows.offsets) else 1 << 18])
    warnings = one_based(rows, "iteration: N / TOTAL")
    shown = re.search(rb"\| global_batch_size: ([\d.]+[KMB]?) \|", data)
    size = None if shown is None else units.count(shown.group(1).decode())
    if size and not any(key == "tokens_per_step" for key, *_ in facts):
        message = (
            f"tokens and batch are rounded ({size:,.0f} tokens a step); declare the batch, e.g. "
            f"`defaults: {{tokens_per_step: {2 ** round(math.log2(size)):.0f}}}`"
        )
        warnings.append(Notice("batch_is_rounded", message))
    return build(
        NAME,
        content,
        [rows],
        {"step": "iteration", "train_loss": "lm_loss", "lr": "lr", "grad_norm": "grad_norm"},
        torn=torn_offset(data, [pattern]),
        facts=facts,
        warnings=warnings,
        what="line with iteration: N / TOTAL",
    )


def _facts(head: bytes) -> list[Fact]:
    found: dict[str, tuple[int, str]] = {}
    for match in re.finditer(_SETTING, head):
        value = int(match.group(2))
        if value:
            found.setdefault(_SETTINGS[match.group(1)], (value, f"line {line_of(head, match.start())}"))
    facts: list[Fact] = [(key, value, "emitted", note) for key, (value, note) in found.items() if key != "accumulation"]
    if all(key in found for key in _BATCH):
        tokens = math.prod(found[key][0] for key in _BATCH)
        note = "configuration: dp * batch_accumulation_per_replica * micro_batch_size * sequence_length"
        facts.append(("tokens_per_step", tokens, "emitted", note))
    return facts


READER = Reader(NAME, "standard output of nanotron", sniff, read)
