"""Real public logs: each is read, refused or passed over rightly, with its row counts and first and last values."""

from __future__ import annotations

import csv
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest

from tokenaxis import readers
from tokenaxis.declarations import Declaration
from tokenaxis.errors import TokenAxisError


@dataclass
class Log:
    """What a log holds: counted and looked up by hand or with other tools, not by a reader."""

    path: str
    reader: str
    rows: int
    steps: tuple[int, int]
    train: tuple[int, float, float] | None = None
    val: tuple[int, float, float] | None = None
    bad: int = 0


TB = "tensorboard-algoperf/external_tuning-"
BASELINE = TB + "baseline-study_0-wmt_jax-trial_1/events.out.tfevents.1707217112.cc812717dfc3.1498.0.v2"
NADAMP = TB + "nadamp-study_3-wmt_jax-trial_5/events.out.tfevents.1715906490.6507ef429751.1498.0.v2"
CYCLIC = TB + "cyclic_lr-study_2-wmt_pytorch-trial_2/events.out.tfevents.1720926707.f1cb9f7581e9.1566.0.v2"
LOGS = [
    Log("build-nanogpt/log.txt", "build-nanogpt", 96, (0, 94), (95, 10.934416, 7.321465), (1, 10.931, 10.931)),
    Log(
        "build-nanogpt/log_bigger.txt",
        "build-nanogpt",
        19151,
        (0, 19072),
        (19073, 11.087302, 2.941178),
        (78, 11.0864, 2.9147),
    ),
    Log("build-nanogpt/log_smaller.txt", "build-nanogpt", 19151, (0, 19072), (19073, 10.89043, 3.567126)),
    Log("build-nanogpt/log_no_warmup.txt", "build-nanogpt", 19151, (0, 19072), (19073, 10.95501, 3.181935)),
    Log("build-nanogpt/log_linear_lr.txt", "build-nanogpt", 19151, (0, 19072), (19073, 10.95501, 3.102417)),
    Log("build-nanogpt/log_shuffled.txt", "build-nanogpt", 19151, (0, 19072), (19073, 10.952208, 2.985119)),
    Log("build-nanogpt/log_group_weight_g2.txt", "build-nanogpt", 19151, (0, 19072), (19073, 10.934416, 3.101235)),
    Log(
        "csv-nanogpt-lab/20250418_150225_Baseline_60m__metrics.csv",
        "table",
        3031,
        (0, 3000),
        None,
        (31, 10.8258, 3.9303),
    ),
    Log(
        "csv-nanogpt-lab/20250418_190215_baseline_120m__metrics.csv",
        "table",
        4445,
        (0, 4400),
        None,
        (45, 10.8258, 3.4991),
    ),
    Log(
        "csv-nanogpt-lab/20250418_204839_Baseline_343m__metrics.csv",
        "table",
        4344,
        (0, 4300),
        None,
        (44, 10.8258, 3.1022),
    ),
    Log("hf-trainer-state/trainer_state.json", "hf-trainer-state", 435, (5, 2175), (435, 2.3475, 1.9787)),
    Log("jsonl-nsllm/trainer_log.jsonl", "jsonl", 435, (5, 2175), (435, 2.3475, 1.9787)),
    Log("jsonl-netra-nmt/train_log.jsonl", "jsonl", 1992, (50, 99400), (1989, 7.10175, 2.16813), (3, 2.69912, 2.32165)),
    Log("jsonl-netra-nmt/train_log_finetune.jsonl", "jsonl", 38, (32950, 34687), (35, 3.86211, 4.11895)),
    Log("llmc/siddanth-main.log", "llmc-main", 19632, (0, 19552), (19552, 11.0116, 3.2813), (80, 11.0095, 3.2731)),
    Log(
        "llmc/gpt2_train.11685414.log.gz",
        "llmc-stdout",
        19640,
        (0, 19560),
        (19560, 11.009662, 3.253402),
        (80, 11.007921, 3.264775),
    ),
    Log(
        "llmc/gpt2_train.11672114.log",
        "llmc-stdout",
        754,
        (0, 750),
        (750, 11.010252, 4.763922),
        (4, 11.008742, 4.723455),
    ),
    Log(
        "megatron-datablations/blowup-1-1793404.out",
        "megatron",
        4,
        (100, 300),
        (1, 8.863574, 8.863574),
        (3, 8.798237, 7.62845),
    ),
    Log(
        "megatron-datablations/blowup-4-alibi-bf16-nods-1814592.out",
        "megatron",
        113,
        (100, 7600),
        (38, 9.265682, 6.943269),
    ),
    Log("megatron-datablations/blowup-4-alibi-gpu1-1813779.out", "megatron", 21, (100, 1400), (3, 9.913251, 9.3459)),
    Log(
        "modded-nanogpt/8bfe4e35-c3fc-4b70-a984-3be937b71ff3.txt",
        "modded-nanogpt",
        5142,
        (0, 5100),
        (5100, 15.9932, 3.2774),
        (42, 16.0012, 3.2858),
    ),
    Log(
        "modded-nanogpt/8d6193f4-27fc-4e68-899f-af70019a4d54.txt",
        "modded-nanogpt",
        5142,
        (0, 5100),
        (5100, 16.0047, 3.2708),
        (42, 16.0104, 3.276),
    ),
    Log(
        "modded-nanogpt/95a9fd44-7c13-49c7-b324-3e7d9e23a499.txt",
        "modded-nanogpt",
        5142,
        (0, 5100),
        (5100, 15.9929, 3.3302),
        (42, 15.9936, 3.3406),
    ),
    Log(
        "modded-nanogpt/e21a2838-a0f2-46f2-a247-db0021165682.txt",
        "modded-nanogpt",
        5142,
        (0, 5100),
        (5100, 15.9606, 3.2656),
        (42, 15.9636, 3.2752),
    ),
    Log("multipowerlaw/csv_25/cosine_24000.csv", "table", 171, (2160, 23920), (171, 4.1114, 3.3044)),
    Log("multipowerlaw/csv_25/constant_72000.csv", "table", 546, (2176, 71936), (546, 4.0723, 3.2573)),
    Log("olmo-ladder/190M-1xC.csv", "table", 37, (200, 7272), None, (37, 6.029934883117676, 3.600973129272461)),
    Log("olmo-ladder/190M-1xC-rerun.csv", "table", 73, (100, 7272), None, (73, 6.888765811920166, 3.599918842315674)),
    Log(BASELINE, "tensorboard", 1390, (0, 133333)),
    Log(NADAMP, "tensorboard", 1108, (0, 106159)),
    Log(CYCLIC, "tensorboard", 53, (1, 120713)),
    Log("trainmeter/b8/events.jsonl", "trainmeter", 600, (0, 599)),
    Log("trainmeter/b32/events.jsonl", "trainmeter", 240, (0, 239)),
    Log("trainmeter/dyn/events.jsonl", "trainmeter", 300, (0, 299)),
    Log("trainmeter/kill/events.jsonl", "trainmeter", 171, (0, 170)),
    Log("trainmeter/resume/events.jsonl", "trainmeter", 200, (0, 199)),
    Log("trainmeter/tmkilled/events.jsonl", "trainmeter", 292, (0, 291)),
    Log("trainmeter/noagent/events.jsonl", "trainmeter", 20, (0, 19)),
    Log("trainmeter/ddp/events.jsonl", "trainmeter", 16, (0, 75), (16, 5.548592567443848, 3.0792629718780518)),
    Log("trainmeter/csv/kill_1.024Kbs.csv", "table", 371, (0, 299), (371, 5.713266, 2.441964)),
    Log("trainmeter/csv/dyn.csv", "table", 300, (0, 299), (299, 33.733051, 2.573063)),
    Log("wandb/run-jqe8zy9r.wandb", "wandb-offline", 13, (0, 2400), (13, 10.988554954528809, 3.643195867538452)),
]


