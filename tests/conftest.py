"""Fixtures shared by every test."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
SHARED = ROOT.parent / "shared"


@pytest.fixture(scope="session")
def root() -> Path:
    """The checkout."""
    return ROOT


@pytest.fixture(scope="session")
def shared() -> Path:
    """The material beside the checkout: public logs, generator of planted cases, reference documents."""
    if not SHARED.is_dir():
        pytest.skip("../shared is absent: the public logs and the planted cases are not part of the project")
    return SHARED


@pytest.fixture(scope="session")
def cases(shared: Path, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict]:
    """(folder, truth) of the logs with a known answer, generated afresh."""
    folder = tmp_path_factory.mktemp("cases")
    subprocess.run(
        [sys.executable, str(shared / "cases" / "make_cases.py"), str(folder)], check=True, capture_output=True
    )
    return folder, json.loads((folder / "truth.json").read_text(encoding="utf-8"))["cases"]


@pytest.fixture(scope="session")
def reference_script(shared: Path) -> Path:
    """The user's own target-loss script."""
    return shared / "reference" / "target_loss.py"
