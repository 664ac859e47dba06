"""scripts/inspect_log.py: what it says of logs, and that what it prints can be pasted."""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest
import yaml
from jsonschema import Draft202012Validator

from tokenaxis import params
from tokenaxis.stages.token_axis import axis_of
from tokenaxis.sweep import declared, inspection, inspection_text
from tokenaxis.sweep.declared import SweepDeclaration
from tokenaxis.sweep.discover import discover


@pytest.fixture(scope="module")
def valid(root: Path) -> Draft202012Validator:
    schema = json.loads((root / "workflow" / "schemas" / "inspect.schema.json").read_text(encoding="utf-8"))
    Draft202012Validator.check_schema(schema)
    return Draft202012Validator(schema)


def inspected(*paths: Path, **keys: Any) -> dict[str, Any]:
    declaration = SweepDeclaration(entries=(("*", keys),)) if keys else SweepDeclaration()
    return inspection.inspect(paths, declaration, [".*"], "auto")


def csv(path: Path, header: str, rows: int = 30) -> Path:
    width = header.count(",")
    lines = [f"{step}" + f",{4 - step / 100:.4f}" * width for step in range(rows)]
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("\n".join([header, *lines]) + "\n", encoding="utf-8")
    return path


def test_the_output_for_every_public_log_fits_the_documented_schema(shared: Path, valid: Draft202012Validator) -> None:
    for content in (inspected(shared / "logs"), inspected(shared / "logs", tokens_per_step=524288)):
        assert [error.message for error in valid.iter_errors(content)] == []
        json.dumps(content, allow_nan=False)
        assert inspection_text.to_text(content)


def test_rows_attempts_tokens_and_losses_are_those_of_the_log(shared: Path) -> None:
    run = inspected(shared / "logs/trainmeter/csv/kill_1.024Kbs.csv")["runs"][0]
    assert {key: run["rows"][key] for key in ("read", "kept", "superseded", "bad")} == {
        "read": 371,
        "kept": 300,
        "superseded": 71,
        "bad": 0,
    }
    assert [attempt["first_step"] for attempt in run["attempts"]] == [0, 100]
    assert (run["last"]["step"], run["last"]["tokens"], run["last"]["train_loss"]) == (299, 299 * 1024, 2.441964)
    assert run["losses"]["train_loss"]["first"]["loss"] == 5.713266
    assert len(run["first_rows"]) == 5


def test_a_log_without_a_batch_size_shows_all_that_can_be_said_without_it(
    tmp_path: Path, valid: Draft202012Validator
) -> None:
    content = inspected(csv(tmp_path / "run.csv", "step,train_loss"))
    assert [error.message for error in valid.iter_errors(content)] == []
    seen = content["refused"][0]["seen"]
    assert (seen["rows"]["kept"], seen["last"]["step"], seen["tokens"], seen["last"]["tokens"]) == (30, 29, None, None)


