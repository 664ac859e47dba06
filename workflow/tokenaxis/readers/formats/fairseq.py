"""Standard output of fairseq and metaseq: `... | INFO | train_inner | {"loss": "9.2", "num_updates": "100", ...}`.

Losses are in base 2: fairseq divides them by ln 2, and `ppl` is 2 to the loss; they are read as nats. A `train_inner`
row is the mean over the updates since the one before, `num_updates` counts updates done, `wpb` the tokens of a batch
(a mean, too). Of a mixture of experts `loss` holds the gates' part and `inner_loss` does not. Values stand in JSON, or
as `loss=9.2, ppl=...` (train_inner) and `| loss 9.2 | ppl ...` (valid).
"""

from __future__ import annotations

import math
import re

from tokenaxis.declarations import Declaration
from tokenaxis.errors import Notice
from tokenaxis.readers.base import IntervalMean, RawLog, Reader, Sample
from tokenaxis.readers.content import read_content
from tokenaxis.readers.headers import Fact
from tokenaxis.readers.lines import readable, visible
from tokenaxis.readers.textlog import Rows, build, find_rows, torn_offset

NAME = "fairseq"
_KIND = rb"(?:\| INFO \| %s \||\[%s\]\[INFO\] - )"
_VALUE = rb"(?:[\"']: \"?|=| )([^\s\",|}]+)"
_TRAIN = rb"(?m)^[^\n]{0,80}?" + _KIND % (b"train_inner", b"train_inner")
_VALID = rb"(?m)^[^\n]{0,80}?" + _KIND % (rb"valid\w*", rb"valid\w*")
_NAMES = {
    "step": "num_updates",
    "train_loss": "loss, base 2",
    "val_loss": "valid_loss, base 2",
    "lr": "lr",
    "grad_norm": "gnorm",
    "tokens_per_step": "wpb",
}


def _field(own: bytes) -> bytes:
    """A field anywhere behind; its name stands alone, behind `train_` or `valid_`."""
    return rb"(?:(?=[^\n]{0,1500}?(?<![\w])(?:train_|valid_)?" + own + _VALUE + rb"))?"


def sniff(sample: Sample) -> int:
    """Certain when a row of the training loop is there."""
    for part in (sample.head, sample.tail):
        if b"train_inner" in part and re.search(_TRAIN + rb"[^\n]{0,1500}?num_updates", visible(part)):
            return 93
    return 0


def read(path: str, declaration: Declaration) -> RawLog:
    """Read the standard output of a run.

    Raises:
        TokenAxisError: no row of the training loop.
    """
    content = read_content(path)
    data = readable(content)
    own = (rb"num_updates", rb"loss", rb"inner_loss", rb"ppl", rb"nll_loss", rb"lr", rb"gnorm", rb"wpb")
    extra = ("inner", "perplexity", "nll")
    patterns = [
        re.compile(_TRAIN + b"".join(map(_field, own)) + rb"[^\n]*"),
        re.compile(_VALID + b"".join(map(_field, own[:5])) + rb"[^\n]*"),
    ]
    train = find_rows(data, patterns[0], ("step", "train_loss", *extra, "lr", "grad_norm", "tokens_per_step"))
    val = find_rows(data, patterns[1], ("step", "val_loss", *extra))
    binary = _is_base_two(train, "train_loss") or _is_base_two(val, "val_loss")
    for rows, loss in ((train, "train_loss"), (val, "val_loss")):
        _finish(rows, loss, extra, math.log(2) if binary else 1.0)
    log = build(
        NAME,
        content,
        [train, val],
        _NAMES,
        torn=torn_offset(data, [re.compile(_TRAIN + rb"([^\n]*)")]),
        facts=_batch(train),
        warnings=[_into_nats() if binary else _base_unknown()],
        what="`train_inner` row",
    )
    log.means["train_loss"] = IntervalMean(None, counted_after=True)
    return log


def _finish(rows: Rows, loss: str, extra: tuple[str, ...], factor: float) -> None:
    """The loss without the gates' part, in nats; helper columns go."""
    import numpy as np

    inner, _, _ = (rows.columns.pop(name) for name in extra)
    rows.columns[loss] = np.where(np.isnan(inner), rows.columns[loss], inner) * factor
    rows.unusable = {key: where for key, where in rows.unusable.items() if key[0] in rows.columns}


def _batch(train: Rows) -> list[Fact]:
    """wpb as a fact where batches differ in size, so that it is a mean; then it is no column."""
    import numpy as np

    batch = train.columns["tokens_per_step"]
    known = batch[~np.isnan(batch)]
    if not len(known) or known.max() == known.min():
        return []
    del train.columns["tokens_per_step"]
    note = f"mean of wpb, which is {known.min():,.1f} to {known.max():,.1f}"
    return [("tokens_per_step", round(float(known.mean())), "detected", note)]


def _is_base_two(rows: Rows, loss: str) -> bool:
    """Whether 2 to the loss is the perplexity beside it, in most rows; nll_loss and inner_loss go before the loss."""
    import numpy as np

    base = rows.columns[loss]
    for name in ("inner", "nll"):
        base = np.where(np.isnan(rows.columns[name]), base, rows.columns[name])
    with np.errstate(all="ignore"):
        ratio = np.log2(rows.columns["perplexity"]) - base
    known = ratio[~np.isnan(ratio)]
    # losses are printed with three decimals, perplexities with two
    return bool(len(known)) and float(np.median(np.abs(known))) < 0.02


def _into_nats() -> Notice:
    return Notice("loss_in_base_two", "losses are logged in base 2 (ppl is 2 to the loss); they were read times ln 2")


def _base_unknown() -> Notice:
    message = "fairseq logs most losses in base 2, and no ppl beside them shows it; they were read as they stand"
    return Notice("loss_base_unknown", message)


READER = Reader(NAME, "standard output of fairseq and metaseq", sniff, read)
