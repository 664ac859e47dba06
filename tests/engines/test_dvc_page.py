"""docs/dvc.md, run as it stands."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest

from .conftest import Checkout, environment

BLOCK = re.compile(r"^```sh\n(.*?)^```$", re.MULTILINE | re.DOTALL)


@pytest.fixture(scope="module")
def session(root: Path, template: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """First line of a block -> what the block printed."""
    folder = tmp_path_factory.mktemp("page") / "checkout"
    subprocess.run(["cp", "-r", str(template), str(folder)], check=True)
    git = ["git", "-c", "user.name=Test", "-c", "user.email=test@example.org"]
    subprocess.run([*git, "add", "--all"], cwd=folder, check=True)
    subprocess.run([*git, "commit", "--quiet", "--message", "start"], cwd=folder, check=True)
    ours = environment() | {f"GIT_{role}_{what}": value for role in ("AUTHOR", "COMMITTER")
                            for what, value in (("NAME", "Test"), ("EMAIL", "test@example.org"))}  # fmt: skip
    printed = {}
    for block in BLOCK.findall((root / "docs" / "dvc.md").read_text(encoding="utf-8")):
        run = subprocess.run(["bash", "-ec", block], cwd=folder, env=ours, capture_output=True, text=True)
        assert run.returncode == 0, f"{block}\n{run.stdout}\n{run.stderr}"
        printed[block.splitlines()[0]] = run.stdout + run.stderr
    return printed | {"folder": str(folder)}


def per_run(checkout: Checkout) -> set[str]:
    return {name for name in checkout.artifacts() if not name.startswith("comparison/")}


def test_a_clone_that_pulled_has_nothing_to_compute(session: dict[str, str]) -> None:
    said = session["git clone --quiet . ../colleague"]
    assert "Data and pipelines are up to date." in said
    assert "Running stage" not in said
    ours, theirs = Checkout(Path(session["folder"])), Checkout(Path(session["folder"]).parent / "colleague")
    assert per_run(theirs) == per_run(ours)  # figures depend on the targets, which later blocks change here
    assert "comparison/index.html" in theirs.artifacts()


def test_changes_of_parameters_and_answers_are_shown(session: dict[str, str]) -> None:
    said = next(text for line, text in session.items() if line.startswith("sed"))
    assert re.search(r"params\.yaml\s+fits\.interval_level\s+0\.9\s+0\.8", said)
    assert "metrics.json" in said


def test_plots_are_drawn(session: dict[str, str]) -> None:
    page = (Path(session["folder"]) / "dvc_plots" / "index.html").read_text(encoding="utf-8")
    assert "vega" in page and "a_0.5Mbs" in page


def test_an_experiment_with_other_targets_is_listed(session: dict[str, str]) -> None:
    said = next(text for line, text in session.items() if line.startswith("dvc exp run"))
    assert "lower" in said and "[1.5, 1.4]" in said
