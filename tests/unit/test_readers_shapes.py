"""Files of the shapes that public repositories hold: read as their authors mean them, or refused with what helps.

Each is written here after one that was seen; none is copied.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tokenaxis import readers
from tokenaxis.axis import build_axis
from tokenaxis.declarations import Declaration
from tokenaxis.errors import TokenAxisError
from tokenaxis.readers.base import RawLog
from tokenaxis.sweep.declared import SweepDeclaration
from tokenaxis.sweep.discover import discover
from tokenaxis.sweep.to_declare import to_declare


def loss(step: int) -> float:
    return 4 - step / 1000


def write(path: Path, text: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
    return path


def lines(path: Path, records: list[dict[str, Any]]) -> Path:
    return write(path, "".join(json.dumps(record) + "\n" for record in records))


def codes(log: RawLog) -> set[str]:
    return {notice.code for notice in log.warnings}


def recognised(path: Path, **columns: str) -> readers.Recognition:
    return readers.recognise(readers.sample(str(path)), None, columns)


# counts of tokens that are none


def test_a_count_of_tokens_that_the_trainer_left_at_0_is_no_column(tmp_path: Path) -> None:
    """LLaMA-Factory without include_num_input_tokens_seen."""
    path = lines(
        tmp_path / "trainer_log.jsonl",
        [
            {"current_steps": step, "total_steps": 400, "loss": loss(step), "throughput": "0.00", "total_tokens": 0}
            for step in range(10, 401, 10)
        ],
    )
    log = readers.read(str(path))
    assert "tokens" not in log.columns
    assert "tokens_not_counted" in codes(log)
    axis = build_axis(log, Declaration(tokens_per_step=1000.0), path.name, "auto")
    assert axis.columns["tokens"][-1] > 390_000


def test_tokens_that_go_up_and_down_while_each_step_is_logged_are_those_of_the_step(tmp_path: Path) -> None:
    """tinker's metrics.jsonl: num_tokens of the step, train_mean_nll, test/nll now and then."""
    rng = np.random.default_rng(0)
    sizes = rng.integers(40_000, 50_000, 60)
    records = [
        {"step": step, "num_tokens": int(sizes[step]), "train_mean_nll": loss(step), "time/total": 5.0}
        | ({"test/nll": loss(step) + 1} if step % 20 == 0 else {})
        for step in range(60)
    ]
    path = lines(tmp_path / "metrics.jsonl", records)
    log = readers.read(str(path))
    assert log.names["tokens_per_step"] == "num_tokens"
    assert np.isfinite(log.columns["val_loss"]).sum() == 3
    axis = build_axis(log, Declaration(), path.name, "auto")
    assert axis.columns["tokens"][-1] == sizes[:-1].sum()
    (notice,) = [notice for notice in log.warnings if notice.code == "tokens_of_each_step"]
    assert "columns: {tokens: num_tokens}" in notice.message


def test_the_same_count_in_every_tenth_step_is_left_out_with_what_to_declare(tmp_path: Path) -> None:
    records = [{"step": step, "loss": loss(step), "tokens": 8192} for step in range(0, 400, 10)]
    log = readers.read(str(lines(tmp_path / "log.jsonl", records)))
    assert not {"tokens", "tokens_per_step"} & log.columns.keys()
    (notice,) = [notice for notice in log.warnings if notice.code == "tokens_not_counted"]
    assert "columns: {tokens_per_step: tokens}" in notice.message
    declared = readers.read(str(tmp_path / "log.jsonl"), Declaration(columns={"tokens_per_step": "tokens"}))
    assert set(declared.columns["tokens_per_step"]) == {8192}


def test_a_count_that_falls_back_at_each_resume_still_counts(tmp_path: Path) -> None:
    steps = [*range(0, 100), *range(60, 160), *range(120, 200)]
    records = [{"step": step, "loss": loss(step), "tokens": step * 1024} for step in steps]
    log = readers.read(str(lines(tmp_path / "log.jsonl", records)))
    assert log.names["tokens"] == "tokens"


def test_a_tokens_column_that_is_declared_is_what_it_is_declared_to_be(tmp_path: Path) -> None:
    records = [{"step": step, "loss": loss(step), "tokens": 8192} for step in range(40)]
    log = readers.read(str(lines(tmp_path / "log.jsonl", records)), Declaration(columns={"tokens": "tokens"}))
    assert log.names["tokens"] == "tokens"


