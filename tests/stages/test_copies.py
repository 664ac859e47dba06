"""Files of the same bytes: which are copies of one log, and which are runs of their own that happen to be equal."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tokenaxis.sweep.declared import SweepDeclaration
from tokenaxis.sweep.discover import Discovery, discover

LOG = "step,train_loss\n" + "".join(f"{step},{4 - step / 100}\n" for step in range(50))


def found_among(folder: Path, *names: str, declared: SweepDeclaration | None = None, text: str = LOG) -> Discovery:
    for name in names:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text, encoding="utf-8")
    return discover(folder, declared or SweepDeclaration(), [])


def names_of(found: Discovery) -> set[str]:
    return {run.name for run in found.runs}


@pytest.mark.parametrize(
    "copy",
    [
        "deep/copy of run.csv",
        "run copy.csv",
        "run copy 2.csv",
        "run_copy.csv",
        "run - Copy.csv",
        "run (1).csv",
        "run(2).csv",
        "run.csv.bak",
        "run_old.csv",
        "run.txt",
        "backup/run.csv",
        "logs copy/run.csv",
    ],
)
def test_a_file_whose_name_calls_it_a_copy_is_no_run_and_noted(copy: str, tmp_path: Path) -> None:
    found = found_among(tmp_path, "run.csv", copy)
    assert names_of(found) == {"run.csv"}
    assert found.passed_over == [{"name": copy, "reason": "same bytes as run.csv"}]
    assert found.notices == []


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("run_0.5Mbs.csv", "run_1Mbs.csv"),  # another batch
        ("run_0.5Mbs.csv", "run_0.5Mbs_copy_1Mbs.csv"),  # calls itself a copy, and states more than one batch
        ("run_0.5Mbs.csv", "unknown/run.csv"),  # no batch at all
        ("run_0.5Mbs.csv", "run_1.2.3Mbs.csv"),  # a malformed one, which must be refused
        ("a/run.csv", "b/run.csv"),
        ("Run.csv", "run.csv"),
        ("seed-1.csv", "seed-2.csv"),
        ("copyright.csv", "oldest.csv"),  # words that only begin like one for a copy
    ],
)
def test_what_a_name_makes_a_run_of_its_own_stays_one_and_both_are_named(one: str, other: str, tmp_path: Path) -> None:
    found = found_among(tmp_path, one, other)
    assert names_of(found) == {one, other}
    assert found.passed_over == []
    ids = {run.id for run in found.runs}
    (noted,) = [run for run in found.runs if run.same_bytes_as is not None]
    assert noted.same_bytes_as in ids - {noted.id}
    assert noted.as_record()["same_bytes_as"] == noted.same_bytes_as
    (notice,) = found.notices
    assert notice["code"] == "same_bytes"
    assert notice["message"].startswith(f"1 run has the same bytes as another: {noted.id} = {noted.same_bytes_as}")


def test_a_copy_for_which_something_else_is_declared_is_a_run_of_its_own(tmp_path: Path) -> None:
    entries: tuple[tuple[str, dict[str, Any]], ...] = (("*", {"tokens_per_step": 100}),)
    names = ("run.csv", "run copy.csv")
    assert names_of(found_among(tmp_path, *names, declared=SweepDeclaration(entries=entries))) == {"run.csv"}
    entries += (("run copy.csv", {"tokens_per_step": 200}),)
    assert names_of(found_among(tmp_path, *names, declared=SweepDeclaration(entries=entries))) == set(names)


def test_a_folder_all_of_whose_logs_stand_in_another_under_the_same_names_is_a_copy(tmp_path: Path) -> None:
    found_among(tmp_path, "sweep/a.csv", "sweep2/a.csv")
    found = found_among(tmp_path, "sweep/x/b.csv", "sweep2/x/b.csv", text=LOG + "50,3.0\n")
    assert names_of(found) == {"sweep/a.csv", "sweep/x/b.csv"}
    assert [entry["name"] for entry in found.passed_over] == ["sweep2/a.csv", "sweep2/x/b.csv"]
    assert "the folder sweep2 is a copy" in found.passed_over[0]["reason"]
    found = found_among(tmp_path, "sweep2/c.csv", text=LOG + "50,2.0\n")  # a log of its own: no copy of the other
    assert names_of(found) == {"sweep/a.csv", "sweep/x/b.csv", "sweep2/a.csv", "sweep2/x/b.csv", "sweep2/c.csv"}


def test_no_run_of_the_planted_cases_vanishes_where_they_are_one_sweep(cases: tuple[Path, dict]) -> None:
    """Most of them hold the same bytes; name_case_pair and name_same_stem expect two runs each."""
    folder, truth = cases
    logs = {file["path"] for case in truth.values() for file in case["files"] if file["path"].endswith(("csv", "gz"))}
    found = discover(folder, SweepDeclaration(), [])
    copies = [entry for entry in found.passed_over if "same bytes" in entry["reason"]]
    assert copies == []
    read = {file.path for run in found.runs for file in run.files}
    refused = {entry["name"] for entry in found.refused}
    assert {path for path in logs if path not in read and path not in refused} <= {
        entry["name"] for entry in found.passed_over
    }
    assert sum("name_case_pair/" in path for path in read) == 2
    assert sum("name_same_stem/" in path for path in read) == 2
    assert {path.split("/")[0] for path in read} >= {"batch_unknown", "batch_malformed"}
