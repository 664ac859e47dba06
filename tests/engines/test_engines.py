"""Both engines run the same stages: same bytes, nothing twice, nothing missed."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable

from .conftest import Checkout, write_log

Copy = Callable[[Checkout], Checkout]


def changed(before: dict[str, int], after: dict[str, int]) -> set[str]:
    """Artifacts that were written again, are new, or are gone."""
    return {name for name in before.keys() | after.keys() if before.get(name) != after.get(name)}


def of_stage(names: set[str], stage: str) -> set[str]:
    return {name for name in names if name.startswith(f"{stage}/")}


def test_both_engines_give_the_same_bytes(made_by_snakemake: Checkout, made_by_dvc: Checkout) -> None:
    ours, theirs = made_by_snakemake.artifacts(), made_by_dvc.artifacts()
    assert ours.keys() == theirs.keys()
    assert not [name for name in ours if ours[name] != theirs[name]]


def test_every_run_has_every_artifact(made_by_snakemake: Checkout) -> None:
    runs = json.loads((made_by_snakemake.results / "runs.json").read_text())
    assert len(runs["runs"]) == 4
    for run in runs["runs"]:
        for name in ("token_axis/{}.parquet", "fits/{}.json", "stability/{}.parquet", "stability/{}.json",
                     "conventions/{}.json", "passports/{}.json", "passports/{}.md"):  # fmt: skip
            assert (made_by_snakemake.results / name.format(run["id"])).exists(), name.format(run["id"])
    assert (made_by_snakemake.results / "comparison" / "index.html").exists()


def test_a_broken_log_is_refused_by_name_and_stops_nothing(made_by_snakemake: Checkout) -> None:
    refused = json.loads((made_by_snakemake.results / "runs.json").read_text())["refused"]
    assert [item["name"] for item in refused] == ["broken_0.5Mbs.csv"]
    assert "no row" in refused[0]["reason"]


def test_no_file_name_reaches_a_shell(made_by_snakemake: Checkout) -> None:
    assert not list(made_by_snakemake.path.rglob("PWNED"))


def test_no_artifact_names_this_machine(made_by_snakemake: Checkout) -> None:
    place = str(made_by_snakemake.path).encode()
    assert not [name for name, content in made_by_snakemake.artifacts().items() if place in content]


def test_after_snakemake_dvc_recomputes_nothing(made_by_snakemake: Checkout, copy_of: Copy) -> None:
    checkout = copy_of(made_by_snakemake)
    before = checkout.times()
    checkout.dvc()
    assert not changed(before, checkout.times())


def test_after_dvc_snakemake_recomputes_nothing(made_by_dvc: Checkout, copy_of: Copy) -> None:
    checkout = copy_of(made_by_dvc)
    before = checkout.times()
    checkout.snakemake()
    assert not changed(before, checkout.times())


def test_a_second_snakemake_has_no_job(made_by_snakemake: Checkout, copy_of: Copy) -> None:
    checkout = copy_of(made_by_snakemake)
    checkout.snakemake()  # a copy has new inodes: the first run looks again, and finds everything current
    assert "Nothing to be done" in checkout.snakemake().stderr


def test_one_longer_log_recomputes_one_run(
    made_by_snakemake: Checkout, made_by_dvc: Checkout, copy_of: Copy, tmp_path
) -> None:
    for made, engine in ((made_by_snakemake, Checkout.snakemake), (made_by_dvc, Checkout.dvc)):
        checkout = copy_of(made)
        write_log(checkout.logs / "a_0.5Mbs.csv", seed=0, rows=450)
        before = checkout.times()
        engine(checkout)
        written = {name for name in changed(before, checkout.times()) if not name.startswith("comparison/")}
        assert {name.split("/")[1].split(".parquet")[0].split(".json")[0].split(".md")[0] for name in written} == {
            "a_0.5Mbs"
        }
        assert len(written) == 7, "every artifact of the run is made again"
        shutil.rmtree(tmp_path / "copy")


def test_a_changed_target_recomputes_fits_but_not_token_axes(
    made_by_snakemake: Checkout, made_by_dvc: Checkout, copy_of: Copy, tmp_path
) -> None:
    for made, engine in ((made_by_snakemake, Checkout.snakemake), (made_by_dvc, Checkout.dvc)):
        checkout = copy_of(made)
        checkout.set_params("targets: [3.2, 2.9]", "targets: [3.2, 2.8]")
        before = checkout.times()
        engine(checkout)
        written = changed(before, checkout.times())
        assert not of_stage(written, "token_axis")
        assert len(of_stage(written, "fits")) == 4
        shutil.rmtree(tmp_path / "copy")


def test_a_removed_log_vanishes_from_the_results(
    made_by_snakemake: Checkout, made_by_dvc: Checkout, copy_of: Copy, tmp_path
) -> None:
    for made, engine in ((made_by_snakemake, Checkout.snakemake), (made_by_dvc, Checkout.dvc)):
        checkout = copy_of(made)
        (checkout.logs / "b_0.25Mbs.csv").unlink()
        engine(checkout)
        assert not [name for name in checkout.artifacts() if "b_0.25Mbs" in name.split("comparison/")[-1]]
        page = (checkout.results / "comparison" / "index.html").read_text()
        assert "a_0.5Mbs" in page and "b_0.25Mbs" not in page
        shutil.rmtree(tmp_path / "copy")


def test_a_changed_parameter_is_not_missed_in_a_fresh_clone(made_by_snakemake: Checkout, copy_of: Copy) -> None:
    checkout = copy_of(made_by_snakemake)
    shutil.rmtree(checkout.path / ".snakemake")  # a clone with pulled results has no memory of jobs
    checkout.set_params("targets: [3.2, 2.9]", "targets: [3.2, 2.8]")
    checkout.snakemake()
    fits = json.loads((checkout.results / "fits" / "a_0.5Mbs.json").read_text())
    assert [target["target"] for target in fits["targets"]] == [3.2, 2.8]


def test_a_deleted_artifact_comes_back_and_the_others_stay(made_by_snakemake: Checkout, copy_of: Copy) -> None:
    checkout = copy_of(made_by_snakemake)
    checkout.snakemake()
    before, content = checkout.times(), checkout.artifacts()
    (checkout.results / "token_axis" / "a_0.5Mbs.parquet").unlink()
    checkout.snakemake()
    assert checkout.artifacts() == content
    assert of_stage(changed(before, checkout.times()), "token_axis") == {"token_axis/a_0.5Mbs.parquet"}


def test_one_run_of_one_stage_is_a_target(checkout: Checkout) -> None:
    checkout.snakemake("results/planted/fits/a_0.5Mbs.json")
    assert set(checkout.times()) == {"token_axis/a_0.5Mbs.parquet", "fits/a_0.5Mbs.json"}


def test_the_command_line_names_another_directory(checkout: Checkout) -> None:
    shutil.move(checkout.logs, checkout.path / "my logs")
    checkout.snakemake("--config", "logs=my logs", "sweep=other")
    assert (checkout.path / "results" / "other" / "comparison" / "index.html").exists()
    assert not checkout.results.exists()


def test_an_unknown_parameter_is_one_line_and_status_2(checkout: Checkout) -> None:
    checkout.set_params("  law: auto", "  lwa: auto")
    for run in (checkout.snakemake(check=False), checkout.run("python", "scripts/fits.py", check=False)):
        assert run.returncode == 2
        assert "lwa" in run.stderr and "Traceback" not in run.stderr


def test_strict_turns_a_refusal_into_a_failure(checkout: Checkout) -> None:
    checkout.set_params("strict: false", "strict: true")
    run = checkout.snakemake(check=False)
    assert run.returncode != 0
    assert "broken_0.5Mbs.csv" in run.stderr
