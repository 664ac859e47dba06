"""The first job of a shard goes on with the later stages; their own jobs then have nothing left to do."""

from __future__ import annotations

import fcntl
import json
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from tokenaxis.pipeline import made_of
from tokenaxis.pipeline.spec import PER_RUN

from .conftest import Checkout, environment

Copy = Callable[[Checkout], Checkout]


def test_each_stage_of_a_shard_is_done_once_and_logs_say_where(checkout: Checkout) -> None:
    said = checkout.snakemake("--config", "runs={shards: 1}").stderr
    logs = checkout.results / ".engine" / "logs"
    for stage in PER_RUN:
        line = next(line for line in said.splitlines() if line.startswith(f"{stage} 000-of-001: "))
        assert said.count(f"\n{line}\n") == 1, "the job that found nothing to do is silent"
        assert line in (logs / "token_axis-000-of-001.log").read_text()
        assert stage == PER_RUN[0] or "earlier stage" in (logs / f"{stage}-000-of-001.log").read_text()


def test_a_job_after_it_loads_nothing_that_computes(made_by_snakemake: Checkout, copy_of: Copy) -> None:
    checkout = copy_of(made_by_snakemake)
    engine = checkout.results / ".engine"
    index = next((engine / "index" / "fits").glob("*.json"))
    ran = checkout.run(
        "python", "-X", "importtime", "scripts/fits.py",
        "--manifest", str(engine / "shards" / index.name), "--params", str(engine / "params" / "fits.json"),
    )  # fmt: skip
    loaded = {line.rsplit("|", 1)[-1].strip().split(".")[0] for line in ran.stderr.splitlines() if "|" in line}
    assert "tokenaxis" in loaded and not loaded & {"numpy", "pyarrow", "yaml"}


def test_until_stops_where_it_says(checkout: Checkout) -> None:
    checkout.snakemake("--until", "fits")
    assert (checkout.results / "fits").is_dir()
    assert not any((checkout.results / stage).exists() for stage in ("stability", "conventions", "passports"))
    checkout.snakemake("--dry-run")  # looks, and must allow nothing
    checkout.snakemake("--omit-from", "passports")
    assert (checkout.results / "stability").is_dir() and not (checkout.results / "passports").exists()


def test_what_a_job_cannot_do_ahead_is_left_to_the_job_whose_work_it_is(checkout: Checkout) -> None:
    (checkout.results).mkdir(parents=True)
    (checkout.results / "conventions").write_text("a file where a folder has to be")
    failed = checkout.snakemake("--keep-going", check=False)
    assert failed.returncode == 1 and "conventions" in failed.stderr
    done = json.loads(next((checkout.results / ".engine" / "index" / "stability").glob("*.json")).read_text())
    assert done["runs"], "the stages before it, and beside it, are done"
    (checkout.results / "conventions").unlink()
    checkout.snakemake()
    assert (checkout.results / "comparison" / "index.html").exists()


def test_a_deleted_folder_is_no_stage_that_is_done(made_by_snakemake: Checkout, copy_of: Copy) -> None:
    checkout = copy_of(made_by_snakemake)
    content = checkout.artifacts()
    for stage in ("fits", "passports"):
        shutil.rmtree(checkout.results / stage)
    checkout.snakemake()
    assert checkout.artifacts() == content


def test_a_job_that_waited_is_made_of_what_it_read_and_not_of_what_was_written_since(
    made_by_snakemake: Checkout, copy_of: Copy, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An orphan of a killed engine waits for a lock while the next engine writes other parameters."""
    checkout = copy_of(made_by_snakemake)
    monkeypatch.chdir(checkout.path)
    results = Path("results/planted")
    engine = results / ".engine"
    label = next((engine / "index" / "fits").glob("*.json")).stem
    params = engine / "params" / "fits.json"
    shutil.rmtree(results / "fits")
    with open(engine / "locks" / "fits") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # as DVC's script holds it
        command = ["python", "scripts/fits.py", "--manifest", f"{engine}/shards/{label}.json", "--params", str(params)]
        orphan = subprocess.Popen(command, env=environment(), stderr=subprocess.PIPE, text=True)
        assert orphan.stderr is not None and "waiting" in orphan.stderr.readline()
        changed = json.loads(params.read_text())
        changed["fits"]["targets"] = [3.1]
        params.write_text(json.dumps(changed))
        fcntl.flock(lock, fcntl.LOCK_UN)
    orphan.communicate()
    assert orphan.returncode == 0
    assert not made_of.fits(results, "fits", label)
    checkout.set_params("targets: [3.2, 2.9]", "targets: [3.1]")
    checkout.snakemake()
    fits = json.loads((results / "fits" / "a_0.5Mbs.json").read_text())
    assert [target["target"] for target in fits["targets"]] == [3.1]
