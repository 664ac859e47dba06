"""Every stage by its own script on a few logs in an empty folder, and what came out."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import yaml

STAGES = ("runs", "token_axis", "fits", "stability", "conventions", "passports", "comparison")


def pipeline(folder: Path, root: Path, logs: Mapping[str, str], **fits: Any) -> dict[str, dict[str, Any]]:
    """Write `logs` (name without ending -> text) and run the stages with the section `fits` changed.

    -> name -> {"fits", "stability", "passports": artifact}, and "page" -> {"html": the report}.
    """
    (folder / "logs").mkdir()
    for name, text in logs.items():
        (folder / "logs" / f"{name}_0.5Mbs.csv").write_text(text, encoding="utf-8")
    params = yaml.safe_load((root / "params.yaml").read_text(encoding="utf-8"))
    params |= {"sweep": "some", "logs": "logs"}
    params["fits"] |= fits
    (folder / "params.yaml").write_text(yaml.safe_dump(params), encoding="utf-8")
    for stage in STAGES:
        command = [sys.executable, str(root / "scripts" / f"{stage}.py")]
        done = subprocess.run(command, cwd=folder, capture_output=True, text=True, env=os.environ | {"PYTHONPATH": ""})
        assert done.returncode == 0, f"{stage}: {done.stdout}{done.stderr}"
    results = folder / "results" / "some"
    found: dict[str, dict[str, Any]] = {name: {} for name in logs}
    for stage in ("fits", "stability", "passports"):
        for path in (results / stage).glob("*.json"):
            found[path.stem.split("_0.5")[0]][stage] = json.loads(path.read_text(encoding="utf-8"))
    found["page"] = {"html": (results / "comparison" / "index.html").read_text(encoding="utf-8")}
    return found
