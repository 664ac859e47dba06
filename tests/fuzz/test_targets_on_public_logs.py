"""scripts/target_loss.py on every public log, whole and cut at random bytes: no crash, no NaN, no broken promise."""

from __future__ import annotations

import contextlib
import gzip
import importlib.util
import io
import json
import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

#: logs that are cut off, and where the random numbers start
CUTS, SEED = 200, 20
#: a float's rounding
ROUNDING = 1e-9


@pytest.fixture(scope="module")
def script(root: Path):
    spec = importlib.util.spec_from_file_location("target_loss_script", root / "scripts" / "target_loss.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def logs(shared: Path) -> list[Path]:
    folder = shared / "logs"
    found = sorted(path for path in folder.rglob("*") if path.is_file() and path.suffix not in (".md", ".txt.license"))
    if not found:
        pytest.skip("../shared/logs is absent: the public logs are not part of the project")
    return found


def call(script: Any, root: Path, log: Path, targets: list[float]) -> tuple[int, dict[str, Any] | None, str]:
    """(exit status, the run's JSON or None, stderr); asked once more with a batch size where none is known."""
    asked = [str(log), "--json", "--stability-sweep", "--params", str(root / "params.yaml"), "--target"]
    for more in ([], ["--batch-size", "524288"]):
        out, err = io.StringIO(), io.StringIO()
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            status = script.main([*asked, *map(str, targets), *more])
        if status == 0 or "batch size" not in err.getvalue():
            break

    def refuse(constant: str) -> float:
        raise AssertionError(f"{constant} in the JSON of {log.name}")

    content = json.loads(out.getvalue(), parse_constant=refuse) if status == 0 else None
    return status, content and content["runs"][0], err.getvalue()


def complaints(run: dict[str, Any], tolerance: float) -> Iterator[str]:
    """What is wrong with an answer, whatever the log."""
    seen = run["observed"]["tokens"]
    verdicts = {entry["target"]: entry for entry in run["verdicts"]}
    for answer in run["targets"]:
        tokens, interval = answer["tokens"], answer["interval"]
        what = f"target {answer['target']} {answer['status']} at {tokens} of {seen} {interval}"
        if answer["status"] == "predicted":
            low, high = interval
            if not tokens > seen:
                yield f"predicted inside the log: {what}"
            if not (
                low <= tokens * (1 + ROUNDING) and (high is None or high >= tokens * (1 - ROUNDING)) and low >= seen
            ):
                yield f"not inside its interval, or the interval inside the log: {what}"
        elif answer["status"] == "reached":
            if tokens > seen or (interval is not None and not interval[0] <= tokens <= interval[1]):
                yield f"reached outside the log or its interval: {what}"
        elif not answer["reason"] or tokens is not None:
            yield f"no number and no reason: {what}"
        if verdicts[answer["target"]]["verdict"] == "CONVERGED":
            wide = answer["status"] != "predicted" or interval[1] is None
            if wide or math.log(interval[1] / tokens) > math.log1p(tolerance) * (1 + ROUNDING):
                yield f"CONVERGED with an interval wider than the tolerance: {what}"


def judged(script: Any, root: Path, log: Path, targets: list[float], tolerance: float) -> list[str]:
    status, run, err = call(script, root, log, targets)
    if status == 0:
        return list(complaints(run, tolerance))
    one_line = status == 2 and err.strip() and "Traceback" not in err
    return [] if one_line else [f"exit status {status}: {err}"]


@pytest.fixture(scope="module")
def tolerance(root: Path) -> float:
    from tokenaxis import params as parameters

    return float(parameters.load_yaml(root / "params.yaml")["stability"]["tolerance"])


def test_every_public_log_is_answered_or_refused_in_words(script, root: Path, logs: list[Path], tolerance: float):
    wrong = {log.name: judged(script, root, log, [6.0, 4.0, 3.3, 2.9, 2.4, 0.5], tolerance) for log in logs}
    assert not {name: said for name, said in wrong.items() if said}


def test_logs_that_are_cut_off_anywhere_are_answered_or_refused_in_words(
    script, root: Path, logs: list[Path], tolerance: float, tmp_path: Path
):
    rng, wrong = np.random.default_rng(SEED), {}
    for number in range(CUTS):
        log = logs[int(rng.integers(len(logs)))]
        data = gzip.decompress(log.read_bytes()) if log.suffix == ".gz" else log.read_bytes()
        at = int(rng.uniform(0.02, 1.0) * len(data))
        short = tmp_path / str(number) / log.name.removesuffix(".gz")
        short.parent.mkdir()
        short.write_bytes(data[:at])
        targets = sorted({round(float(value), 3) for value in rng.uniform(0.5, 7.0, 4)}, reverse=True)
        if said := judged(script, root, short, targets, tolerance):
            wrong[f"{log.name} cut at byte {at}, targets {targets}"] = said
    assert not wrong