def test_of_the_tokens_of_one_rank_and_of_all_those_of_all_are_taken(tmp_path: Path) -> None:
    """litgpt's metrics.csv: tokens of this rank, total_tokens of all."""
    rows = [f"{4 * s},{loss(s)},{s},{s * 8192},{s * 8192 * 8}" for s in range(1, 60)]
    log = readers.read(str(write(tmp_path / "metrics.csv", "iter,loss,step,tokens,total_tokens\n" + "\n".join(rows))))
    assert (log.names["tokens"], log.columns["tokens"][0]) == ("total_tokens", 65536)
    assert "tokens_chosen" in codes(log)


def test_a_planned_total_beside_a_count_is_not_the_count(tmp_path: Path) -> None:
    rows = [f"{s},{loss(s)},{s * 8192},1000000000" for s in range(1, 60)]
    log = readers.read(str(write(tmp_path / "log.csv", "step,loss,tokens,total_tokens\n" + "\n".join(rows))))
    assert log.names["tokens"] == "tokens"


# steps


def test_the_step_of_the_run_is_taken_beside_one_that_begins_anew_with_each_epoch(tmp_path: Path) -> None:
    records = [
        {"global_step": 200 * epoch + step, "epoch": epoch, "step": step, "loss": loss(200 * epoch + step)}
        for epoch in range(3)
        for step in range(0, 200, 10)
    ]
    log = readers.read(str(lines(tmp_path / "training_log.jsonl", records)))
    assert (log.names["step"], log.columns["step"][-1]) == ("global_step", 590)
    assert "step_chosen" in codes(log)


def test_a_step_that_falls_at_a_resume_with_the_global_one_stays_the_step(tmp_path: Path) -> None:
    steps = [*range(100), *range(60, 200)]
    records = [{"step": step, "global_step": step, "_step": row, "loss": loss(step)} for row, step in enumerate(steps)]
    assert readers.read(str(lines(tmp_path / "log.jsonl", records))).names["step"] == "step"


def test_a_history_of_the_trainer_that_was_saved_as_a_list_holds_means(tmp_path: Path) -> None:
    history: list[dict[str, Any]] = [{"loss": loss(step), "step": step, "epoch": 0.1} for step in range(10, 401, 10)]
    path = write(tmp_path / "log_history.json", json.dumps(history))
    assert readers.read(str(path)).means == {}
    for last in ({"train_runtime": 9.0, "step": 400}, {"eval_loss": 3.5, "eval_samples_per_second": 5.0, "step": 400}):
        path.write_text(json.dumps([*history, last]), encoding="utf-8")
        assert readers.read(str(path)).means["train_loss"].counted_after


# losses that say that something is wrong


def state(tmp_path: Path, history: list[dict[str, Any]]) -> Path:
    document = {"best_metric": None, "global_step": 400, "log_history": history, "logging_steps": 10, "max_steps": 400}
    return write(tmp_path / "trainer_state.json", json.dumps(document, indent=2))


def test_the_0_that_the_trainer_writes_for_nan_is_no_loss(tmp_path: Path) -> None:
    history = [
        {"step": step, "loss": loss(step) if step <= 200 else 0.0, "grad_norm": 1.0 if step <= 200 else float("nan")}
        for step in range(10, 401, 10)
    ]
    log = readers.read(str(state(tmp_path, history)))
    assert np.isfinite(log.columns["train_loss"]).sum() == 20
    assert len(log.unusable["train_loss", "nan"]) == 20
    assert "nan_logged_as_zero" in codes(log)


def test_a_loss_of_0_without_a_sign_of_nan_stays_and_is_said(tmp_path: Path) -> None:
    history = [{"step": step, "loss": 0.0 if step > 300 else 1.0, "grad_norm": 0.1} for step in range(10, 401, 10)]
    log = readers.read(str(state(tmp_path, history)))
    assert (log.columns["train_loss"] == 0).sum() == 10
    assert "train_loss_is_zero" in codes(log)


