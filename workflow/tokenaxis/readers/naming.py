"""Which of a log's own names stand for which canonical columns."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from tokenaxis.columns import BY_NAME, COLUMNS, LOSSES, normalise
from tokenaxis.errors import Notice, TokenAxisError
from tokenaxis.readers.remedies import FILE, quoted

#: one alias is preferred over a later one unless the later has more than this many times as many values: a mean that
#: is logged once at the end must not hide the loss of every step
_MUCH_MORE = 4

_ALIASES = {alias: (column.name, rank) for column in COLUMNS for rank, alias in enumerate(column.aliases)}
#: "train_loss_step" (Lightning) and the like come after every alias of columns.py
_SUFFIXES = ("_step", "_epoch")
_ELAPSED = re.compile(
    r"(?:(?:total|train|training|wall|wall_clock|elapsed|cumulative|cum|relative|run)_?time|time_elapsed|elapsed|wallclock"
    r"|walltime|_?runtime)(?:_(ms|s|sec|secs|seconds|min|minutes|h|hours))?"
)
_PER_SECOND = {"ms": 1000.0, "min": 1 / 60, "minutes": 1 / 60, "h": 1 / 3600, "hours": 1 / 3600}
_SET_LOSS = re.compile(
    r"(?:eval|val|valid|validation|test)_.*(?:cross_?entropy_?loss|cross_?entropy|ce_loss|lm_loss|loss)"
)
#: what loggers wrap their metrics in: {"metrics": {"train": {"loss": ...}}}
_WRAPPERS = re.compile(r"^(?:metrics?|scalars?|logs?|stats|results?|summary)_")
_KIND_NAMES = frozenset(
    ("type", "split", "phase", "mode", "set", "stage", "kind", "event", "partition", "subset", "data_split", "name")
)
#: words in a `type` column -> the loss that such a row holds
KINDS = dict.fromkeys(("train", "training", "train_step"), "train_loss")
KINDS |= dict.fromkeys(("val", "valid", "validate", "validation", "val_step", "validation_step"), "val_loss")
KINDS |= dict.fromkeys(("eval", "evaluate", "evaluation", "eval_step", "test", "dev"), "val_loss")


@dataclass(frozen=True)
class Source:
    """One of the log's own columns.

    Attributes:
        index: position in the log's list of names.
        name: the log's own name.
        per_unit: how many of the log's units make one canonical unit (1000 for ms); values are divided by it.
    """

    index: int
    name: str
    per_unit: float = 1.0


@dataclass
class Naming:
    """What a log's names mean.

    Attributes:
        candidates: canonical name -> groups, best first; a group holds the columns that stand for it under one alias
            (more than one: a duplicate). Only with a value count can the final choice be made, see `choose`.
        kind: the column that says whether a row's loss is of training or validation, or None.
        notices: choices worth a reader's attention.
    """

    candidates: dict[str, list[list[Source]]] = field(default_factory=dict)
    kind: Source | None = None
    notices: list[Notice] = field(default_factory=list)

    @property
    def sources(self) -> list[Source]:
        """Every numeric column to read, each once."""
        found = {source.index: source for groups in self.candidates.values() for group in groups for source in group}
        return [found[index] for index in sorted(found)]

    def has_step(self, tokens_per_step: float | None = None) -> bool:
        """Whether rows can be given a step: from a column, or from a tokens column and a declared fixed batch."""
        return "step" in self.candidates or (tokens_per_step is not None and "tokens" in self.candidates)

    def has_loss(self) -> bool:
        return any(loss in self.candidates for loss in LOSSES)


def resolve(names: Sequence[str], declared: Mapping[str, str] | None = None) -> Naming:
    """Find the canonical columns among a log's names.

    Args:
        names: the log's own names, in file order.
        declared: canonical name -> the log's name; wins over every alias.

    Raises:
        TokenAxisError: a declared name is not among them.
    """
    ranked: dict[str, dict[int, list[Source]]] = {}
    keys = [normalise(name) for name in names]
    for index, (name, key) in enumerate(zip(names, keys, strict=True)):
        hit = _meaning(key)
        if hit is not None:
            canonical, rank, per_unit = hit
            ranked.setdefault(canonical, {}).setdefault(rank, []).append(Source(index, name, per_unit))
    found = Naming({name: [groups[rank] for rank in sorted(groups)] for name, groups in ranked.items()})
    for canonical, name in (declared or {}).items():
        source = _declared(canonical, name, names, keys)
        _release(found, source)
        found.candidates[canonical] = [[source]]
    if "val_loss" not in found.candidates:
        _choose_set_loss(found, names, keys)
    _find_kind(found, names, keys, declared or {})
    return found


def choose(groups: list[list[Source]], values: Mapping[int, int]) -> list[Source]:
    """The group that stands for a canonical column: the first, unless a later one has far more values.

    Args:
        groups: as in `Naming.candidates`.
        values: index of a source -> number of its finite values.
    """
    best = groups[0]
    if len(groups) == 1:
        return best
    for group in groups[1:]:
        if values[group[0].index] > _MUCH_MORE * values[best[0].index]:
            best = group
    return best


def role(name: str, declared: Mapping[str, str]) -> str | None:
    """What one of a log's names may stand for: a canonical name, "kind" for a `type` column, or None."""
    for canonical, own in declared.items():
        if own == name:
            return canonical
    key = normalise(name)
    hit = _meaning(key)
    if hit is not None:
        return hit[0]
    if _SET_LOSS.fullmatch(key):
        return "val_loss"
    return "kind" if key in _KIND_NAMES else None