@pytest.mark.parametrize("expected", LOGS, ids=[log.path.replace("/", ":") for log in LOGS])
def test_a_real_log_is_read_whole(shared: Path, expected: Log) -> None:
    path = shared / "logs" / expected.path
    found = readers.recognise(readers.sample(str(path)))
    assert found.reader is not None
    assert found.reader.name == expected.reader
    log = readers.read(str(path))
    assert (log.rows_read, len(log.bad_lines)) == (expected.rows, expected.bad)
    steps = log.columns["step"]
    assert (int(steps.min()), int(steps.max())) == expected.steps
    for name, wanted in (("train_loss", expected.train), ("val_loss", expected.val)):
        if wanted is not None:
            values = log.columns[name][~np.isnan(log.columns[name])]
            assert (len(values), values[0], values[-1]) == wanted


def test_a_run_whose_loss_is_nan_from_the_second_step_on_keeps_its_rows(shared: Path) -> None:
    log = readers.read(str(shared / "logs/llmc/gpt2_train.11679031.log.gz"))
    assert log.rows_read == 16256 + 66
    assert len(log.unusable["train_loss", "nan"]) == 16256
    assert "cut_lines" in {notice.code for notice in log.warnings}


def test_files_without_a_usable_row_are_refused_with_the_reason(shared: Path) -> None:
    logs = shared / "logs"
    cyclic = logs / f"{TB}cyclic_lr-study_2-wmt_pytorch-trial_2"
    for path, says in (
        (logs / "llmc/gpt2_train.11672072.log", "out of memory"),
        (logs / "wandb/run-18kjtmnl.wandb", "no history"),
        (logs / "wandb/export-runs-side-by-side.csv", "8 runs side by side"),
        (logs / "wandb/export-step-is-tokens.csv", "10 runs side by side"),
        (cyclic / "events.out.tfevents.1718689201.5bd39a1bcb6b.1566.0.v2", "without a scalar"),
        (cyclic / "events.out.tfevents.1718766485.eb5adb3816d9.1566.0.v2", "without a scalar"),
    ):
        with pytest.raises(TokenAxisError, match=says) as caught:
            readers.read(str(path))
        assert caught.value.remedy