@pytest.mark.parametrize("placeholder", [0, -1])
def test_what_a_loop_writes_where_it_did_not_evaluate_is_no_loss(tmp_path: Path, placeholder: int) -> None:
    rows = [f"{s},{loss(s)},{loss(s) + 1 if s % 10 == 0 else placeholder:.6f},0.001" for s in range(45)]
    log = readers.read(str(write(tmp_path / "loss_log.csv", "step,loss,val_loss,lr\n" + "\n".join(rows))))
    assert np.isfinite(log.columns["val_loss"]).sum() == 5
    assert "val_loss_placeholder" in codes(log)
    assert log.unusable == {}


def test_losses_of_0_at_the_end_are_no_placeholders(tmp_path: Path) -> None:
    rows = [f"{s},{max(0.0, 2 - s / 20):.4f}" for s in range(60)]
    log = readers.read(str(write(tmp_path / "log.csv", "step,loss\n" + "\n".join(rows))))
    assert (log.columns["train_loss"] == 0).sum() == 20
    assert codes(log) == {"train_loss_is_zero"}


def test_a_loss_below_0_is_said_to_be_no_cross_entropy(tmp_path: Path) -> None:
    rows = [f"{step},{-0.02 * step}" for step in range(1, 40)]
    log = readers.read(str(write(tmp_path / "progress.csv", "step,train/loss\n" + "\n".join(rows) + "\n")))
    (notice,) = [notice for notice in log.warnings if notice.code == "train_loss_below_zero"]
    assert "39 rows" in notice.message


def test_evaluations_on_several_sets_before_the_first_step_make_one_row(tmp_path: Path) -> None:
    """A record for each set at one step; the first set's is val_loss."""
    history: list[dict[str, Any]] = []
    for step in range(0, 401, 100):
        if step:
            history.append({"step": step, "loss": loss(step), "learning_rate": 1e-5})
        history += [{"step": step, f"eval_g{k}_loss": loss(step) + k, "eval_runtime": 5.0} for k in range(6)]
    log = readers.read(str(state(tmp_path, history)))
    assert (log.names["val_loss"], np.isfinite(log.columns["val_loss"]).sum()) == ("eval_g0_loss", 5)
    axis = build_axis(log, Declaration(tokens_per_step=1000.0), "trainer_state.json", "auto")
    assert axis.meta["rows"]["with_val_loss"] == 5


# tables of runs


def test_a_table_of_runs_is_no_log_of_steps(tmp_path: Path) -> None:
    """W&B's table: a step and losses are among its columns, and each row is another run."""
    header = "Name,State,Notes,User,Tags,Created,Runtime,Sweep,batch_size,step,train/loss,val/loss"
    rows = [f"run{k},finished,-,,,2026-05-24,691,,64,5000,{1.1 - k / 100},1.5" for k in range(12)]
    found = recognised(write(tmp_path / "wandb_export.csv", "\n".join([header, *rows]) + "\n"))
    assert found.refused is not None
    assert "table of runs" in found.refused.reason
    assert "scan_history" in str(found.refused.remedy)


@pytest.mark.parametrize("column", ["model", "optimizer", "seed", "run_id", "name"])
def test_a_table_of_results_names_another_run_in_each_row(tmp_path: Path, column: str) -> None:
    rows = [f"m{k},5000,{3 - k / 10}" for k in range(6)]
    found = recognised(write(tmp_path / "results.csv", "\n".join([f"{column},step,val_loss", *rows]) + "\n"))
    assert found.refused is not None
    assert f"its column '{column}' tells apart" in found.refused.reason


def table_of(tmp_path: Path, *stretches: tuple[str, range]) -> Path:
    rows = [f"{run},{step},{loss(step)}" for run, steps in stretches for step in steps]
    return write(tmp_path / "logs" / "log.csv", "run_id,step,train_loss\n" + "\n".join(rows) + "\n")


@pytest.mark.parametrize(
    ("first", "second", "attempts"),
    [(range(20), range(20, 40), 1), (range(600), range(590, 1500), 2), (range(0, 600, 10), range(600, 1500, 10), 1)],
)
def test_a_run_whose_id_changed_at_a_resume_is_one_run(
    tmp_path: Path, first: range, second: range, attempts: int
) -> None:
    path = table_of(tmp_path, ("a", first), ("b", second))
    (run,) = discover(path.parent, SweepDeclaration(), [".*"]).runs
    log = readers.read(str(path))
    (notice,) = [notice for notice in log.warnings if notice.code == "run_id_changes"]
    assert f"'b' from step {second[0]:,}" in notice.message
    axis = build_axis(log, Declaration(tokens_per_step=1000.0), run.name, "auto")
    assert axis.columns["step"].tolist() == sorted({*first, *second})
    assert len(axis.meta["attempts"]) == attempts


