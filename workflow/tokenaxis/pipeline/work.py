"""What a stage script has to do: which runs, where their logs and results are, with which parameters."""

from __future__ import annotations

import functools
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tokenaxis import store
from tokenaxis.errors import TokenAxisError
from tokenaxis.pipeline.hashes import Hashes
from tokenaxis.pipeline.names import check_names

ENGINE = ".engine"


@dataclass
class Work:
    """The task of one stage script.

    Attributes:
        sweep: name of the sweep.
        root: the sweep directory.
        results: results/<sweep>.
        params: sections of params.yaml by name.
        runs: records of runs, as in runs.json.
        fits: what the sweep declares for parameters of the stage fits (targets, loss).
        shard, shards: which part of the sweep `runs` is; 0 of 1 is all of it.
        label: file stem of this part's indexes.
        strict: a refused log is a failure.
    """

    sweep: str
    root: Path
    results: Path
    params: dict[str, Any]
    runs: list[dict[str, Any]]
    fits: dict[str, Any]
    shard: int = 0
    shards: int = 1
    label: str = "all"
    strict: bool = False

    def index(self, stage: str) -> Path:
        """The index of a stage for this part."""
        return index_path(self.results, stage, self.label)

    @functools.cached_property
    def hashes(self) -> Hashes:
        """sha256 of this part's raw logs, remembered between runs."""
        return Hashes.load(self.results / ENGINE / "hashes" / f"{self.label}.json")


def index_path(results: Path, stage: str, label: str) -> Path:
    """results/<sweep>/.engine/index/<stage>/<label>.json."""
    return results / ENGINE / "index" / stage / f"{label}.json"


def manifest_path(results: Path, label: str) -> Path:
    """The runs of a shard, for Snakemake's jobs."""
    return results / ENGINE / "shards" / f"{label}.json"


def listing_path(results: Path) -> Path:
    """The manifest of the whole sweep, refusals included."""
    return results / ENGINE / "sweep.json"


def results_of_manifest(manifest: Path) -> Path:
    """results/<sweep> of a shard's manifest."""
    return manifest.parent.parent.parent


def results_of_listing(listing: Path) -> Path:
    """results/<sweep> of the manifest of the whole sweep."""
    return listing.parent.parent


def params_path(results: Path, stage: str) -> Path:
    """The sections of params.yaml that a stage uses."""
    return results / ENGINE / "params" / f"{stage}.json"


def code_path(results: Path, stage: str) -> Path:
    """The digest of a stage's code and data."""
    return results / ENGINE / "code" / f"{stage}.sha256"


def from_manifest(manifest: Path, section_file: Path) -> Work:
    """A shard, as Snakemake hands it over: a manifest and a file with sections of params.yaml.

    Raises:
        TokenAxisError: one of them is missing or damaged.
    """
    data, sections = store.read_json(manifest), store.read_json(section_file)
    for content, path in ((data, manifest), (sections, section_file)):
        if not isinstance(content, dict):
            raise TokenAxisError("is missing or damaged", file=str(path), remedy="delete it and start the engine again")
    return Work(
        sweep=data["sweep"],
        root=Path(data["root"]),
        results=Path(data["results"]),
        params=sections,
        runs=data["runs"],
        fits=data["fits"],
        shard=data["shard"],
        shards=data["shards"],
        label=data["label"],
        strict=data["strict"],
    )


def from_params(path: Path, sweep: str | None = None, logs: str | None = None) -> Work:
    """The whole sweep that params.yaml (or `sweep`) names, by its runs.json.

    Raises:
        TokenAxisError: params.yaml does not fit its schema, or the stage `runs` has not run yet.
    """
    from tokenaxis import params

    loaded = check_names(params.load(path, Path("results"), sweep, logs), str(path))
    results = Path("results") / loaded["sweep"]
    listing = store.read_json(results / "runs.json")
    if not isinstance(listing, dict):
        raise TokenAxisError("is missing", file=str(results / "runs.json"), remedy="run scripts/runs.py first")
    return Work(
        sweep=loaded["sweep"],
        root=Path(loaded["logs"]),
        results=results,
        params=loaded,
        runs=listing["runs"],
        fits=listing["fits"],
        strict=loaded["runs"]["strict"],
    )
