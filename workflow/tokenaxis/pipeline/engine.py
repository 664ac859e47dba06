"""What the Snakefile does when it is parsed: find runs, write what jobs read, drop stale indexes."""

from __future__ import annotations

import contextlib
import os
import shlex
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tokenaxis import params, store
from tokenaxis.errors import TokenAxisError
from tokenaxis.pipeline import ahead, leftovers, locks, made_of, options, refusals
from tokenaxis.pipeline.fingerprints import code_digest
from tokenaxis.pipeline.ledger import is_touched, put_aside
from tokenaxis.pipeline.names import check_names
from tokenaxis.pipeline.spec import PER_RUN as PER_RUN
from tokenaxis.pipeline.spec import STAGES
from tokenaxis.pipeline.work import code_path, index_path, listing_path, manifest_path, params_path
from tokenaxis.stages import runs as runs_stage
from tokenaxis.sweep.ids import shard_of


@dataclass(frozen=True)
class Plan:
    """The layout of one parse.

    Attributes:
        results: results/<sweep>.
        shards: labels of the shards that hold runs; file stems of manifests and indexes.
        label_of: run id -> its shard's label.
    """

    results: Path
    shards: list[str]
    label_of: dict[str, str]

    def index(self, stage: str, label: str) -> str:
        """Path of the index of a stage and shard; `label` may be a Snakemake wildcard."""
        return str(index_path(self.results, stage, label))

    def indexes(self, stage: str) -> list[str]:
        """All indexes of a stage."""
        return [self.index(stage, label) for label in (self.shards if STAGES[stage].per_run else ["all"])]

    def label(self, run_id: str) -> str:
        """The shard of a run.

        Raises:
            TokenAxisError: the sweep has no such run.
        """
        if run_id not in self.label_of:
            raise TokenAxisError(f"there is no run {run_id!r} in this sweep", remedy="ids are listed in runs.json")
        return self.label_of[run_id]

    def manifest(self, label: str) -> str:
        """Path of a shard's manifest."""
        return str(manifest_path(self.results, label))

    def manifests(self) -> list[str]:
        """All manifests."""
        return [self.manifest(label) for label in self.shards]

    def listing(self) -> str:
        """Path of the manifest of the whole sweep, refusals included."""
        return str(listing_path(self.results))

    def params(self, stage: str) -> str:
        """Path of the parameters of a stage: a file, so that no engine must remember the last ones."""
        return str(params_path(self.results, stage))

    def code(self, stage: str) -> str:
        """Path of the digest of a stage's code and data: one file for Snakemake to look at in place of fifty."""
        return str(code_path(self.results, stage))


def settings(config: dict[str, Any], overrides: dict[str, Any], params_file: Path) -> dict[str, Any]:
    """Checked parameters.

    A sweep named on the command line without `logs` is looked for in sweeps/<sweep>, never in the default's folder.

    Args:
        config: everything, overrides included; as a module, only what its user gave.
        overrides: what the command line gave, or the module's `config:`.
        params_file: where the rest comes from.

    Raises:
        TokenAxisError: a key is unknown, missing or of the wrong type.
    """
    given = {key: _typed(value) for key, value in overrides.items() if isinstance(value, dict)}
    chosen = _overlaid(_overlaid(params.load_yaml(params_file) or {}, config), given)
    if isinstance(chosen.get("sweep"), int | float):
        chosen["sweep"] = str(chosen["sweep"])  # a sweep called 2024 is still a name
    if "sweep" in overrides and "logs" not in overrides and overrides["sweep"] != _default(params_file, "sweep"):
        chosen["logs"] = f"sweeps/{chosen['sweep']}"
    if isinstance(chosen.get("logs"), int | float):
        chosen["logs"] = str(chosen["logs"])
    with _files_in_words():
        file = f"{params_file} or --config"
        return check_names(params.check(chosen, file, Path("results")), file)


def _typed(value: Any) -> Any:
    """`--config runs="{shards: 3}"` arrives with "3" as text; -> what params.yaml would make of it."""
    if isinstance(value, dict):
        return {key: _typed(entry) for key, entry in value.items()}
    if isinstance(value, list):
        return [_typed(entry) for entry in value]
    if not isinstance(value, str):
        return value
    import yaml

    try:
        return yaml.safe_load(value)
    except yaml.YAMLError:
        return value


def _overlaid(below: Any, above: Any) -> Any:
    """`above` laid over `below`, section by section."""
    if not (isinstance(below, dict) and isinstance(above, dict)):
        return above
    return below | {key: _overlaid(below.get(key), value) for key, value in above.items()}


def _default(params_file: Path, key: str) -> Any:
    return (params.load_yaml(params_file) or {}).get(key)


def prepare(config: dict[str, Any], cores: int | None, main: bool, arguments: list[str]) -> Plan:
    """Write what jobs read, each file only if it changed, and drop indexes that are stale.

    Args:
        config: checked parameters.
        cores: cores given to the engine.
        main: False in a job of a cluster, where nothing may be dropped.
        arguments: Snakemake's command line; a dry run may look while another Snakemake is at work.

    Raises:
        TokenAxisError: no directory of logs, a declaration that does not fit its schema, results that cannot be
            written, or another Snakemake at work on the sweep.
    """
    results = Path("results") / config["sweep"]
    with _files_in_words():
        alone = main and _alone(results, arguments)
        if alone:
            leftovers.drop(results)
        plan = _plan(config, cores, results, arguments) if main else _plan_of_main(results)
        if alone:
            drop_stale_indexes(plan)
            ahead.allow(results, ())  # until the engine starts its jobs, which a dry run does not
    return plan


