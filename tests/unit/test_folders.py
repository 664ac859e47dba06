"""Which folders of a sweep directory are entered."""

from __future__ import annotations

from pathlib import Path

import pytest

from tokenaxis.sweep.folders import walk
from tokenaxis.sweep.model import Discovery


def walked(root: Path) -> tuple[list[str], dict[str, str]]:
    found = Discovery()
    paths = sorted(path for path, _ in walk(root, [".*"], found))
    return paths, {entry["name"]: entry["reason"] for entry in found.passed_over}


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A working directory with results of an earlier start, and logs."""
    for name in ("results/mine/fits/run.json", "logs/a.csv", "logs/deep/b.csv", "README.md"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("x")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_results_beside_the_logs_are_no_logs(project: Path) -> None:
    paths, passed_over = walked(Path("."))
    assert paths == ["README.md", "logs/a.csv", "logs/deep/b.csv"]
    assert passed_over == {"results": "results of this pipeline"}


def test_a_sweep_directory_inside_results_is_entered(project: Path) -> None:
    assert walked(Path("results"))[0] == ["mine/fits/run.json"]
    assert walked(Path("results/mine"))[0] == ["fits/run.json"]


@pytest.mark.parametrize("target", ["..", "../..", "/"])
def test_a_link_back_up_is_not_followed(target: str, project: Path) -> None:
    (project / "logs" / "deep" / "up").symlink_to(project / "logs" / target)
    paths, passed_over = walked(Path("logs"))
    assert paths == ["a.csv", "deep/b.csv"]
    assert "holds the sweep directory" in passed_over["deep/up"]


def test_two_links_to_one_folder_are_entered_once(project: Path) -> None:
    (project / "elsewhere").mkdir()
    (project / "elsewhere" / "c.csv").write_text("x")
    for name in ("one", "two"):
        (project / "logs" / name).symlink_to(project / "elsewhere")
    assert len([path for path in walked(Path("logs"))[0] if path.endswith("c.csv")]) == 1
