"""Every public log, found as a sweep directory is and put on its token axis: rows, attempts, first and last values.

Rows and losses were counted and looked up with other tools; tokens follow from what shared/logs/README.md says of each.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tokenaxis.errors import TokenAxisError
from tokenaxis.stages.token_axis import axis_of
from tokenaxis.sweep.declared import SweepDeclaration
from tokenaxis.sweep.discover import Discovery, discover

NANO, BUILD = 57_344, 524_288


@dataclass
class Log:
    """A run: rows as (read, superseded, merged, kept), first and last step and tokens, losses (count, first, last)."""

    name: str
    rows: tuple[int, int, int, int]
    steps: tuple[int, int]
    tokens: tuple[float, float]
    train: tuple[int, float, float] | None = None
    val: tuple[int, float, float] | None = None
    attempts: int = 1
    declared: dict[str, Any] = field(default_factory=dict)


def fixed(batch: float) -> dict[str, Any]:
    return {"tokens_per_step": batch}


LOGS = [
    Log(
        "build-nanogpt/log_bigger.txt",
        (19151, 0, 78, 19073),
        (0, 19072),
        (0, 19072 * BUILD),
        (19073, 11.087302, 2.941178),
        (78, 11.0864, 2.9147),
        declared=fixed(BUILD),
    ),
    Log(
        "build-nanogpt/log.txt",
        (96, 0, 1, 95),
        (0, 94),
        (0, 94 * BUILD),
        (95, 10.934416, 7.321465),
        (1, 10.931, 10.931),
        declared=fixed(BUILD),
    ),
    Log(
        "csv-nanogpt-lab/20250418_204839_Baseline_343m__metrics.csv",
        (4344, 0, 43, 4301),
        (0, 4300),
        (0, 4300 * NANO),
        None,
        (44, 10.8258, 3.1022),
        declared=fixed(NANO),
    ),
    # means over five steps: step 5 stands for updates 0 to 4, in the middle of which two batches had been seen
    Log("hf-trainer-state/trainer_state.json", (435, 0, 0, 435), (2, 2172), (2000, 2_172_000), (435, 2.3475, 1.9787),
        declared=fixed(1000)),
    Log("jsonl-nsllm/trainer_log.jsonl", (435, 0, 0, 435), (2, 2172), (2000, 2_172_000), (435, 2.3475, 1.9787),
        declared=fixed(1000)),
    Log("jsonl-netra-nmt/train_log_finetune.jsonl", (38, 0, 1, 37), (32950, 34687), (32_950_000, 34_687_000),
        (35, 3.86211, 4.11895), declared=fixed(1000)),
    Log("llmc/gpt2_train.11685414.log.gz", (19640, 0, 79, 19561), (0, 19560), (0, 19560 * BUILD),
        (19560, 11.009662, 3.253402), (80, 11.007921, 3.264775)),
    Log("llmc/gpt2_train.11672114.log", (754, 0, 3, 751), (0, 750), (0, 750 * BUILD), (750, 11.010252, 4.763922),
        (4, 11.008742, 4.723455)),
    Log("llmc/siddanth-main.log", (19632, 0, 79, 19553), (0, 19552), (0, 19552 * BUILD), (19552, 11.0116, 3.2813),
        (80, 11.0095, 3.2731), declared=fixed(BUILD)),
    # the mean over iterations 1 to 200 of 128 sequences of 2048; the last validation after iteration 300
    Log("megatron-datablations/blowup-1-1793404.out", (4, 0, 0, 4), (99, 300), (99.5 * 128 * 2048, 300 * 128 * 2048),
        (1, 8.863574, 8.863574), (3, 8.798237, 7.62845)),
    Log("modded-nanogpt/8bfe4e35-c3fc-4b70-a984-3be937b71ff3.txt", (5142, 0, 41, 5101), (0, 5100), (0, 5100 * BUILD),
        (5100, 15.9932, 3.2774), (42, 16.0012, 3.2858), declared=fixed(BUILD)),
    Log("multipowerlaw/csv_25/cosine_24000.csv", (171, 0, 0, 171), (2160, 23920), (2_160_000, 23_920_000),
        (171, 4.1114, 3.3044), declared=fixed(1000)),
    Log("olmo-ladder/760M-5xC.csv", (116, 0, 0, 116), (500, 57858), (500 * 1_310_720, 57858 * 1_310_720), None,
        (116, 4.724335670471191, 3.0045387744903564)),
    Log("tensorboard-algoperf/external_tuning-baseline-study_0-wmt_jax-trial_1", (1390, 0, 0, 1390), (0, 133333),
        (0, 133_333_000), declared=fixed(1000)),
    Log("trainmeter/b8/events.jsonl", (600, 0, 0, 600), (0, 599), (0, 599 * 512)),
    Log("trainmeter/b32/events.jsonl", (240, 0, 0, 240), (0, 239), (0, 239 * 2048)),
    # 353,280 tokens in all, the last step 2048 of them; NaN at step 50
    Log("trainmeter/dyn/events.jsonl", (300, 0, 0, 300), (0, 299), (0, 353_280 - 2048)),
    Log("trainmeter/kill/events.jsonl", (171, 0, 0, 171), (0, 170), (0, 170 * 1024)),
    Log("trainmeter/csv/kill_1.024Kbs.csv", (371, 71, 0, 300), (0, 299), (0, 299 * 1024), (300, 5.713266, 2.441964),
        attempts=2),
    Log("trainmeter/csv/dyn.csv", (300, 0, 0, 300), (0, 299), (0, 353_280 - 2048), (299, 33.733051, 2.573063)),
    Log("wandb/run-jqe8zy9r.wandb", (13, 0, 0, 13), (0, 2400), (0, 2400 * 491_520), (13, 10.988554954528809,
        3.643195867538452)),
    Log("wandb/export-runs-side-by-side.csv:gpt2", (386, 0, 0, 386), (0, 385), (0, 385_000), declared=fixed(1000)),
]  # fmt: skip
#: said in logs/README.md not to be in the log: what is refused until it is declared
WITHOUT_BATCH = (
    "build-nanogpt/", "csv-nanogpt-lab/", "hf-trainer-state/", "jsonl-", "llmc/siddanth", "multipowerlaw/",
    "modded-nanogpt/", "tensorboard-algoperf/", "trainmeter/csv/na.csv", "trainmeter/csv/tmk", "trainmeter/noagent/",
    "wandb/export-",
)  # fmt: skip
WITHOUT_ROWS = {"llmc/gpt2_train.11672072.log": "out of memory", "wandb/run-18kjtmnl.wandb": "no history"}


@pytest.fixture(scope="module")
def found(shared: Path) -> Discovery:
    return discover(shared / "logs", SweepDeclaration(), [".*"])


@pytest.mark.parametrize("log", LOGS, ids=[log.name.replace("/", ":") for log in LOGS])
def test_a_public_log_has_its_rows_attempts_tokens_and_losses(shared: Path, found: Discovery, log: Log) -> None:
    run = next(run for run in found.runs if run.name == log.name)
    axis = axis_of(shared / "logs", run.as_record() | {"declared": log.declared}, "auto")
    rows = axis.meta["rows"]
    assert (rows["read"], rows["superseded"], rows["merged"], rows["kept"]) == log.rows
    assert rows["bad"] == 0
    assert len(axis.meta["attempts"]) == log.attempts
    assert (int(axis.columns["step"][0]), int(axis.columns["step"][-1])) == log.steps
    assert (axis.columns["tokens"][0], axis.columns["tokens"][-1]) == log.tokens
    for name, wanted in (("train_loss", log.train), ("val_loss", log.val)):
        if wanted is not None:
            values = axis.columns[name][~np.isnan(axis.columns[name])]
            assert (len(values), values[0], values[-1]) == wanted


def test_every_other_file_is_passed_over_with_what_it_is(found: Discovery) -> None:
    assert found.refused == []
    reasons = {entry["name"].rsplit("/", 1)[-1]: entry["reason"] for entry in found.passed_over}
    assert reasons["README.md"] == "documentation"
    assert reasons["meta.json"] == "JSON without a history of losses"
    assert sum("event file without a scalar" in entry["reason"] for entry in found.passed_over) == 2


def test_only_what_the_logs_do_not_say_has_to_be_declared(shared: Path, found: Discovery) -> None:
    for run in found.runs:
        refusal = None
        try:
            axis_of(shared / "logs", run.as_record(), "auto")
        except TokenAxisError as error:
            refusal = error
        if run.name in WITHOUT_ROWS:
            assert refusal is not None
            assert WITHOUT_ROWS[run.name] in refusal.reason
        elif run.name.startswith(WITHOUT_BATCH):
            assert refusal is not None, run.name
            assert "batch size is unknown" in refusal.reason
            assert "tokens_per_step:" in str(refusal.remedy)
        else:
            assert refusal is None, f"{run.name}: {refusal}"
