"""A run without a finite value of the loss that was asked for is an outcome, not a failure of the pipeline."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.stages.by_scripts import pipeline


def log(column: str, cell: str | None = None) -> str:
    """200 rows of a column: the same cell in each, or a falling curve."""
    rng = np.random.default_rng(5)
    lines = [f"step,{column}"]
    for step in range(1, 201):
        loss = 2 + 0.6 * (step * 5e5 / 1e9) ** -0.35 + 0.01 * rng.standard_normal()
        lines.append(f"{step},{f'{loss:.6f}' if cell is None else cell}")
    return "\n".join(lines) + "\n"


LOGS = {"falling": log("train_loss"), "all_nan": log("train_loss", "nan"), "only_val": log("val_loss")}


@pytest.fixture(scope="module")
def asked_for_train(root: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, dict[str, Any]]:
    return pipeline(tmp_path_factory.mktemp("train"), root, LOGS, targets=[3.0, 2.5], loss="train_loss")


def test_every_target_of_a_run_without_a_finite_loss_is_not_available_with_the_reason(asked_for_train):
    for name, code in (("all_nan", "diverged"), ("only_val", "no_loss")):
        fits = asked_for_train[name]["fits"]
        assert fits["fit"] is None and fits["law"] is None and fits["rows"] == 0
        assert fits["observed"]["loss"] is None and fits["observed"]["step"] == 200
        assert [target["target"] for target in fits["targets"]] == [3.0, 2.5]
        for target in fits["targets"]:
            assert target["status"] == "not_available" and target["warnings"] == [code]
            assert target["tokens"] is None and target["reason"] == fits["fit_not_available"] != ""
        assert [warning["code"] for warning in fits["warnings"]] == [code]


@pytest.mark.parametrize(("name", "verdict"), [("all_nan", "DIVERGED"), ("only_val", "NOT ENOUGH DATA")])
def test_its_verdict_is_diverged_with_nan_and_else_not_enough_data(asked_for_train, name: str, verdict: str):
    stability = asked_for_train[name]["stability"]
    assert [entry["verdict"] for entry in stability["verdicts"]] == [verdict, verdict]
    assert all(entry["reason"] and entry["windows"] == 0 for entry in stability["verdicts"])


def test_the_other_runs_of_the_sweep_are_answered_and_the_page_says_why_these_are_not(asked_for_train):
    assert {target["status"] for target in asked_for_train["falling"]["fits"]["targets"]} <= {"reached", "predicted"}
    assert "nan or inf wherever it is logged" in asked_for_train["page"]["html"]
    for name in ("all_nan", "only_val"):
        section = asked_for_train[name]["passports"]["targets"]
        assert {entry["status"] for entry in section} == {"not_available"}


def test_a_loss_that_was_asked_for_and_is_not_logged_names_the_one_that_is(root: Path, tmp_path: Path):
    found = pipeline(tmp_path, root, LOGS, loss="val_loss")  # targets: auto
    fits = found["falling"]["fits"]
    assert fits["targets"] == [], "nothing says where the run stands on the validation loss"
    assert "no finite val_loss" in fits["fit_not_available"] and "train_loss" in fits["fit_not_available"]
    assert found["falling"]["stability"]["verdicts"] == []


def test_the_public_log_without_a_loss_goes_through_the_stages(shared: Path, root: Path):
    from tokenaxis import params as parameters
    from tokenaxis import readers, stability
    from tokenaxis.axis import build_axis
    from tokenaxis.declarations import Declaration
    from tokenaxis.laws import no_loss

    log = shared / "logs" / "llmc" / "gpt2_train.11679031.log.gz"
    if not log.exists():
        pytest.skip(f"../shared has no {log.name}")
    fits = parameters.load_yaml(root / "params.yaml")["fits"] | {"targets": [3.3]}
    raw = readers.read(str(log), Declaration())
    axis = build_axis(raw, Declaration(), log.name, "auto")
    report = no_loss.report(axis.columns, axis.meta, fits)
    assert report is not None and [target.status for target in report.targets] == ["not_available"]
    verdicts = stability.without_rows(report.as_dict()).verdicts
    assert [verdict.verdict for verdict in verdicts] == ["DIVERGED"], "its loss is nan in every row"
