"""What a number should not be trusted for has a name: in the artifact, on the console and on the report."""

from __future__ import annotations

import html
import importlib.util
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.stages.by_scripts import pipeline

BATCH = 5e5


def log(loss: Callable[[np.ndarray], np.ndarray], rows: int = 400, noise: float = 0.002, seed: int = 1) -> str:
    """A CSV of `loss` (of tokens in billions) at a constant learning rate after 10 steps of warm-up."""
    step = np.arange(1, rows + 1)
    values = loss(step * BATCH / 1e9) + noise * np.random.default_rng(seed).standard_normal(rows)
    rates = np.minimum(1.0, step / 10)
    lines = [f"{s},{y:.6f},{r:.3f}" for s, y, r in zip(step, values, rates, strict=True)]
    return "step,train_loss,lr\n" + "\n".join(lines) + "\n"


#: what is wrong -> (a log with that fault, a target that it does not reach, the warning's name)
CASES = {
    "pinned": (log(lambda x: 1.5 * x**-0.3), 2.2, "at_bound"),
    "unidentified": (log(lambda x: 2.2 + 0.6 * x**-0.35, rows=120, noise=0.1), 2.9, "exponent_from_prior"),
    "far": (log(lambda x: 2 + 0.6 * x**-0.35), 2.6, "beyond_warn_factor"),
    "undeclared": (log(lambda x: 2 + 0.6 * x**-0.35, seed=2), 2.95, "schedule_undeclared"),
    "diverging": (log(lambda x: 2 + 0.6 * x**-0.35 + 20 * np.maximum(x - 0.15, 0)), 2.2, "diverged"),
    "short": (log(lambda x: 2 + 0.6 * x**-0.35, rows=12), 2.2, "too_few_rows"),
}


@pytest.fixture(scope="module")
def found(root: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, dict[str, Any]]:
    logs = {name: text for name, (text, _, _) in CASES.items()}
    targets = sorted({target for _, target, _ in CASES.values()}, reverse=True)
    return pipeline(tmp_path_factory.mktemp("warned"), root, logs, targets=targets)


@pytest.fixture(scope="module")
def script(root: Path):
    spec = importlib.util.spec_from_file_location("target_loss_script", root / "scripts" / "target_loss.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize("name", CASES)
def test_the_artifact_names_it_for_the_run_and_for_the_target(found, name: str):
    _, wanted, code = CASES[name]
    fits = found[name]["fits"]
    said = {warning["code"]: warning["message"] for warning in fits["warnings"]}
    assert said.get(code), f"{code} is not among {sorted(said)}"
    target = next(entry for entry in fits["targets"] if entry["target"] == wanted)
    assert code in target["warnings"]


@pytest.mark.parametrize("name", CASES)
def test_the_console_says_it(script, name: str, root: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    text, target, code = CASES[name]
    path = tmp_path / "run_0.5Mbs.csv"
    path.write_text(text, encoding="utf-8")
    assert script.main([str(path), "--target", str(target), "--params", str(root / "params.yaml")]) == 0
    assert re.search(rf"! {code}: \w+", capsys.readouterr().out)


@pytest.mark.parametrize("name", CASES)
def test_the_report_says_it(found, name: str):
    code = CASES[name][2]
    message = next(entry["message"] for entry in found[name]["fits"]["warnings"] if entry["code"] == code)
    page = re.sub(r"\s+", " ", html.unescape(re.sub(r"<[^>]+>", "", found["page"]["html"])))
    assert message in page


@pytest.mark.parametrize(
    ("name", "verdict"),
    [("far", "NOT YET CONVERGED"), ("diverging", "DIVERGED"), ("short", "NOT ENOUGH DATA")],
)
def test_none_of_these_is_called_converged(found, name: str, verdict: str):
    verdicts = {entry["target"]: entry["verdict"] for entry in found[name]["stability"]["verdicts"]}
    assert verdicts[CASES[name][1]] == verdict
