"""What the comparison is made of: the artifacts of every run of a sweep, as the stages before it left them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import numpy as np


@dataclass(frozen=True)
class RunResult:
    """One run's artifacts. The dictionaries are the JSON artifacts of docs/artifacts.md, as they are.

    Attributes:
        id: safe id, the name of the run's artifacts.
        name: the log's path, relative to the sweep directory.
        axis_meta: the `tokenaxis` metadata of token_axis/<run>.parquet.
        columns: loads the token axis: canonical name -> array (rows,), NaN where a row has no value. Called once.
        fits, stability, conventions, passport: the JSON artifacts; {} where a stage left none.
        stability_table: loads stability/<run>.parquet: column -> array (windows x targets,), NaN for null.
    """

    id: str
    name: str
    axis_meta: dict[str, Any]
    columns: Callable[[], dict[str, np.ndarray]]
    fits: dict[str, Any] = field(default_factory=dict)
    stability: dict[str, Any] = field(default_factory=dict)
    stability_table: Callable[[], dict[str, np.ndarray]] = dict
    conventions: dict[str, Any] = field(default_factory=dict)
    passport: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Source:
    """A run of which it is known where its artifacts are, and what they are.

    Attributes:
        id, name: as in RunResult.
        key: changes whenever an artifact does; None: not known, so nothing can be kept for the next time.
        load: reads the artifacts.
    """

    id: str
    name: str
    key: str | None
    load: Callable[[], RunResult]


@dataclass(frozen=True)
class Sweep:
    """A sweep and what became of each of its files.

    Attributes:
        name: name of the sweep.
        runs: the runs that have a token axis, in any order.
        refused: {name, reason, remedy} of the files that look like logs and could not be used.
        passed_over: {name, reason} of the files that are no logs.
        parameters: every parameter of the pipeline, section -> key -> value, as shown on the page.
        version: version of tokenaxis.
    """

    name: str
    runs: list[RunResult]
    refused: list[dict[str, Any]] = field(default_factory=list)
    passed_over: list[dict[str, Any]] = field(default_factory=list)
    parameters: dict[str, Any] = field(default_factory=dict)
    version: str = ""