def names_a_step(names: Sequence[str]) -> bool:
    """Whether one of a log's names is known to be the step."""
    return any(_ALIASES.get(normalise(name), ("",))[0] == "step" for name in names)


def _meaning(key: str) -> tuple[str, int, float] | None:
    """(canonical name, rank, units per canonical unit) of a normalised name."""
    hit = _ALIASES.get(key) or _ALIASES.get(_WRAPPERS.sub("", key))
    if hit is not None:
        return (*hit, 1.0)
    if key.endswith(_SUFFIXES):
        hit = _ALIASES.get(key[: key.rindex("_")])
        if hit is not None and hit[0] in LOSSES:
            # per step before per epoch
            return hit[0], 100 + hit[1] + (50 if key.endswith("_epoch") else 0), 1.0
    elif "time" in key or "elapsed" in key or "clock" in key:
        match = _ELAPSED.fullmatch(key)
        if match is not None:
            return "elapsed_s", 100, _PER_SECOND.get(match.group(1), 1.0)
    return None


def _declared(canonical: str, name: str, names: Sequence[str], keys: Sequence[str]) -> Source:
    if canonical not in BY_NAME:
        raise TokenAxisError(f"declares a column {canonical!r}", remedy=f"one of: {', '.join(BY_NAME)}")
    if name in names:
        return Source(names.index(name), name)
    alike = [index for index, key in enumerate(keys) if key == normalise(name)]
    if len(alike) == 1:
        return Source(alike[0], names[alike[0]])
    shown = ", ".join(repr(name) for name in names)
    raise TokenAxisError(
        f"has no column {name!r}, which is declared as {canonical}; its columns: {shown}",
        remedy="correct the name under columns in configs/sweeps/<sweep>.yaml",
    )


def _release(found: Naming, source: Source) -> None:
    """What is declared to be one thing is no longer recognised as another."""
    for canonical, groups in list(found.candidates.items()):
        kept = [[other for other in group if other.index != source.index] for group in groups]
        kept = [group for group in kept if group]
        if kept:
            found.candidates[canonical] = kept
        else:
            del found.candidates[canonical]


def _choose_set_loss(found: Naming, names: Sequence[str], keys: Sequence[str]) -> None:
    """Losses on several evaluation sets and no plain val_loss: the first in file order, with a notice."""
    alike = [index for index, key in enumerate(keys) if _SET_LOSS.fullmatch(key)]
    if not alike:
        return
    name = names[alike[0]]
    found.candidates["val_loss"] = [[Source(alike[0], name)]]
    if len(alike) > 1:
        message = (
            f"{len(alike)} validation losses; the first, {name!r}, was taken as val_loss; "
            f"choose another in {FILE}: `defaults: {{columns: {{val_loss: {quoted(names[alike[1]])}}}}}`"
        )
        found.notices.append(Notice("val_loss_chosen", message))


def _find_kind(found: Naming, names: Sequence[str], keys: Sequence[str], declared: Mapping[str, str]) -> None:
    """A `type` column beside one bare loss column says whose loss a row holds."""
    if "val_loss" in found.candidates or "train_loss" not in found.candidates or "train_loss" in declared:
        return
    loss = found.candidates["train_loss"][0][0]
    if "train" in keys[loss.index]:
        return
    for index, key in enumerate(keys):
        if key in _KIND_NAMES:
            found.kind = Source(index, names[index])
            return
