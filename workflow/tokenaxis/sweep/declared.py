"""configs/sweeps/<sweep>.yaml: what the user declares about the logs of a sweep, resolved for each run."""

from __future__ import annotations

import fnmatch
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tokenaxis import params
from tokenaxis.declarations import Declaration
from tokenaxis.errors import TokenAxisError


@dataclass(frozen=True)
class SweepDeclaration:
    """The parsed file.

    Attributes:
        targets: target losses of this sweep, or None.
        loss: the loss column that its runs are compared on, or None.
        ignore: glob patterns of paths below the sweep directory that are passed over.
        entries: (pattern, keys) in order; later ones win key by key, and within `columns` and `facts`.
    """

    targets: tuple[float, ...] | None = None
    loss: str | None = None
    ignore: tuple[str, ...] = ()
    entries: tuple[tuple[str, dict[str, Any]], ...] = ()

    def ignores(self, path: str) -> bool:
        """Whether a path (relative to the sweep directory) is passed over."""
        return any(fnmatch.fnmatchcase(path, pattern) for pattern in self.ignore)

    def fits(self) -> dict[str, Any]:
        """What is declared for parameters of the stage fits, for those that are `auto` in params.yaml."""
        declared = {"targets": None if self.targets is None else list(self.targets), "loss": self.loss}
        return {key: value for key, value in declared.items() if value is not None}

    def of(self, path: str) -> Declaration:
        """What is declared for the log at `path` (relative to the sweep directory).

        Raises:
            TokenAxisError: a model that is named has no file, or a schedule is not ascending.
        """
        merged: dict[str, Any] = {"columns": {}, "facts": {}}
        for pattern, keys in self.entries:
            if not fnmatch.fnmatchcase(path, pattern):
                continue
            for key, value in keys.items():
                if key in ("columns", "facts"):
                    merged[key] = merged[key] | value
                elif key == "model":
                    merged["facts"] = merged["facts"] | _model_facts(value)
                elif key == "batch_schedule":
                    merged[key] = parse_schedule(value)
                else:
                    merged[key] = value
        return Declaration.from_dict(merged)


def load(sweep: str, seen: Path | None = None) -> SweepDeclaration:
    """The declarations of a sweep; empty when there is no file.

    Args:
        sweep: name of the sweep.
        seen: folder that remembers which contents were found valid.

    Raises:
        TokenAxisError: the file does not fit workflow/schemas/sweep.schema.json, naming the key.
    """
    path = params.find(f"configs/sweeps/{sweep}.yaml")
    if not path.exists():
        return SweepDeclaration()
    data = params.validate(params.load_yaml(path), "sweep.schema.json", str(path), seen) or {}
    entries = [("*", data["defaults"])] if data.get("defaults") else []
    entries += [(entry["match"], {k: v for k, v in entry.items() if k != "match"}) for entry in data.get("runs", [])]
    targets = data.get("targets")
    return SweepDeclaration(
        None if targets is None else tuple(float(target) for target in targets),
        data.get("loss"),
        tuple(data.get("ignore", ())),
        tuple(entries),
    )


def parse_schedule(stages: list[Any]) -> tuple[tuple[float, float], ...]:
    """Stages as "TOKENS:BATCH" or [tokens, batch] -> ((start_tokens, tokens_per_step), ...), sorted by start.

    Raises:
        TokenAxisError: a stage is not such a pair, or a batch is not positive.
    """
    parsed = []
    for stage in stages:
        try:
            start, batch = (float(part) for part in (stage.split(":") if isinstance(stage, str) else stage))
        except ValueError:
            raise TokenAxisError(f"a batch schedule takes TOKENS:BATCH pairs, got {stage!r}") from None
        if not (0 <= start < float("inf") and 0 < batch < float("inf")):
            raise TokenAxisError(f"a batch schedule takes non-negative tokens and positive batches, got {stage!r}")
        parsed.append((start, batch))
    return tuple(sorted(parsed))


def _model_facts(name: str) -> dict[str, Any]:
    path = params.find(f"configs/models/{name}.yaml")
    if "/" in name or not path.exists():
        known = sorted(file.stem for file in (params.HOME / "configs" / "models").glob("*.yaml"))
        raise TokenAxisError(
            f"declares model {name!r}, and configs/models has no such file", remedy=f"one of: {', '.join(known)}"
        )
    return dict((params.load_yaml(path) or {}).get("facts", {}))
