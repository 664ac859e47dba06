"""Remedies that hold YAML: what stands in backquotes works as it is in an empty configs/sweeps/<sweep>.yaml."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from tokenaxis.columns import normalise
from tokenaxis.errors import TokenAxisError

FILE = "configs/sweeps/<sweep>.yaml"
CONVENTION = "declare `defaults: {tokens_convention: before}`, or after"

#: names that are likely a loss, or a step, though no alias knows them
_LIKELY_LOSS = re.compile(r"loss|nll|entropy|(?:^|_)ce(?:$|_)")
_LIKELY_STEP = re.compile(r"step|iter|update|batch|samples|(?:^|_)it(?:$|_)|^[nit]$|epoch")
#: names that hold such a word and are no loss of the model
_NO_LOSS = re.compile(r"acc(?:uracy)?(?:$|_)|scale|perplexity|ppl|(?:^|_)(?:bpb|bits|aux|z)(?:$|_)")
#: names of losses in another unit -> what they hold, and how it becomes nats per token
_OTHER_UNITS = (
    (re.compile(r"perplexity|(?:^|_)ppl(?:$|_)"), "exp(loss), not the loss: write its natural logarithm as train_loss"),
    (
        re.compile(r"(?:^|_)(?:bpb|bits_per_byte)(?:$|_)"),
        "bits per byte, not nats per token: write it times ln 2 and bytes per token as train_loss",
    ),
)
#: names that say of what set the numbers are, and not that they are losses
_HALVES = {
    "train_loss": frozenset(("train", "training")),
    "val_loss": frozenset(("val", "valid", "validation", "eval", "dev", "test")),
}
#: words that YAML 1.1 does not read as text
_NO_TEXT = frozenset(("y", "n", "yes", "no", "on", "off", "true", "false", "null"))


def quoted(name: str) -> str:
    """A name as YAML holds it inside braces and brackets."""
    plain = re.fullmatch(r"[A-Za-z_][\w./-]*", name) is not None and name.lower() not in _NO_TEXT
    return name if plain else "'" + name.replace("'", "''") + "'"


def declare(example: str) -> str:
    """`declare it in ..., e.g. YAML`: `example` holds keys of a run, `key: value`."""
    return f"declare it in {FILE}, e.g. `defaults: {{{example}}}`"


def of_format(path: str) -> str:
    """How the reader of a file that none recognises is declared."""
    pattern = quoted("*" + glob_of(path.rsplit("/", 1)[-1]))
    return f"name its reader (docs/logs.md) in {FILE}, e.g. `runs: [{{match: {pattern}, format: key-value}}]`"


def glob_of(path: str) -> str:
    """A glob pattern that fits just this path."""
    return re.sub(r"([\[*?])", r"[\1]", path)


def missing_column(canonical: str, names: Sequence[str], declared: Mapping[str, str] | None = None) -> TokenAxisError:
    """The refusal of a log without a step or without any loss, which lists what it has.

    Args:
        canonical: "step" or a loss.
        names: the log's own names.
        declared: canonical name -> the log's own name; a name that is declared to be one thing is not offered as
            another.
    """
    step = canonical == "step"
    what = "step column" if step else "loss column"
    shown = ", ".join(repr(name) for name in names[:30]) + (f" and {len(names) - 30} more" if len(names) > 30 else "")
    return TokenAxisError(
        f"has no {what} that is known; its columns: {shown}", remedy=_what_to_do(canonical, names, declared or {})
    )


def may_be_loss(name: str) -> bool:
    """Whether a name is likely a loss, or says of what set numbers are that may be one."""
    key = normalise(name)
    if any(key in words for words in _HALVES.values()):
        return True
    return _LIKELY_LOSS.search(key) is not None and _NO_LOSS.search(key) is None


def _what_to_do(canonical: str, names: Sequence[str], declared: Mapping[str, str]) -> str:
    step = canonical == "step"
    pattern = _LIKELY_STEP if step else _LIKELY_LOSS
    taken = {own: meaning for meaning, own in declared.items()}
    for name in names:
        key = normalise(name)
        if pattern.search(key) is None or (not step and _NO_LOSS.search(key) is not None):
            continue
        if name not in taken:
            whole = "; tokens_per_step is that of an epoch then" if step and "epoch" in key else ""
            whole = ", if a byte is a token of the model" if not step and "per_byte" in key else whole
            return f"declare it in {FILE}: `defaults: {{columns: {{{canonical}: {quoted(name)}}}}}`{whole}"
        return f"correct columns in {FILE}: {name!r} is declared as {taken[name]} there"
    if not step:
        halves = {loss: name for loss, words in _HALVES.items() for name in names if normalise(name) in words}
        if halves:
            columns = ", ".join(f"{loss}: {quoted(name)}" for loss, name in halves.items())
            return f"if these are losses, declare in {FILE}: `defaults: {{columns: {{{columns}}}}}`"
        for name in names:
            for unit, why in _OTHER_UNITS:
                if unit.search(normalise(name)) is not None:
                    return f"{name!r} is {why}"
    which = "counts optimizer steps" if step else "holds the loss in nats per token"
    return f"name the column that {which} under columns in {FILE} (docs/logs.md); none of them is called like one"