@pytest.mark.parametrize(
    "stretches",
    [
        (("a", range(600)), ("b", range(600))),  # begins where the first began
        (("a", range(600)), ("b", range(10, 600))),  # inside the first 5 %
        (("a", range(600)), ("b", range(2000, 2600))),  # far behind its end
        (("a", range(300)), ("b", range(300, 600)), ("a", range(600, 900))),  # comes back
    ],
)
@pytest.mark.parametrize("stride", [1, 20])
def test_runs_that_do_not_go_on_from_one_another_stay_several_and_are_refused(
    tmp_path: Path, stretches: tuple[tuple[str, range], ...], stride: int
) -> None:
    path = table_of(tmp_path, *((run, steps[::stride]) for run, steps in stretches))
    found = discover(path.parent, SweepDeclaration(), [".*"])
    if stretches[0][0] != stretches[-1][0] or stride > 1:  # else both ends, all that a first look sees, name one run
        assert found.runs == []
        assert "holds several runs" in found.refused[0]["reason"]
    with pytest.raises(TokenAxisError, match="holds several runs"):
        readers.read(str(path))
    assert len(readers.read(str(path), Declaration(format="table")).lines) == sum(
        len(s[::stride]) for _, s in stretches
    )


def test_a_name_of_its_own_for_each_step_is_none_of_a_run(tmp_path: Path) -> None:
    rows = [f"{step},checkpoint-{step},{loss(step)}" for step in range(100, 4000, 100)]
    path = write(tmp_path / "evals.csv", "step,name,val_loss\n" + "\n".join(rows) + "\n")
    assert recognised(path).reader is not None
    assert (len(readers.read(str(path)).lines), readers.read(str(path)).warnings) == (39, [])


@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_runs_between_two_ends_of_one_are_seen_though_another_column_holds_the_same_text(
    tmp_path: Path, end: str
) -> None:
    rows = [f"{s},0,{int(300 <= s < 600)},{loss(s)}" for s in range(900)]
    path = tmp_path / "log.csv"
    path.write_bytes(end.join(["step,epoch,run,loss", *rows, ""]).encode())
    with pytest.raises(TokenAxisError, match="holds several runs"):
        readers.read(str(path))
    path.write_bytes(end.join(["step,epoch,loss,run", *(f"{s},1,{loss(s)},0" for s in range(900)), ""]).encode())
    assert readers.read(str(path)).warnings == []


def test_a_column_called_name_that_tells_training_from_validation_parts_their_losses(tmp_path: Path) -> None:
    rows = [f"{step},{'train' if step % 2 else 'val'},{loss(step)}" for step in range(60)]
    log = readers.read(str(write(tmp_path / "log.csv", "step,name,loss\n" + "\n".join(rows))))
    assert [int(np.isfinite(log.columns[name]).sum()) for name in ("train_loss", "val_loss")] == [30, 30]


# W&B charts over something else than the number of the log call


def chart(path: Path, axis: str, values: list[float], steps: bool) -> Path:
    metrics = (["_step"] if steps else []) + ["train/loss"]
    names = [f"a - {metric}{end}" for metric in metrics for end in ("", "__MIN", "__MAX")]
    rows = [[value, *([number] * 3 if steps else []), *[loss(number)] * 3] for number, value in enumerate(values)]
    text = [",".join(f'"{cell}"' for cell in row) for row in [[axis, *names], *rows]]
    return write(path, "\n".join(text) + "\n")


def test_a_chart_over_the_trainers_step_is_over_steps(tmp_path: Path) -> None:
    log = readers.read(str(chart(tmp_path / "wandb_export.csv", "train/global_step", list(range(0, 400, 10)), True)))
    assert (log.columns["step"][-1], log.names["step"]) == (390, "train/global_step")
    assert "step_is_log_index" not in codes(log)
    assert log.means["train_loss"].counted_after


