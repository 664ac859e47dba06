"""Digests of runs: they save reading, and nothing else. Whatever is wrong with them, the comparison is the same."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from tests.unit.test_comparison_fake_sweep import PARAMS, make_run, make_sweep
from tests.unit.test_comparison_make import contents
from tokenaxis.comparison import RunResult, Source, Sweep, keeping, make, shelf
from tokenaxis.comparison.files import write
from tokenaxis.comparison.model import Source as ModelSource

SVG_ONLY = PARAMS | {"figures": ["svg"]}


class Artifacts:
    """A sweep whose artifacts count how often they are read."""

    def __init__(self, sweep: Sweep):
        self.sweep = sweep
        self.keys = {run.id: "1" for run in sweep.runs}
        self.read: list[str] = []

    def sources(self) -> list[Source]:
        def load(run: RunResult) -> RunResult:
            self.read.append(run.id)
            return run

        return [ModelSource(run.id, run.name, self.keys[run.id], lambda run=run: load(run)) for run in self.sweep.runs]

    def compared(self, folder: Path, code: str = "code", params: dict = SVG_ONLY) -> dict[str, bytes]:
        """The comparison's files by name."""
        self.read.clear()
        out = folder / "comparison"
        make(self.sweep, params, out, "f" * 64, sources=self.sources(), digests=folder / "digests", code=code)
        return contents(out)


@pytest.fixture
def artifacts() -> Artifacts:
    return Artifacts(make_sweep())


@pytest.fixture(scope="module")
def expected(tmp_path_factory: pytest.TempPathFactory) -> dict[str, bytes]:
    """The comparison that knows no digests."""
    folder = tmp_path_factory.mktemp("expected")
    make(make_sweep(), SVG_ONLY, folder, "f" * 64)
    return contents(folder)


