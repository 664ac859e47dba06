"""What leaves with an export: the passport without its price, and the series of the token axis under their keys."""

from __future__ import annotations

import importlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from tokenaxis.columns import LOSSES
from tokenaxis.errors import TokenAxisError

if TYPE_CHECKING:
    import numpy as np

#: series that tokenaxis derived, apart from those that the log reported under keys of its own
PREFIX = "tokenaxis/"
DERIVED = ("tokens", "tokens_per_step", "attempt")
REPORTED = (*LOSSES, "lr", "grad_norm", "elapsed_s")
_PRICE = ("price_per_gpu_hour", "price_currency")


@dataclass(frozen=True)
class ExportedRun:
    """One run, ready to leave.

    Attributes:
        passport: without a price (see `without_price`).
        markdown: the same passport as Markdown.
        columns: of its token axis (rows,), one row a step; NaN where a row has no value.
        own_names: canonical column -> the log's own name.
    """

    passport: Mapping[str, Any]
    markdown: str
    columns: Mapping[str, np.ndarray]
    own_names: Mapping[str, str]

    @property
    def id(self) -> str:
        return str(self.passport["run"]["id"])

    def series(self) -> dict[str, np.ndarray]:
        """Exported key -> values (rows,): what the log reported under its own keys, the rest below `tokenaxis/`.

        A key that starts with an underscore is the receiving tool's own, so such a series goes below `tokenaxis/` too,
        as does one whose key is taken.
        """
        found: dict[str, np.ndarray] = {}
        for column in REPORTED:
            if column in self.columns:
                key = self.own_names.get(column, column)
                taken = key in found or key.startswith(("_", PREFIX))
                found[f"{PREFIX}{column}" if taken else key] = self.columns[column]
        found |= {f"{PREFIX}{column}": self.columns[column] for column in DERIVED if column in self.columns}
        per_token = self.passport["flops"].get("per_token") or {}
        if per_token.get("value") is not None:
            found[f"{PREFIX}flops.{per_token['convention']}"] = self.columns["tokens"] * per_token["value"]
        return found

    def rows(self) -> Iterator[tuple[int, dict[str, float]]]:
        """(step, exported key -> value) of every step, ascending; keys without a value in that step are left out."""
        series = {key: values.tolist() for key, values in self.series().items()}
        for row, step in enumerate(self.columns["step"].tolist()):
            cells = ((key, values[row]) for key, values in series.items())
            yield int(step), {key: value for key, value in cells if value == value}  # NaN differs from itself


def without_price(passport: Mapping[str, Any]) -> dict[str, Any]:
    """The passport without price and cost: what a run cost in money is its owner's business, and no physics."""
    stated = {"cost", *_PRICE}
    return dict(passport) | {
        "cost": {},
        "explain": {
            key: entry
            for key, entry in passport["explain"].items()
            if key.split(".")[0] not in stated and not stated & set(entry["inputs"])
        },
        "conflicts": [conflict for conflict in passport["conflicts"] if conflict["key"] not in _PRICE],
        "warnings": [
            warning for warning in passport["warnings"] if not any(key in warning["message"] for key in _PRICE)
        ],
        "not_available": dict(passport["not_available"]) | {"cost": "never exported"},
    }


def flat(content: Any, prefix: str = "") -> Iterator[tuple[str, Any]]:
    """(dotted key, leaf) of everything below `content`; lists are leaves unless they hold mappings."""
    if isinstance(content, Mapping):
        for key, child in content.items():
            yield from flat(child, f"{prefix}.{key}" if prefix else str(key))
    elif isinstance(content, list) and any(isinstance(item, Mapping) for item in content):
        for number, child in enumerate(content):
            name = child.get("target", number) if isinstance(child, Mapping) else number
            yield from flat(child, f"{prefix}.{name}")
    elif content is not None:
        yield prefix, content


def library(module: str, package: str) -> Any:
    """An optional library.

    Raises:
        TokenAxisError: it is not installed; says how to install it.
    """
    try:
        return importlib.import_module(module)
    except ImportError as error:
        raise TokenAxisError(
            f"this export needs the package {package}, which cannot be imported ({error})",
            remedy="pip install 'tokenaxis[exports]'",
        ) from error