def test_a_chart_over_tokens_has_its_steps_from_the_log_calls_or_a_declared_batch(tmp_path: Path) -> None:
    tokens = [8192.0 * number for number in range(40)]
    log = readers.read(str(chart(tmp_path / "with.csv", "train/tokens_seen", tokens, True)))
    assert (log.names["step"], log.columns["tokens"][-1]) == ("a - _step", 39 * 8192)
    assert "step_is_log_index" in codes(log)
    without = chart(tmp_path / "without.csv", "train/tokens_seen", tokens, False)
    with pytest.raises(TokenAxisError, match="chart over tokens") as refused:
        readers.read(str(without))
    assert "tokens_per_step" in str(refused.value.remedy)
    assert readers.read(str(without), Declaration(tokens_per_step=8192.0)).columns["step"][-1] == 39


@pytest.mark.parametrize(
    ("axis", "declares"),
    [("Relative Time (Process)", None), ("epoch", None), ("my/env_steps", {"columns": {"step": "my/env_steps"}})],
)
def test_a_chart_over_something_else_is_refused_with_the_axis_to_choose(
    tmp_path: Path, axis: str, declares: dict[str, Any] | None
) -> None:
    path = chart(tmp_path / "wandb_export.csv", axis, [float(number) for number in range(40)], False)
    refused = recognised(path).refused
    assert refused is not None
    assert f"over '{axis}'" in refused.reason
    assert "x axis to Step" in str(refused.remedy)
    declared = to_declare("wandb_export.csv", refused.remedy)
    assert (declared is None) == (declares is None)
    if declares is not None:
        assert recognised(path, **declares["columns"]).reader is not None


# JSON histories


STEPS = list(range(0, 400, 10))


@pytest.mark.parametrize(
    "document",
    [
        {
            "_step": {str(i): s for i, s in enumerate(STEPS)},
            "train/loss": {str(i): loss(s) for i, s in enumerate(STEPS)},
        },
        {"columns": ["_step", "train/loss"], "index": STEPS, "data": [[step, loss(step)] for step in STEPS]},
        [{"_step": step, "_runtime": step / 2, "_timestamp": 1.7e9, "train/loss": loss(step)} for step in STEPS],
    ],
    ids=["pandas", "split", "records"],
)
def test_a_history_that_was_saved_from_the_api_is_read(tmp_path: Path, document: Any) -> None:
    path = write(tmp_path / "history.json", json.dumps(document))
    log = readers.read(str(path))
    assert log.columns["step"].tolist() == STEPS
    assert log.columns["train_loss"][-1] == loss(STEPS[-1])


