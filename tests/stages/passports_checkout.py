"""A checkout of its own with the per-run stages run on some logs, for tests of scripts that read passports."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

STAGES = ("runs", "token_axis", "fits", "stability", "conventions", "passports")


@dataclass
class Checkout:
    """A copy of the project with one sweep."""

    path: Path
    sweep: str

    @property
    def results(self) -> Path:
        return self.path / "results" / self.sweep

    def script(self, name: str, *arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
        """Run scripts/<name>.py in the checkout."""
        command = [sys.executable, f"scripts/{name}.py", *arguments]
        clean = {key: value for key, value in os.environ.items() if not key.startswith("WANDB_")}
        clean.pop("PYTHONPATH", None)
        return subprocess.run(command, cwd=self.path, capture_output=True, text=True, env=clean | environment)

    def run_stages(self) -> str:
        """All per-run stages. -> what they said."""
        said = ""
        for stage in STAGES:
            done = self.script(stage)
            assert done.returncode == 0, done.stderr
            said += done.stderr
        return said

    def passport(self, run: str) -> dict[str, Any]:
        return json.loads((self.results / "passports" / f"{run}.json").read_text(encoding="utf-8"))

    def markdown(self, run: str) -> str:
        return (self.results / "passports" / f"{run}.md").read_text(encoding="utf-8")


def make(root: Path, folder: Path, sweep: str, logs: Mapping[str, Path], declared: str | None = None) -> Checkout:
    """Copy the code, put `logs` (path below the sweep directory -> file) and the declaration in place."""
    for part in ("workflow", "scripts", "configs"):
        shutil.copytree(root / part, folder / part, ignore=shutil.ignore_patterns("__pycache__", "*.tmp-*"))
    params = (root / "params.yaml").read_text(encoding="utf-8")
    params = params.replace("sweep: tiny-gpt", f"sweep: {sweep}").replace("logs: sweeps/tiny-gpt", "logs: logs")
    (folder / "params.yaml").write_text(params, encoding="utf-8")
    for name, source in logs.items():
        (folder / "logs" / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(source, folder / "logs" / name)
    if declared is not None:
        (folder / "configs" / "sweeps" / f"{sweep}.yaml").write_text(declared, encoding="utf-8")
    return Checkout(folder, sweep)
