"""configs/sweeps/<sweep>.yaml: what the user declares about the logs of a sweep, resolved for each run."""

from __future__ import annotations

import fnmatch
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from tokenaxis import params
from tokenaxis.declarations import Declaration
from tokenaxis.errors import TokenAxisError
from tokenaxis.sweep import models
from tokenaxis.sweep.patterns import GroupRule, Place, place_of

#: keys that each say the whole of a run's batch
_BATCH = ("tokens_per_step", "batch_schedule")


@dataclass(frozen=True)
class SweepDeclaration:
    """The parsed file.

    Attributes:
        targets: target losses of this sweep, or None.
        loss: the loss column that its runs are compared on, or None.
        ignore: glob patterns of paths below the sweep directory that are passed over.
        entries: (pattern, keys) in order; later ones win key by key, and within `columns` and `facts`;
            `tokens_per_step` and `batch_schedule` replace one another. Of `model` only the last one counts; what is
            stated beside it goes before it.
        root: the sweep directory, where models' files are looked for first; None: only the working directory.
        cache: a folder that remembers what models' files hold, or None.
        defaults: how many of the entries, from the first on, are for every run.
        groups: which files make one run.
        separate: glob patterns of paths that are runs of their own, whatever their names suggest.
    """

    targets: tuple[float, ...] | None = None
    loss: str | None = None
    ignore: tuple[str, ...] = ()
    entries: tuple[tuple[str, dict[str, Any]], ...] = ()
    root: Path | None = None
    cache: Path | None = None
    defaults: int = 0
    groups: tuple[GroupRule, ...] = ()
    separate: tuple[str, ...] = ()

    def ignores(self, path: str) -> bool:
        """Whether a path (relative to the sweep directory) is passed over."""
        return any(fnmatch.fnmatchcase(path, pattern) for pattern in self.ignore)

    def fits(self) -> dict[str, Any]:
        """What is declared for parameters of the stage fits, for those that are `auto` in params.yaml."""
        declared = {"targets": None if self.targets is None else list(self.targets), "loss": self.loss}
        return {key: value for key, value in declared.items() if value is not None}

    def is_separate(self, path: str) -> bool:
        """Whether a path is declared to be a run of its own."""
        return any(fnmatch.fnmatchcase(path, pattern) for pattern in self.separate)

    def group_of(self, path: str) -> Place | None:
        """The run that a path is declared to belong to."""
        return place_of(path, self.groups)

    def forced_format(self, path: str) -> str | None:
        """The format declared for just this path, or for some like it; what is declared for every run forces none."""
        formats = [
            keys["format"]
            for pattern, keys in self.entries[self.defaults :]
            if "format" in keys and fnmatch.fnmatchcase(path, pattern)
        ]
        return formats[-1] if formats else None

    def columns_of(self, path: str) -> dict[str, str]:
        """The columns declared for a path."""
        columns: dict[str, str] = {}
        for pattern, keys in self.entries:
            if "columns" in keys and fnmatch.fnmatchcase(path, pattern):
                columns |= keys["columns"]
        return columns

    def of(self, *paths: str) -> Declaration:
        """What is declared for a run.

        Args:
            paths: its files, relative to the sweep directory, and its name; an entry counts if it fits one of them.

        Raises:
            TokenAxisError: a model's file is missing or unreadable, a schedule does not ascend, or an entry declares a
                batch and a schedule.
        """
        return self.of_entries(self.fitting(*paths))

    def fitting(self, *paths: str) -> tuple[int, ...]:
        """Which entries are for a run with these files and this name."""
        fits = fnmatch.fnmatchcase
        return tuple(
            number
            for number, (pattern, _) in enumerate(self.entries)
            if pattern == "*" or any(fits(path, pattern) for path in paths)
        )

    def of_entries(self, numbers: tuple[int, ...]) -> Declaration:
        """What these entries declare together; errors as in `of`."""
        merged: dict[str, Any] = {"columns": {}, "facts": {}}
        matching = [self.entries[number][1] for number in numbers]
        models_named = [number for number, keys in enumerate(matching) if "model" in keys]
        for number, keys in enumerate(matching):
            if number in models_named[-1:]:  # one model: the facts of two must not mix
                merged["facts"] = merged["facts"] | models.facts(keys["model"], self.root, self.cache)
            if (price := keys.get("price_per_gpu_hour")) is not None:
                stated = {"price_per_gpu_hour": price["value"], "price_currency": price["currency"]}
                merged["facts"] = merged["facts"] | stated
            _refuse_both(keys)
            for key, value in keys.items():
                if key in ("columns", "facts"):
                    merged[key] = merged[key] | value
                elif key in _BATCH:  # each says it all, so that of a later entry replaces the other too
                    for other in _BATCH:
                        merged.pop(other, None)
                    merged[key] = parse_schedule(value) if key == "batch_schedule" else value
                elif key not in ("model", "price_per_gpu_hour"):
                    merged[key] = value
        return Declaration.from_dict(merged)