def test_large_and_small_documents_of_lists_are_read_alike(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    values: list[float | None] = [loss(step) for step in STEPS]
    values[3], values[7], values[9] = None, float("nan"), float("inf")
    document = {"best": 3.5, "note": "text", "step": STEPS, "loss": values, "val_loss": values[:5], "lr": [1e-3] * 40}
    path = write(tmp_path / "history.json", json.dumps(document, indent=1))
    small = readers.read(str(path))
    assert (len(small.lines), len(small.unusable["train_loss", "nan"])) == (40, 1)
    monkeypatch.setattr("tokenaxis.readers.formats.json_history._LARGE", 0)
    monkeypatch.setattr("tokenaxis.readers.json_stream._BLOCK", 64)
    large = readers.read(str(path))
    assert large.names == small.names
    for name, column in small.columns.items():
        np.testing.assert_array_equal(large.columns[name], column)
    for key, flagged in small.unusable.items():
        assert large.unusable[key].tolist() == flagged.tolist()
    for broken in (path.read_text()[:-2], path.read_text() + "x"):
        path.write_text(broken, encoding="utf-8")
        with pytest.raises(TokenAxisError, match="no valid JSON"):
            readers.read(str(path))


@pytest.mark.parametrize("end", ["", "]x", "] ]", ",]"])
def test_a_list_of_records_that_is_no_valid_json_is_refused(tmp_path: Path, end: str) -> None:
    text = json.dumps([{"step": step, "loss": loss(step)} for step in STEPS])[:-1] + end
    with pytest.raises(TokenAxisError, match="no valid JSON"):
        readers.read(str(write(tmp_path / "history.json", text)))


def test_lists_of_a_training_and_a_validation_half_are_losses_once_it_is_declared(tmp_path: Path) -> None:
    values = [loss(step) for step in STEPS]
    path = write(tmp_path / "loss_history.json", json.dumps({"steps": STEPS, "train": values, "val": values}))
    refused = recognised(path).refused
    assert refused is not None
    assert "columns: {train_loss: train, val_loss: val}" in str(refused.remedy)
    columns = {"train_loss": "train", "val_loss": "val"}
    assert recognised(path, **columns).reader is not None
    assert set(readers.read(str(path), Declaration(columns=columns)).columns) == {"step", "train_loss", "val_loss"}


@pytest.mark.parametrize(
    ("name", "document", "reason"),
    [
        ("loss_history.json", {"train": [4.1, 4.0], "val": [4.2, 4.1]}, "without the steps"),
        ("history.json", {"loss": [4.1, 4.0], "val_loss": [4.2, 4.1]}, "without the steps"),
        ("losses.json", [4.125, 4.0, 3.875], "lists of numbers without names"),
        ("loss_history.json", [[200, 4.1, 4.2], [400, 4.0, 4.1]], "lists of numbers without names"),
        ("splits.json", {"train": [1, 2, 3], "val": [4, 5]}, None),
        ("config_log.json", {"betas": [0.9, 0.95], "train": True}, None),
        ("loss_history.json", {"history": [], "best_val_loss": 1.5}, None),
    ],
)
def test_losses_without_steps_are_refused_and_other_documents_passed_over(
    tmp_path: Path, name: str, document: Any, reason: str | None
) -> None:
    found = recognised(write(tmp_path / name, json.dumps(document, indent=2)))
    if reason is None:
        assert found.passed_over is not None
    else:
        assert found.refused is not None
        assert reason in found.refused.reason
        assert '"step"' in str(found.refused.remedy)


# names of trainers


@pytest.mark.parametrize(
    ("names", "expected"),
    [
        (
            {"_step": "step", "metrics/train/LanguageCrossEntropy": "train_loss", "time/token": "tokens"},
            "MosaicML composer",
        ),
        ({"global_step": "step", "reduced_train_loss": "train_loss", "val_loss": "val_loss"}, "NeMo"),
        ({"step": "step", "loss_metrics/global_avg_loss": "train_loss", "n_tokens_seen": "tokens"}, "torchtitan"),
        ({"iteration": "step", "lm loss": "train_loss", "lm loss validation": "val_loss"}, "Megatron-LM"),
        ({"step": "step", "train/CE loss": "train_loss", "optim/LR (group 0)": "lr"}, "OLMo-core"),
    ],
)
def test_the_names_of_trainers_are_known(tmp_path: Path, names: dict[str, str], expected: str) -> None:
    values = {"step": float, "tokens": lambda step: step * 8192.0}
    records = [
        {own: values.get(canonical, loss)(step) for own, canonical in names.items()}  # type: ignore[operator]
        for step in range(40)
    ]
    log = readers.read(str(lines(tmp_path / "log.jsonl", records)))
    assert log.names == {canonical: own for own, canonical in names.items()}, expected


# TensorBoard's downloads


def scalars(path: Path, every: int, json_too: bool = False) -> Path:
    rows = [[1.7e9 + step / 2, step, loss(step)] for step in range(0, 400, every)]
    if json_too:
        return write(path, json.dumps(rows))
    return write(path, "Wall time,Step,Value\n" + "".join(f"{a},{b},{c}\n" for a, b, c in rows))


def test_the_scalars_of_one_run_that_a_page_downloaded_are_one_run(tmp_path: Path) -> None:
    for run in ("version_0", "version_1"):
        scalars(tmp_path / f"run-{run}-tag-train_loss.csv", 1)
        scalars(tmp_path / f"run-{run}-tag-val_loss.csv", 10)
        scalars(tmp_path / f"run-{run}-tag-val_accuracy.csv", 10)
    found = discover(tmp_path, SweepDeclaration(), [".*"])
    assert [(run.name, run.join, len(run.files)) for run in found.runs] == [
        ("version_0", "columns", 2),
        ("version_1", "columns", 2),
    ]
    assert found.refused == []
    assert {entry["reason"] for entry in found.passed_over} == {"a scalar of TensorBoard that is no loss"}


@pytest.mark.parametrize(("name", "column"), [("train_loss.json", "train_loss"), ("Loss_val.csv", "val_loss")])
def test_a_download_is_what_its_name_says(tmp_path: Path, name: str, column: str) -> None:
    log = readers.read(str(scalars(tmp_path / name, 1, name.endswith(".json"))))
    assert (log.format, set(log.columns)) == ("tensorboard-export", {"step", column, "elapsed_s"})
    assert (log.columns["step"][-1], log.columns["elapsed_s"][-1], log.started) == (399, 199.5, 1.7e9)


@pytest.mark.parametrize("name", ["data.csv", "kl_loss.csv"])
def test_a_download_whose_name_says_nothing_is_a_loss_once_it_is_declared(tmp_path: Path, name: str) -> None:
    path = scalars(tmp_path / name, 1)
    refused = recognised(path).refused
    assert refused is not None
    assert "columns: {train_loss: Value}" in str(refused.remedy)
    found = recognised(path, train_loss="Value")
    assert found.reader is not None
    assert found.reader.name == "tensorboard-export"
    assert "train_loss" in readers.read(str(path), Declaration(columns={"train_loss": "Value"})).columns


# pointers


@pytest.mark.parametrize(
    ("text", "command"),
    [
        ("version https://git-lfs.github.com/spec/v1\noid sha256:00\nsize 2529\n", "git lfs pull"),
        ("/annex/objects/SHA256E-s2529--00.csv\n", "git annex get ."),
    ],
)
@pytest.mark.parametrize("name", ["metrics.jsonl", "log.csv", "trainer_state.json", "events.out.tfevents.1.host"])
def test_a_pointer_to_a_log_is_refused_with_the_command_that_fetches_it(
    tmp_path: Path, name: str, text: str, command: str
) -> None:
    refused = recognised(write(tmp_path / name, text)).refused
    assert refused is not None
    assert command in str(refused.remedy)


@pytest.mark.parametrize("name", ["model.safetensors", "config.json"])
def test_a_pointer_to_something_else_is_passed_over(tmp_path: Path, name: str) -> None:
    found = recognised(write(tmp_path / name, "version https://git-lfs.github.com/spec/v1\noid sha256:00\nsize 2529\n"))
    assert found.passed_over is not None


def test_the_store_of_aim_is_passed_over_with_how_its_runs_are_exported(tmp_path: Path, root: Path) -> None:
    write(tmp_path / ".aim" / "meta" / "chunks" / "log.csv", "step,loss\n0,4.0\n")
    for ignore in ([".*"], []):
        (entry,) = discover(tmp_path, SweepDeclaration(), ignore).passed_over
        assert (entry["name"], "docs/logs.md" in entry["reason"]) == (".aim", True)
    snippet = (
        (root / "docs" / "logs.md").read_text(encoding="utf-8").split("from aim import Repo", 1)[1].split("```", 1)[0]
    )
    compile(f"from aim import Repo{snippet}", "docs/logs.md", "exec")


def rows_of(path: Path, header: str, rows: list[str]) -> readers.RawLog:
    path.write_text("\n".join([header, *rows]) + "\n")
    return readers.read(str(path))


def test_tokens_of_a_batch_that_grows_once_are_no_sum(tmp_path: Path) -> None:
    rows = [f"{step},{4 - step / 1000},{262144 if step < 60 else 524288}" for step in range(100)]
    log = rows_of(tmp_path / "a.csv", "step,loss,num_tokens", rows)
    assert "tokens" not in log.columns
    assert log.columns["tokens_per_step"][[0, 99]].tolist() == [262144, 524288]


def test_a_loss_that_comes_near_0_may_be_0(tmp_path: Path) -> None:
    losses = [0.5, 0.0003, 0.0, 0.0001, 0.0, 0.2]
    log = rows_of(tmp_path / "a.csv", "step,train_loss", [f"{step},{loss}" for step, loss in enumerate(losses)])
    assert log.columns["train_loss"].tolist() == losses


@pytest.mark.parametrize("word", ["validate", "evaluate", "eval_step"])
def test_rows_that_say_they_are_evaluations_hold_validation_losses(word: str, tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    lines = [f'{{"type": "train", "step": {step}, "loss": {4 - step / 100}}}' for step in range(40)]
    lines += [f'{{"type": "{word}", "step": 20, "loss": 4.5}}']
    path.write_text("\n".join(lines) + "\n")
    log = readers.read(str(path))
    assert log.columns["val_loss"][-1] == 4.5 and np.isnan(log.columns["train_loss"][-1])