@pytest.mark.parametrize(
    ("name", "header"),
    [
        ("run.csv", "step,train_loss"),
        ("odd [1] *.csv", "step,train_loss"),
        ("my.csv", "step,my_loss_value"),
        ("iterations.csv", "my iteration,train_loss"),
        ("sub dir/it's.csv", "opt_step_nr,loss"),
    ],
)
def test_what_is_printed_to_be_declared_makes_a_run_when_it_is_pasted(
    name: str, header: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    logs = tmp_path / "logs"
    csv(logs / name, header)
    file = tmp_path / "configs" / "sweeps" / "mine.yaml"
    file.parent.mkdir(parents=True)
    pasted: dict[str, Any] = {}
    for _ in range(3):  # a log that lacks two things says so one after the other
        content = inspected_with(logs, file)
        if not content["refused"]:
            break
        text = content["refused"][0]["declare"]
        assert text in inspection_text.to_text(content)
        pasted.setdefault("runs", []).extend(yaml.safe_load(text)["runs"])
        file.write_text(yaml.safe_dump(pasted), encoding="utf-8")
    assert content["refused"] == []
    found = discover(logs, declared.load("mine"), [])
    axis = axis_of(logs, asdict(found.runs[0]), "auto")
    assert (axis.meta["rows"]["kept"], axis.columns["tokens"][-1]) == (30, 29 * 524288)


def inspected_with(logs: Path, file: Path) -> dict[str, Any]:
    declaration = declared.load("mine") if file.exists() else SweepDeclaration()
    return inspection.inspect([logs], declaration, [], "auto")


def run_script(root: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, str(root / "scripts" / "inspect_log.py"), *arguments]
    return subprocess.run(command, capture_output=True, text=True, cwd=root)


def test_exit_status_is_two_and_a_line_names_each_refused_path(root: Path, tmp_path: Path) -> None:
    good = csv(tmp_path / "good_2Kbs.csv", "step,train_loss")
    bad = tmp_path / "bad.csv"
    bad.write_text("step,train_loss\n", encoding="utf-8")
    done = run_script(root, str(good))
    assert (done.returncode, done.stderr) == (0, "")
    assert "2,000 from step 0 tokens per step (file name)" in done.stdout
    done = run_script(root, "--json", str(good), str(bad), str(tmp_path / "absent.csv"))
    assert done.returncode == 2
    named = {line.split(": ")[0] for line in done.stderr.splitlines()}
    assert named == {str(bad), str(tmp_path / "absent.csv")}
    content = json.loads(done.stdout)
    assert (len(content["runs"]), len(content["refused"])) == (1, 2)


def test_a_file_that_is_no_log_is_refused_when_it_is_named_and_passed_over_in_a_folder(tmp_path: Path) -> None:
    csv(tmp_path / "run_2Kbs.csv", "step,train_loss")
    (tmp_path / "README.md").write_text("# hello\n", encoding="utf-8")
    assert "documentation" in inspected(tmp_path / "README.md")["refused"][0]["reason"]
    folder = inspected(tmp_path)
    assert (folder["refused"], [entry["name"] for entry in folder["passed_over"]]) == ([], ["README.md"])


def test_what_is_declared_on_the_command_line_counts(root: Path, tmp_path: Path) -> None:
    log = csv(tmp_path / "run.csv", "step,train_loss")
    done = run_script(root, "--json", "--declare", "{tokens_per_step: 1000}", str(log))
    assert json.loads(done.stdout)["runs"][0]["last"]["tokens"] == 29_000
    wrong = run_script(root, "--declare", "{tokens_per_stp: 1000}", str(log))
    assert (wrong.returncode, "tokens_per_stp" in wrong.stderr) == (2, True)


def test_every_key_of_the_sweep_schema_that_a_remedy_may_name_is_known(root: Path) -> None:
    schema = json.loads((params.SCHEMAS / "sweep.schema.json").read_text(encoding="utf-8"))
    from tokenaxis.sweep import to_declare

    assert set(to_declare._TOP) <= set(schema["properties"])
    assert set(to_declare._EXAMPLES) <= set(schema["$defs"]["run"]["properties"])


SETTINGS = "global_batch_size: 8\nseq_len: 128\n"


def test_settings_beside_a_single_log_are_facts_that_name_their_file(tmp_path: Path) -> None:
    log = csv(tmp_path / "run" / "metrics.csv", "step,train_loss")
    (log.parent / "hparams.yaml").write_text(SETTINGS, encoding="utf-8")
    content = inspected(log)
    (run,) = content["runs"]
    assert (run["facts_from"], run["last"]["tokens"]) == (["hparams.yaml"], 29 * 8 * 128)
    notes = {fact["key"]: fact["note"] for fact in run["facts"]}
    assert notes["tokens_per_step"].startswith("hparams.yaml beside the log: ")
    assert "  settings  hparams.yaml\n" in inspection_text.to_text(content)


def test_settings_beside_several_logs_are_no_facts_of_one_that_is_inspected_alone(tmp_path: Path) -> None:
    log = csv(tmp_path / "a.csv", "step,train_loss")
    other = csv(tmp_path / "deeper" / "b.csv", "step,train_loss")
    (tmp_path / "config.yaml").write_text(SETTINGS, encoding="utf-8")
    assert inspected(log)["refused"][0]["reason"].startswith("the batch size is unknown")
    (tmp_path / "a.yaml").write_text(SETTINGS, encoding="utf-8")  # named like the log: it speaks of no other
    assert inspected(log)["runs"][0]["facts_from"] == ["a.yaml"]
    other.unlink()
    assert inspected(log)["runs"][0]["facts_from"] == ["a.yaml", "config.yaml"]


def test_settings_in_a_folder_of_very_many_files_are_not_looked_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A log in a home folder must not have it searched."""
    log = csv(tmp_path / "a.csv", "step,train_loss")
    (tmp_path / "config.yaml").write_text(SETTINGS, encoding="utf-8")
    monkeypatch.setattr(inspection, "_MOST", 1)
    assert inspected(log, tokens_per_step=1000)["runs"][0]["facts_from"] == []


def test_the_stages_of_a_batch_that_differs_at_every_step_are_not_all_printed(tmp_path: Path) -> None:
    path = tmp_path / "metrics.jsonl"
    rows = [{"step": step, "loss": 4 - step / 100, "tokens_per_step": 1000 + step * 37 % 100} for step in range(60)]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    (line,) = [line for line in inspection_text.to_text(inspected(path)).splitlines() if line.startswith("  batch")]
    assert line.count("from step") == 8
    assert "; 52 more tokens per step" in line


def test_no_tokens_are_named_where_the_batch_is_unknown(tmp_path: Path) -> None:
    rows = [*range(60), *range(30, 90)]  # resumed at 30
    text = "step,train_loss\n" + "".join(f"{step},{4 - step / 100:.4f}\n" for step in rows)
    (tmp_path / "log.csv").write_text(text)
    (refused,) = inspected(tmp_path / "log.csv")["refused"]
    (attempts,) = [warning["message"] for warning in refused["seen"]["warnings"] if "resumed" in warning["message"]]
    assert "30 earlier rows superseded" in attempts and "tokens" not in attempts