@pytest.fixture(scope="module")
def compared_once(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("once")
    Artifacts(make_sweep()).compared(folder)
    return folder


@pytest.fixture
def folder(compared_once: Path, tmp_path: Path) -> Path:
    """A folder in which `artifacts` have been compared before."""
    return Path(shutil.copytree(compared_once, tmp_path / "copy"))


def digest_files(folder: Path) -> list[Path]:
    return sorted((folder / "digests").glob("*.digests"))


def test_without_digests_every_run_is_read_and_the_bytes_are_the_same(
    artifacts: Artifacts, expected: dict[str, bytes], tmp_path: Path
) -> None:
    assert artifacts.compared(tmp_path) == expected
    assert sorted(artifacts.read) == sorted(artifacts.keys)


def test_with_digests_no_run_is_read_and_the_bytes_are_the_same(
    artifacts: Artifacts, folder: Path, expected: dict[str, bytes]
) -> None:
    shutil.rmtree(folder / "comparison")
    assert artifacts.compared(folder) == expected
    assert artifacts.read == []


def test_only_the_run_that_changed_is_read(artifacts: Artifacts, folder: Path, tmp_path: Path) -> None:
    changed = make_run("gpt_8Kbs", 8000, seed=33)
    runs = [changed if run.id == changed.id else run for run in artifacts.sweep.runs]
    artifacts.sweep = replace(artifacts.sweep, runs=runs)
    artifacts.keys[changed.id] = "2"
    found = artifacts.compared(folder)
    assert artifacts.read == [changed.id]
    fresh = tmp_path / "fresh"
    make(artifacts.sweep, SVG_ONLY, fresh, "f" * 64)
    assert found == contents(fresh)


def test_runs_that_come_and_go_leave_the_others_digests_as_they_are(
    artifacts: Artifacts, folder: Path, tmp_path: Path
) -> None:
    new = make_run("gpt_new", 4000, seed=12)
    artifacts.sweep = replace(artifacts.sweep, runs=[*artifacts.sweep.runs[1:], new])
    artifacts.keys[new.id] = "1"
    found = artifacts.compared(folder)
    assert artifacts.read == [new.id]
    make(artifacts.sweep, SVG_ONLY, tmp_path / "fresh", "f" * 64)
    assert found == contents(tmp_path / "fresh")
    (kept,) = digest_files(folder)
    assert b"gpt_2Kbs" not in kept.read_bytes(), "the digest of a run that is gone goes as well"


def cut_off(file: Path) -> None:
    file.write_bytes(file.read_bytes()[:-100])


def emptied(file: Path) -> None:
    file.write_bytes(b"")


def one_digit_edited(file: Path) -> None:
    content = file.read_bytes()
    assert b'"exponent":0.55' in content
    file.write_bytes(content.replace(b'"exponent":0.55', b'"exponent":0.66'))


def one_byte_of_a_number_edited(file: Path) -> None:
    content = bytearray(file.read_bytes())
    content[-1000] ^= 1
    file.write_bytes(content)


def another_program(file: Path) -> None:
    file.write_text('{"this": "is no digest"}\n[1, 2, 3]\n')


def deleted(file: Path) -> None:
    file.unlink()


@pytest.mark.parametrize(
    "harm", [cut_off, emptied, one_digit_edited, one_byte_of_a_number_edited, another_program, deleted]
)
def test_a_damaged_or_edited_file_of_digests_is_made_again(
    harm: Callable[[Path], None], artifacts: Artifacts, folder: Path, expected: dict[str, bytes]
) -> None:
    (file,) = digest_files(folder)
    harm(file)
    assert artifacts.compared(folder) == expected
    assert len(artifacts.read) == len(artifacts.keys)
    artifacts.compared(folder)
    assert artifacts.read == [], "and is whole again"


@pytest.mark.parametrize("change", [{"smooth_half_width": 0.2}, {"hindsight_horizons": [1.5]}])
def test_digests_of_other_parameters_are_not_used(
    change: dict, artifacts: Artifacts, folder: Path, tmp_path: Path
) -> None:
    found = artifacts.compared(folder, params=SVG_ONLY | change)
    assert len(artifacts.read) == len(artifacts.keys)
    make(artifacts.sweep, SVG_ONLY | change, tmp_path / "fresh", "f" * 64)
    assert found == contents(tmp_path / "fresh")


def test_digests_of_other_code_are_not_used(artifacts: Artifacts, tmp_path: Path) -> None:
    artifacts.compared(tmp_path, code="before")
    artifacts.compared(tmp_path, code="after")
    assert len(artifacts.read) == len(artifacts.keys)


def test_a_run_whose_artifacts_have_no_key_is_always_read(artifacts: Artifacts, tmp_path: Path) -> None:
    artifacts.keys["gpt_4Kbs"] = None
    artifacts.compared(tmp_path)
    artifacts.compared(tmp_path)
    assert artifacts.read == ["gpt_4Kbs"]


def test_many_runs_are_in_few_files_and_stay_in_theirs(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(shelf, "RUNS_PER_FILE", 4)
    runs = [make_run(f"run{number}", 16000, 4e5, seed=number, targets=(2.4,)) for number in range(14)]
    artifacts = Artifacts(Sweep("s", runs))
    artifacts.compared(tmp_path)
    files = digest_files(tmp_path)
    assert [file.name for file in files] == [f"00{number}-of-004.digests" for number in range(4)]
    times = {file: file.stat().st_mtime_ns for file in files}
    artifacts.keys["run3"] = "2"
    artifacts.compared(tmp_path)
    assert artifacts.read == ["run3"]
    assert sum(file.stat().st_mtime_ns != times[file] for file in files) == 1
    # 17 runs need eight files: those of another number go, and so does what a killed comparison left
    (tmp_path / "digests" / ".000-of-008.digests.tmp-1").write_bytes(b"half")
    more = [make_run(f"more{number}", 16000, 4e5, seed=number, targets=(2.4,)) for number in range(3)]
    grown = Artifacts(Sweep("s", [*runs, *more]))
    found = grown.compared(tmp_path)
    names = set(os.listdir(tmp_path / "digests"))
    assert names > {"figures.json"} and all(name.endswith("-of-008.digests") for name in names - {"figures.json"})
    make(grown.sweep, SVG_ONLY, tmp_path / "fresh", "f" * 64)
    assert found == contents(tmp_path / "fresh")


def test_hostile_names_survive_a_digest(tmp_path: Path) -> None:
    from tests.stages.test_page import hostile_sweep

    artifacts = Artifacts(hostile_sweep())
    artifacts.compared(tmp_path)
    found = artifacts.compared(tmp_path)
    assert artifacts.read == []
    make(hostile_sweep(), SVG_ONLY, tmp_path / "fresh", "f" * 64)
    assert found == contents(tmp_path / "fresh")


def test_figures_whose_data_are_the_same_are_not_drawn_again(
    artifacts: Artifacts, folder: Path, expected: dict[str, bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    times = {path: path.stat().st_mtime_ns for path in (folder / "comparison").rglob("*") if path.is_file()}

    def drawn(*_: object) -> bytes:
        raise AssertionError("a figure is drawn")

    monkeypatch.setattr(keeping, "rendered", drawn)
    assert artifacts.compared(folder) == expected
    assert {path: path.stat().st_mtime_ns for path in times} == times, "and no file that is the same is written"


@pytest.mark.parametrize("name", ["figures/loss.svg", "figures/targets.svg"])
def test_a_figure_that_was_edited_or_deleted_comes_back(
    name: str, artifacts: Artifacts, folder: Path, expected: dict[str, bytes]
) -> None:
    (folder / "comparison" / name).write_bytes(expected[name].replace(b"tokens", b"kilos"))
    assert artifacts.compared(folder) == expected
    (folder / "comparison" / name).unlink()
    assert artifacts.compared(folder) == expected


def test_what_is_known_of_figures_is_believed_only_as_it_was_written(
    artifacts: Artifacts, folder: Path, expected: dict[str, bytes]
) -> None:
    note = folder / "digests" / shelf.FIGURES
    note.write_bytes(note.read_bytes().replace(b"Smoothed train loss", b"Smoothed val loss"))
    assert artifacts.compared(folder) == expected


def test_figures_of_other_code_or_another_matplotlib_are_drawn(
    artifacts: Artifacts, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    drawn: list[str] = []
    rendered = keeping.rendered
    monkeypatch.setattr(keeping, "rendered", lambda figure, kind: drawn.append(kind) or rendered(figure, kind))
    artifacts.compared(tmp_path)
    all_of_them = len(drawn)
    artifacts.compared(tmp_path)
    assert len(drawn) == all_of_them
    artifacts.compared(tmp_path, code="other")
    assert len(drawn) == 2 * all_of_them
    monkeypatch.setattr(keeping, "matplotlib_version", lambda: "99")
    artifacts.compared(tmp_path, code="other")
    assert len(drawn) == 3 * all_of_them


def test_figures_that_are_not_kept_as_svg_are_drawn_for_the_page(artifacts: Artifacts, tmp_path: Path) -> None:
    artifacts.compared(tmp_path, params=PARAMS | {"figures": ["png"]})
    again = artifacts.compared(tmp_path, params=PARAMS | {"figures": ["png"]})
    make(artifacts.sweep, PARAMS | {"figures": ["png"]}, tmp_path / "fresh", "f" * 64)
    assert again == contents(tmp_path / "fresh")


def test_a_file_is_replaced_only_by_another_content(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    write(path, b"one\n")
    os.utime(path, (1, 1))
    write(path, b"one\n")
    assert path.stat().st_mtime == 1
    write(path, b"two\n")
    assert path.read_bytes() == b"two\n" and path.stat().st_mtime != 1
    assert os.listdir(tmp_path) == ["a.csv"]


def test_the_key_of_a_run_changes_with_each_of_its_artifacts(tmp_path: Path) -> None:
    """A digest of an artifact that was edited by hand must not outlive the repair, which has the same fingerprint."""
    from tokenaxis.pipeline.work import Work
    from tokenaxis.stages import comparison as stage

    work = Work("s", tmp_path, tmp_path, {}, [], {})
    run = {"id": "a", "name": "a.csv"}
    files = [tmp_path / folder / f"a.{suffix}" for folder, suffix in stage.READ]
    for file in files:
        file.parent.mkdir(exist_ok=True)
        file.write_text(json.dumps({}))
    keys = [stage._source(work, run, "f").key]
    for file in files:
        os.utime(file, ns=(5, 5))
        keys.append(stage._source(work, run, "f").key)
    keys.append(stage._source(work, run, "g").key)
    files[0].unlink()
    keys.append(stage._source(work, run, "g").key)
    assert len(set(keys)) == len(keys) == 8
