"""scripts/target_loss.py with the default law: any readable log, text or JSON, one or many files."""

from __future__ import annotations

import importlib.util
import json
from pathlib import Path

import pytest


@pytest.fixture(scope="module")
def script(root: Path):
    spec = importlib.util.spec_from_file_location("target_loss_script", root / "scripts" / "target_loss.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def call(script, root: Path, capsys):
    def run(*argv: str) -> tuple[int, str, str]:
        status = script.main([*argv, "--params", str(root / "params.yaml")])
        said = capsys.readouterr()
        return status, said.out, said.err

    return run


def log(cases, name: str) -> str:
    folder, truth = cases
    return str(folder / truth[name]["files"][0]["path"])


def test_the_text_names_law_crossing_prediction_interval_and_warnings(call, cases):
    status, out, err = call(log(cases, "clean"), "--target", "2.6", "2.45", "1.9", "--stability-sweep")
    assert status == 0 and not err
    for word in (
        "law power",
        "REACHED",
        "PREDICTED",
        "UNREACHABLE",
        "at 90%",
        "verdict: CONVERGED",
        "schedule_undeclared",
    ):
        assert word in out, word


def test_json_has_the_documented_schema(call, cases):
    status, out, _ = call(
        log(cases, "clean"), log(cases, "dynamic"), "--target", "2.6", "2.3", "--json", "--stability-sweep"
    )
    content = json.loads(out)
    assert status == 0 and len(content["runs"]) == 2
    for run in content["runs"]:
        assert {"run", "loss", "law", "observed", "targets", "verdicts", "warnings"} <= set(run)
        assert [t["status"] for t in run["targets"]] == ["reached", "predicted"]
        low, high = run["targets"][1]["interval"]
        assert low <= run["targets"][1]["tokens"] <= high
        assert run["targets"][1]["law"] == "power"


def test_one_bad_log_does_not_stop_the_others(call, cases):
    status, out, err = call(log(cases, "binary"), log(cases, "clean"), "--target", "2.6")
    assert status == 2 and "REACHED" in out and "binary" in err


@pytest.mark.parametrize(
    ("argv", "word"),
    [
        (["--lr-schedule", "[1, 2]"], "mapping"),
        (["--lr-schedule", "{kind: spiral}"], "spiral"),
        (["--lr-schedule", "{kind: cosine}"], "no end"),
        (["--batch-schedule", "0:1", "x"], "TOKENS:BATCH"),
        (["--loss-col", "nowhere"], "nowhere"),
    ],
)
def test_bad_options_end_in_a_sentence_and_status_2(call, cases, argv, word):
    status, _, err = call(log(cases, "clean"), "--target", "2.3", *argv)
    assert status == 2 and word in err and "Traceback" not in err


def test_a_declared_schedule_answers_by_the_kernel_and_gives_a_probability(call, cases):
    schedule = "{kind: wsd, decay_steps: 1000, warmup_steps: 200}"
    argv = ["--target", "2.3", "--lr-schedule", schedule, "--planned-steps", "6000"]
    status, out, _ = call(log(cases, "clean"), *argv, "--json")
    run = json.loads(out)["runs"][0]
    assert status == 0 and run["law"] == "kernel" and run["end"]["tokens"] == 6000 * 5e5
    assert 0 <= run["targets"][0]["reached_by_end"] <= 1


def test_the_fit_may_start_with_the_last_batch_stage(call, cases):
    status, out, _ = call(log(cases, "dynamic"), "--target", "2.3", "--fit-last-stage", "--json")
    assert status == 0 and json.loads(out)["runs"][0]["fit_start_step"] == 2400  # where the third stage starts