def load(sweep: str, seen: Path | None = None, root: Path | None = None) -> SweepDeclaration:
    """The declarations of a sweep; empty when there is no file.

    Args:
        sweep: name of the sweep.
        seen: folder that remembers which contents were found valid, and what models' files hold.
        root: the sweep directory, which paths of models may be relative to.

    Raises:
        TokenAxisError: the file does not fit workflow/schemas/sweep.schema.json, naming the key.
    """
    path = params.find(f"configs/sweeps/{sweep}.yaml")
    if not path.exists():
        return SweepDeclaration()
    data = params.validate(params.load_yaml(path), "sweep.schema.json", str(path), seen) or {}
    entries = [("*", data["defaults"])] if data.get("defaults") else []
    defaults = len(entries)
    entries += [(entry["match"], {k: v for k, v in entry.items() if k != "match"}) for entry in data.get("runs", [])]
    targets = data.get("targets")
    return SweepDeclaration(
        None if targets is None else tuple(float(target) for target in targets),
        data.get("loss"),
        tuple(data.get("ignore", ())),
        tuple(entries),
        root,
        seen,
        defaults,
        tuple(GroupRule.parsed(rule, str(path)) for rule in data.get("groups", ())),
        tuple(data.get("separate", ())),
    )


def on_command_line(sweep: str | None, text: str | None) -> SweepDeclaration:
    """The declarations of a sweep, with YAML that is declared for every run laid over them.

    Args:
        sweep: name of the sweep, or None.
        text: YAML with keys of a run, or None.

    Raises:
        TokenAxisError: one of them does not fit workflow/schemas/sweep.schema.json.
    """
    declaration = SweepDeclaration() if sweep is None else load(sweep)
    if text is None:
        return declaration
    import yaml

    try:
        keys = yaml.safe_load(text)
    except yaml.YAMLError:
        raise TokenAxisError(f"--declare is not valid YAML: {text!r}") from None
    keys = params.validate({"defaults": keys}, "sweep.schema.json", "--declare")["defaults"]
    return replace(declaration, entries=(*declaration.entries, ("*", keys)))


def _refuse_both(keys: dict[str, Any]) -> None:
    if all(key in keys for key in _BATCH):
        raise TokenAxisError(
            "declares tokens_per_step and batch_schedule for the same run: which of them is its batch?",
            remedy="remove one of the two keys in configs/sweeps/<sweep>.yaml",
        )


def parse_schedule(stages: list[Any]) -> tuple[tuple[float, float], ...]:
    """Stages as "TOKENS:BATCH" or [tokens, batch] -> ((start_tokens, tokens_per_step), ...).

    Raises:
        TokenAxisError: a stage is not such a pair, a batch is not positive, or the starts do not ascend.
    """
    parsed: list[tuple[float, float]] = []
    for stage in stages:
        try:
            start, batch = (float(part) for part in (stage.split(":") if isinstance(stage, str) else stage))
        except ValueError:
            raise TokenAxisError(f"a batch schedule takes TOKENS:BATCH pairs, got {stage!r}") from None
        if not (0 <= start < float("inf") and 0 < batch < float("inf")):
            raise TokenAxisError(f"a batch schedule takes non-negative tokens and positive batches, got {stage!r}")
        if parsed and start <= parsed[-1][0]:
            in_order = ", ".join(f"[{one:.0f}, {size:.0f}]" for one, size in sorted({*parsed, (start, batch)}))
            raise TokenAxisError(
                f"the starts of batch_schedule do not ascend: {start:,.0f} tokens after {parsed[-1][0]:,.0f}",
                remedy=f"write its stages in order, if this is what is meant: [{in_order}, ...]",
            )
        parsed.append((start, batch))
    return tuple(parsed)