def test_what_lies_beside_logs_is_passed_over(shared: Path) -> None:
    logs = shared / "logs"
    beside = [logs / "README.md", *(logs / "trainmeter").glob("*/*.md")]
    beside += [path for path in (logs / "trainmeter").glob("*/*.json")]
    assert len(beside) > 20
    for path in beside:
        found = readers.recognise(readers.sample(str(path)))
        assert found.passed_over is not None, path


@pytest.mark.parametrize(
    ("run", "table", "rows"),
    [("b8", "b8_512bs", 600), ("b32", "b32_2.048Kbs", 240), ("dyn", "dyn", 300), ("kill", "kill_1.024Kbs", 171),
     ("tmkilled", "tmk_512", 292), ("noagent", "na", 20)],
)  # fmt: skip
def test_every_loss_that_was_emitted_to_trainmeter_stands_on_its_step(
    shared: Path, run: str, table: str, rows: int
) -> None:
    log = readers.read(str(shared / f"logs/trainmeter/{run}/events.jsonl"))
    with open(shared / f"logs/trainmeter/csv/{table}.csv", newline="") as stream:
        truth = list(csv.DictReader(stream))[:rows]
    assert log.columns["step"].tolist() == [int(row["step"]) for row in truth]
    for name in ("train_loss", "val_loss", "lr"):
        expected = np.array([float(row[name] or "nan") for row in truth])
        # the table was written with six decimals
        np.testing.assert_allclose(log.columns[name], expected, atol=6e-7)


def test_the_tokens_of_a_growing_batch_are_those_of_each_step(shared: Path) -> None:
    log = readers.read(str(shared / "logs/trainmeter/dyn/events.jsonl"))
    assert log.columns["tokens_per_step"].sum() == 353_280


