"""What is given on Snakemake's command line: sections, shards, and what other machines must make of it."""

from __future__ import annotations

import hashlib
import json
import os
from pathlib import Path

import pytest

from tokenaxis.pipeline import engine, locks, options
from tokenaxis.pipeline.hashes import Hashes

from .conftest import Checkout


def shards(checkout: Checkout) -> set[str]:
    return {path.stem for path in (checkout.results / ".engine" / "shards").glob("*-of-*.json")}


def test_a_section_on_the_command_line_has_numbers_lists_and_null(root: Path) -> None:
    given = {
        "fits": {"targets": ["3.2", "2.9"], "law": "power"},
        "runs": {"shards": "3"},
        "comparison": {"baseline": "null"},
    }
    settings = engine.settings(given, given, root / "params.yaml")
    assert settings["fits"]["targets"] == [3.2, 2.9]
    assert settings["fits"]["law"] == "power"
    assert settings["runs"]["shards"] == 3
    assert settings["comparison"]["baseline"] is None
    assert settings["stability"], "what is not given comes from the file"


def test_shards_by_cores_or_by_runs_on_a_cluster(tmp_path: Path) -> None:
    local, cluster = ["--cores", "4"], ["--executor", "cluster-generic", "--jobs", "9"]
    assert options.shards("auto", 1000, 4, tmp_path, local) == 4
    assert options.shards("auto", 3, 4, tmp_path, local) == 3, "never more than runs"
    assert options.shards(8, 1000, 4, tmp_path, local) == 8
    assert options.shards("auto", 0, 4, tmp_path, local) == 1
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(options, "option", lambda arguments, name: "slurm")
        assert options.shards("auto", 1001, None, tmp_path, cluster) == 21


def test_a_job_on_another_machine_takes_over_the_plan(checkout: Checkout, monkeypatch: pytest.MonkeyPatch) -> None:
    checkout.snakemake("--dry-run", "--config", "runs={shards: 3}")
    monkeypatch.chdir(checkout.path)
    before = {path: path.stat().st_mtime_ns for path in checkout.results.rglob("*")}
    (checkout.logs / "a_0.5Mbs.csv").unlink()  # what happens meanwhile is for the next start
    plan = engine.prepare({"sweep": "planted"}, 1, False, [])
    assert set(plan.shards) == {path.removesuffix(".json") for path in shards(checkout)}
    assert "a_0.5Mbs" in plan.label_of
    assert {path: path.stat().st_mtime_ns for path in checkout.results.rglob("*")} == before, "it writes nothing"


def test_a_lock_names_its_holder_and_ends_with_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(locks, "_held", [])
    locks.engine(tmp_path)
    with pytest.raises(locks.Busy, match="at work"):
        locks.engine(tmp_path)
    for descriptor in locks._held:
        os.close(descriptor)  # what the kernel does when a process dies
    locks.engine(tmp_path)


def test_a_hash_is_of_the_bytes_that_its_stamp_is_about(tmp_path: Path) -> None:
    log = tmp_path / "log.csv"
    log.write_bytes(b"1,2\n" * 1000)
    hashes = Hashes(tmp_path / "hashes.json")
    assert hashes.sha256(log) == hashlib.sha256(b"1,2\n" * 1000).hexdigest()
    with open(log, "ab") as file:
        file.write(b"3,4\n")
    assert hashes.sha256(log) == hashlib.sha256(b"1,2\n" * 1000 + b"3,4\n").hexdigest()
    assert hashes.bytes_of(log) == 4004
    hashes.save()
    assert json.loads((tmp_path / "hashes.json").read_text())


@pytest.mark.parametrize("stage", ["fits", "comparison"])
def test_a_manifest_that_is_not_there_is_one_line_and_status_2(stage: str, checkout: Checkout) -> None:
    run = checkout.run("python", f"scripts/{stage}.py", "--manifest", "none.json", "--params", "none.json", check=False)
    assert run.returncode == 2
    assert run.stderr.startswith("error: none.json: is missing or damaged") and run.stderr.count("\n") == 1