def on_start(plan: Plan, asked: Any, executor: Any, given: dict[str, Any]) -> None:
    """Before the first job: let jobs go on with later stages if all were asked for; keep other machines' shells safe.

    Args:
        plan: the layout.
        asked: Snakemake's DAGSettings, which it does not have yet when the Snakefile is parsed.
        executor: Snakemake's executor plugin.
        given: what the command line gave in --config.

    Raises:
        TokenAxisError: a path or a value that the shell of a cluster's job would expand.
    """
    if not executor.common_settings.local_exec:
        refusals.refuse_expansion([str(Path.cwd()), str(params.HOME), *map(str, given.values())])
    if not (asked.targets or asked.target_jobs or asked.until or asked.omit_from):
        ahead.allow(plan.results, PER_RUN)


def _plan_of_main(results: Path) -> Plan:
    """The plan that the main process made, for its jobs on other machines: they must agree, whatever has changed since.

    Raises:
        TokenAxisError: there is none.
    """
    listing = store.read_json(listing_path(results))
    if listing is None:
        raise TokenAxisError("is missing", file=str(listing_path(results)), remedy="start snakemake again")
    return _layout(results, [record["id"] for record in listing["runs"]], options.shards_before(results))


def _alone(results: Path, arguments: list[str]) -> bool:
    """Whether no other Snakemake is at work on the sweep; if one is, only who wants to look may go on."""
    try:
        locks.engine(results)
    except locks.Busy:
        if not options.only_looks(arguments):
            raise
        return False
    return True


@contextlib.contextmanager
def _files_in_words() -> Iterator[None]:
    """A file that cannot be read or written is an expected failure."""
    try:
        yield
    except OSError as error:
        raise TokenAxisError(f"cannot be used: {error.strerror}", file=str(error.filename)) from error


def _layout(results: Path, run_ids: list[str], shards: int) -> Plan:
    label_of = {run_id: f"{shard_of(run_id, shards):03d}-of-{shards:03d}" for run_id in run_ids}
    return Plan(results, sorted(set(label_of.values())), label_of)


def _plan(config: dict[str, Any], cores: int | None, results: Path, arguments: list[str]) -> Plan:
    root = Path(config["logs"])
    found = runs_stage.find(config["sweep"], root, config["runs"]["ignore"], results)
    records = found["runs"]
    count = options.shards(config["runs"]["shards"], len(records), cores, results, arguments)
    plan = _layout(results, [record["id"] for record in records], count)
    parts: dict[str, list[dict[str, Any]]] = {}
    for record in records:
        parts.setdefault(plan.label_of[record["id"]], []).append(record)
    whole = found | {
        "root": str(root),
        "results": str(results),
        "strict": config["runs"]["strict"],
        "shard": 0,
        "shards": 1,
        "label": "all",
    }
    _write(plan.listing(), whole)
    common = {key: value for key, value in whole.items() if key not in ("refused", "passed_over")}
    for label, part in parts.items():
        _write(plan.manifest(label), common | {"shard": int(label[:3]), "shards": count, "label": label, "runs": part})
    for stage in STAGES.values():
        _write(plan.params(stage.name), {name: config[name] for name in stage.sections})
        _write_text(plan.code(stage.name), code_digest(stage.name) + "\n")
    _write_text(str(options.count_path(results)), f"{count}\n")
    return plan


def drop_stale_indexes(plan: Plan) -> None:
    """Drop every index that was made from other inputs, or of which an artifact is missing or was touched since.

    Also one from the future: what will be written now would count as older.
    """
    now = time.time()
    for stage in STAGES.values():
        folder = plan.results if stage.name == "runs" else plan.results / stage.name
        for label in plan.shards if stage.per_run else ["all"]:
            index = Path(plan.index(stage.name, label))
            current = made_of.fits(plan.results, stage.name, label) and _mtime(index) <= now
            if not current or is_touched(index, folder):
                put_aside(index)


def _mtime(path: Path) -> float:
    try:
        return path.stat().st_mtime
    except OSError:
        return 0.0


def _write(path: str, data: Any) -> None:
    _write_text(path, store.to_json(data, indent=None))


def _write_text(path: str, text: str) -> None:
    """Write what changed. A file from the future (a clock was wrong) is brought to now, or Snakemake fails."""
    if not store.write_text_if_changed(Path(path), text) and _mtime(Path(path)) > time.time():
        os.utime(path)


def command(scripts: Path) -> str:
    """The beginning of every rule's shell line: this interpreter and the folder of scripts, quoted, braces escaped."""
    return escaped(f"{shlex.quote(sys.executable)} {shlex.quote(str(scripts))}")


def escaped(text: object) -> str:
    """`text` with its braces doubled, as Snakemake wants what is no wildcard."""
    return str(text).replace("{", "{{").replace("}", "}}")