def test_ranks_multiply_the_tokens_of_a_step(shared: Path) -> None:
    log = readers.read(str(shared / "logs/trainmeter/ddp/events.jsonl"))
    assert set(log.columns["tokens_per_step"]) == {2 * 1024.0}


def test_megatron_counts_after_the_step_and_its_losses_may_be_missing(shared: Path) -> None:
    folder = shared / "logs/megatron-datablations"
    log = readers.read(str(folder / "blowup-4-alibi-bf16-nods-1814592.out"))
    assert log.tokens_convention == "after"
    tokens = dict(zip(log.columns["step"].tolist(), log.columns["tokens"].tolist(), strict=True))
    assert tokens[7600] == 1_278_848 * 2048
    batch = {
        step: size
        for step, size in zip(log.columns["step"], log.columns["tokens_per_step"], strict=True)
        if size == size
    }
    assert (batch[5200], batch[5400]) == (128 * 2048, 256 * 2048)
    # 715,648 - 665,600 samples in 200 iterations of 128 or 256: the batch grew after 9 of them
    assert batch[5300] == 256 * 2048
    assert tokens[5300] == (665_600 + 9 * 128 + 91 * 256) * 2048
    assert tokens[100] == 100 * 128 * 2048
    facts = {key: value for key, value, _, _ in log.facts}
    assert (facts["n_layers"], facts["d_model"], facts["n_heads"], facts["seq_len"]) == (24, 1024, 16, 2048)
    assert facts["train_loss_interval_steps"] == 200
    log = readers.read(str(folder / "blowup-4-alibi-gpu1-1813779.out"))
    train = ~np.isnan(log.columns["lr"])
    assert int(train.sum()) == 7
    assert int(np.isnan(log.columns["train_loss"][train]).sum()) == 4


def test_one_run_of_a_side_by_side_export_can_be_declared(shared: Path) -> None:
    path = str(shared / "logs/wandb/export-runs-side-by-side.csv")
    log = readers.read(path, Declaration(columns={"train_loss": "gpt2 - train/loss"}))
    assert log.rows_read == 386
    assert log.columns["train_loss"][[0, -1]].tolist() == [10.95404052734375, 3.2849113941192627]
    assert "step_is_log_index" in {notice.code for notice in log.warnings}
    shorter = "gpt2_char_to_token1729491541.2756786 - train/loss"
    assert readers.read(path, Declaration(columns={"train_loss": shorter})).rows_read < 386


def test_steps_come_from_tokens_where_only_these_were_logged_and_the_batch_is_declared(shared: Path) -> None:
    columns = {"tokens": "Step", "val_loss": "Group: k_is_10 - test-tokens/avg_loss"}
    path = str(shared / "logs/wandb/export-step-is-tokens.csv")
    log = readers.read(path, Declaration(columns=columns, tokens_per_step=2048))
    assert log.columns["tokens"].tolist() == [204800.0 * n for n in range(1, 11)]
    assert log.columns["step"].tolist() == [100.0 * n for n in range(1, 11)]


def test_the_config_of_an_offline_run_becomes_facts(shared: Path) -> None:
    log = readers.read(str(shared / "logs/wandb/run-jqe8zy9r.wandb"))
    facts = {key: value for key, value, _, _ in log.facts}
    assert (facts["n_layers"], facts["d_model"], facts["seq_len"], facts["tokens_per_step"]) == (12, 768, 1024, 491520)
    assert log.names["step"] == "iter"


def test_olmo_ladder_takes_the_first_validation_set_and_says_so(shared: Path) -> None:
    for path in sorted((shared / "logs/olmo-ladder").glob("*.csv")):
        log = readers.read(str(path))
        assert log.names["val_loss"] == "eval/c4_en-validation/CrossEntropyLoss"
        (notice,) = log.warnings
        assert notice.message.startswith("11 validation losses")
        # the count of tokens is exact
        np.testing.assert_array_equal(log.columns["tokens"], log.columns["step"] * log.columns["tokens_per_step"])
