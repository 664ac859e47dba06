"""The pipeline in a directory of one's own: the clone is only read, wherever it is and whatever its path is called."""

from __future__ import annotations

import shutil
import stat
from pathlib import Path

import pytest

from .conftest import Checkout

#: what a shell, a format string or a careless split would stumble over
ODD = "clönes of {shard} $(touch PWNED) 'n' more"


@pytest.fixture
def clone(template: Path, tmp_path: Path):
    """A clone that nobody may write to, below a folder with an odd name."""
    folder = tmp_path / ODD / "tokenaxis"
    shutil.copytree(template, folder, symlinks=True)
    for path in sorted(folder.rglob("*"), reverse=True):
        path.chmod(path.stat().st_mode & ~0o222)
    folder.chmod(0o555)
    yield folder
    for path in [folder, *folder.rglob("*")]:
        path.chmod(path.stat().st_mode | stat.S_IWUSR)  # or pytest cannot tidy up


@pytest.fixture
def own(clone: Path, tmp_path: Path) -> Checkout:
    """A directory that holds nothing but a folder of logs."""
    folder = tmp_path / "mein Verzeichnis {run}"
    shutil.copytree(clone / "logs", folder / "my logs é")
    return Checkout(folder)


def snakemake(own: Checkout, unprivileged: list[str], *options: str):
    return own.run(*unprivileged, "snakemake", "--cores", "2", *options)


def test_a_read_only_clone_serves_a_directory_of_ones_own(
    own: Checkout, clone: Path, unprivileged: list[str], made_by_snakemake: Checkout
) -> None:
    elsewhere = Checkout(clone.parent)  # --directory is what leads to `own`, not where the command is given
    options = ("-s", f"{clone}/Snakefile", "--config", "logs=my logs é", "sweep=planted")
    snakemake(elsewhere, unprivileged, "--directory", str(own.path), *options)
    assert own.artifacts() == made_by_snakemake.artifacts()
    assert {path.name for path in own.path.iterdir()} == {"my logs é", "results", ".snakemake"}
    assert not list(clone.parent.parent.rglob("PWNED"))
    assert "Nothing to be done" in snakemake(own, unprivileged, *options).stderr


def test_parameters_of_ones_own_directory_win_over_the_clones(
    own: Checkout, clone: Path, unprivileged: list[str]
) -> None:
    text = (clone / "params.yaml").read_text(encoding="utf-8")
    (own.path / "params.yaml").write_text(
        text.replace("sweep: planted", "sweep: mine").replace("logs: logs", "logs: my logs é"), encoding="utf-8"
    )
    snakemake(own, unprivileged, "-s", f"{clone}/Snakefile", "--until", "runs")
    assert (own.path / "results" / "mine" / "runs.json").exists()


MODULE = """
rule mine:
    input:
        "results/planted/.engine/index/comparison/all.json",
    output:
        "copied.json",
    shell:
        "cp results/planted/comparison/summary.json {{output}}"


module tokenaxis:
    snakefile: {snakefile!r}
    config: {{"sweep": "planted", "logs": "my logs é"}}
{more}

use rule * from tokenaxis as tokenaxis_*
"""


def test_another_snakefile_uses_it_as_a_module(
    own: Checkout, clone: Path, unprivileged: list[str], made_by_snakemake: Checkout
) -> None:
    (own.path / "params.yaml").write_text("theirs: 1\n", encoding="utf-8")  # the other workflow's own
    (own.path / "Snakefile").write_text(MODULE.format(snakefile=str(clone / "Snakefile"), more=""), encoding="utf-8")
    snakemake(own, unprivileged)
    assert own.artifacts() == made_by_snakemake.artifacts()
    assert (own.path / "copied.json").read_bytes() == own.artifacts()["comparison/summary.json"]
    assert "Nothing to be done" in snakemake(own, unprivileged).stderr


def test_a_modules_prefix_is_refused_in_one_line(own: Checkout, clone: Path, unprivileged: list[str]) -> None:
    (own.path / "Snakefile").write_text(
        MODULE.format(snakefile=str(clone / "Snakefile"), more="    prefix: 'sub'\n"), encoding="utf-8"
    )
    run = own.run(*unprivileged, "snakemake", "--cores", "1", check=False)
    assert run.returncode == 2
    assert "prefix" in run.stderr and "Traceback" not in run.stderr
