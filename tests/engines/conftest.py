"""A checkout of its own for each test that runs an engine, with a small sweep of planted logs."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest

#: the folders whose files users see; everything below .engine is state
STAGE_FOLDERS = ("token_axis", "fits", "stability", "conventions", "passports", "comparison")


def write_log(path: Path, *, seed: int, rows: int = 400, batch: int = 500_000) -> None:
    """A CSV whose loss follows 2 + 0.6 (tokens/1e9)^-0.35 plus noise of 0.01, after a warm-up of 20 steps."""
    step = np.arange(1, rows + 1)
    tokens = step * float(batch)
    loss = 2 + 0.6 * (tokens / 1e9) ** -0.35 + 0.01 * np.random.default_rng(seed).standard_normal(rows)
    lr = 1e-3 * np.minimum(1, step / 20)
    lines = [f"{s},{x:.6f},{r:.6g}" for s, x, r in zip(step, loss, lr, strict=True)]
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("step,train_loss,lr\n" + "\n".join(lines) + "\n", encoding="utf-8")


def environment() -> dict[str, str]:
    """This interpreter's programs first on PATH, nothing of this test run in the way."""
    ours = os.environ | {"PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"}
    ours.pop("PYTHONPATH", None)
    return ours


@pytest.fixture
def unprivileged() -> list[str]:
    """The beginning of a command that must obey file modes: root ignores them, unless it gives up a capability."""
    if os.geteuid() != 0:
        return []
    if shutil.which("setpriv") is None:
        pytest.skip("as root this needs setpriv (Debian: util-linux), which gives up the right to ignore file modes")
    return ["setpriv", "--bounding-set=-dac_override,-dac_read_search,-fowner"]


@dataclass
class Checkout:
    """A copy of the project with the sweep `planted` in logs/."""

    path: Path

    @property
    def logs(self) -> Path:
        return self.path / "logs"

    @property
    def results(self) -> Path:
        return self.path / "results" / "planted"

    def run(self, *command: str, check: bool = True) -> subprocess.CompletedProcess[str]:
        """Run a command in the checkout with this interpreter's environment first on PATH."""
        result = subprocess.run(command, cwd=self.path, capture_output=True, text=True, env=environment())
        if check:
            assert result.returncode == 0, f"{command} ended with {result.returncode}\n{result.stdout}\n{result.stderr}"
        return result

    def snakemake(self, *options: str, check: bool = True) -> subprocess.CompletedProcess[str]:
        return self.run("snakemake", "--cores", "2", *options, check=check)

    def dvc(self, *options: str, check: bool = True) -> subprocess.CompletedProcess[str]:
        return self.run("dvc", *(options or ("repro",)), check=check)

    def set_params(self, old: str, new: str) -> None:
        """Replace text in params.yaml."""
        text = (self.path / "params.yaml").read_text(encoding="utf-8")
        assert text.count(old) == 1, f"{old!r} stands {text.count(old)} times in params.yaml"
        (self.path / "params.yaml").write_text(text.replace(old, new), encoding="utf-8")

    def artifacts(self) -> dict[str, bytes]:
        """Relative path -> content of everything that users see."""
        return {str(path.relative_to(self.results)): path.read_bytes() for path in self.files()}

    def files(self) -> list[Path]:
        """Everything that users see, sorted; temporary files that killed writers left do not count."""
        files = [self.results / "runs.json"]
        for folder in STAGE_FOLDERS:
            files += (self.results / folder).rglob("*")
        return sorted(path for path in files if path.is_file() and ".tmp-" not in path.name)

    def times(self) -> dict[str, int]:
        """Relative path -> mtime of the per-run artifacts."""
        return {
            str(path.relative_to(self.results)): path.stat().st_mtime_ns
            for folder in STAGE_FOLDERS
            for path in sorted((self.results / folder).rglob("*"))
            if path.is_file()
        }


@pytest.fixture(scope="session")
def template(root: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The checkout's files (tracked, and new ones that git would take), with four planted logs and one broken."""
    folder = tmp_path_factory.mktemp("template") / "checkout"
    listed = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        cwd=root,
        capture_output=True,
        check=True,
    )
    for name in filter(None, listed.stdout.decode().split("\0")):
        if (root / name).is_file() and not name.startswith(("tests/", "sweeps/")):
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(root / name, folder / name)
    for number, name in enumerate(
        ("a_0.5Mbs.csv", "b_0.25Mbs.csv", "deep/c_0.5Mbs.csv", "d 'quoted' $(touch PWNED)_0.5Mbs.csv")
    ):
        write_log(folder / "logs" / name, seed=number, batch=250_000 if name.startswith("b") else 500_000)
    (folder / "logs" / "broken_0.5Mbs.csv").write_text("step,train_loss\n", encoding="utf-8")
    params = (folder / "params.yaml").read_text(encoding="utf-8")
    params = params.replace("sweep: tiny-gpt", "sweep: planted").replace("logs: sweeps/tiny-gpt", "logs: logs")
    params = params.replace("  targets: auto", "  targets: [3.2, 2.9]")
    (folder / "params.yaml").write_text(params, encoding="utf-8")
    subprocess.run(["git", "init", "-q"], cwd=folder, check=True)  # dvc wants a repository
    return folder


@pytest.fixture
def checkout(template: Path, tmp_path: Path) -> Checkout:
    """A fresh copy of the template."""
    shutil.copytree(template, tmp_path / "checkout", symlinks=True)
    return Checkout(tmp_path / "checkout")


@pytest.fixture(scope="session")
def made_by_snakemake(template: Path, tmp_path_factory: pytest.TempPathFactory) -> Checkout:
    """A checkout after `snakemake --cores 2`; tests copy it and leave it alone."""
    folder = tmp_path_factory.mktemp("snakemake") / "checkout"
    shutil.copytree(template, folder, symlinks=True)
    made = Checkout(folder)
    made.snakemake()
    return made


@pytest.fixture(scope="session")
def made_by_dvc(template: Path, tmp_path_factory: pytest.TempPathFactory) -> Checkout:
    """A checkout after `dvc repro`; tests copy it and leave it alone."""
    folder = tmp_path_factory.mktemp("dvc") / "checkout"
    shutil.copytree(template, folder, symlinks=True)
    made = Checkout(folder)
    made.dvc()
    return made


@pytest.fixture
def copy_of(tmp_path: Path):
    """Copies a finished checkout, times included."""

    def copy(made: Checkout) -> Checkout:
        shutil.copytree(made.path, tmp_path / "copy", symlinks=True)
        return Checkout(tmp_path / "copy")

    return copy
