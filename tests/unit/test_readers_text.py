"""Text logs: lines of trainers' standard output."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from tokenaxis import readers
from tokenaxis.errors import TokenAxisError
from tokenaxis.readers.cells import may_be_cut

STDOUT = (
    "step {n:4d}/100 | loss {loss} (+nanz)| norm 0.5000 (-0.10z)| lr 6.00e-04 | 42.10 ms | 32.1% bf16 MFU | 9 tok/s\n"
)


def read(folder: Path, text: str, name: str = "run.log") -> readers.RawLog:
    path = folder / name
    path.write_text(text, encoding="utf-8")
    return readers.read(str(path))


def codes(log: readers.RawLog) -> set[str]:
    return {notice.code for notice in log.warnings}


def facts(log: readers.RawLog) -> dict[str, object]:
    return {key: value for key, value, _, _ in log.facts}


def test_llmc_main_log_counts_from_0_and_eval_is_no_loss(tmp_path: Path) -> None:
    log = read(
        tmp_path,
        "s:0 tel:11.5\ns:0 trl:11.25 lr:0.000001 norm:14.5\ns:0 eval:0.25\ns:1 trl:11.0 lr:0.000002 norm:15.0\n",
    )
    assert log.format == "llmc-main"
    assert log.columns["step"].tolist() == [0, 0, 1]
    np.testing.assert_array_equal(log.columns["train_loss"], [np.nan, 11.25, 11.0])
    np.testing.assert_array_equal(log.columns["val_loss"], [11.5, np.nan, np.nan])
    assert log.lines.tolist() == [1, 2, 4]
    assert log.warnings == []


def test_llmc_main_log_cut_inside_its_last_line(tmp_path: Path) -> None:
    rows = "".join(f"s:{n} trl:4.5000 lr:0.000100 norm:1.50\n" for n in range(5))
    for tail in ("s:5 trl:4.4", "s:5 trl:4.4000 lr:0.0", "s:5 trl:4.4000 lr:0.000100 norm:1.", "s:5"):
        log = read(tmp_path, rows + tail)
        assert (log.rows_read, log.bad_lines) == (6, [6]), tail
    assert read(tmp_path, rows + "s:5 trl:4.4000 lr:0.000100 norm:1.50").bad_lines == []


def test_llmc_stdout_train_lines_count_from_1_and_val_lines_take_the_step_above(tmp_path: Path) -> None:
    text = "val loss 11.0\n" + STDOUT.format(n=1, loss="10.5") + STDOUT.format(n=2, loss="10.25") + "val loss 10.0\n"
    log = read(tmp_path, text)
    assert log.columns["step"].tolist() == [0, 0, 1, 2]
    np.testing.assert_array_equal(log.columns["train_loss"], [np.nan, 10.5, 10.25, np.nan])
    np.testing.assert_array_equal(log.columns["val_loss"], [11.0, np.nan, np.nan, 10.0])
    assert codes(log) == {"steps_one_based"}


def test_llmc_stdout_that_was_resumed_starts_where_it_resumed(tmp_path: Path) -> None:
    log = read(tmp_path, "val loss 5.0\n" + STDOUT.format(n=751, loss="4.5"))
    assert log.columns["step"].tolist() == [750, 750]


def test_llmc_stdout_keeps_a_loss_that_was_written_before_another_process_broke_in(tmp_path: Path) -> None:
    good = STDOUT.format(n=1, loss="4.5")
    cut = STDOUT.format(n=2, loss="4.25")
    log = read(tmp_path, good + cut[: cut.index(" lr")] + " lError: out of vocabulary\n" + cut[: cut.index(" (+nan")])
    np.testing.assert_array_equal(log.columns["train_loss"], [4.5, 4.25])
    assert np.isnan(log.columns["lr"]).tolist() == [False, True]
    assert log.bad_lines == [3]
    assert {"cut_lines", "incomplete_rows"} <= codes(log)


def test_llmc_stdout_header_becomes_facts_with_their_line(tmp_path: Path) -> None:
    header = "+---+\n| train data pattern    | x.bin |\n| sequence length T     | 1024  |\n"
    header += "| total batch size      | 524288 |\n"
    header += (
        "| device                | NVIDIA A100-PCIE-40GB |\n| peak TFlops           | 312.0 |\n| max_steps | -1 |\n"
    )
    log = read(tmp_path, header + STDOUT.format(n=1, loss="4.5"))
    assert ("tokens_per_step", 524288, "emitted", "header, line 4: total batch size") in log.facts
    assert facts(log)["seq_len"] == 1024
    assert facts(log)["peak_tflops"] == 312.0
    with pytest.raises(TokenAxisError, match="before its first"):
        read(tmp_path, header)


def test_build_nanogpt_hella_is_no_loss(tmp_path: Path) -> None:
    log = read(tmp_path, "0 val 10.9\n0 hella 0.24\n0 train 10.95\n1 train 10.5\n", "log.txt")
    assert log.columns["step"].tolist() == [0, 0, 1]
    np.testing.assert_array_equal(log.columns["train_loss"], [np.nan, 10.95, 10.5])
    assert log.rows_read == 3


def test_modded_nanogpt_skips_the_source_and_reads_settings_from_it(tmp_path: Path) -> None:
    text = "import torch\nclass Hyperparameters:\n    batch_size : int = 8*64 # in sequences\n"
    text += "    sequence_length : int = 1024\n"
    text += 'print(f"step:{step}/{n} train_loss:{x}")\n' + "step:0/10 val_loss:16.0 train_time:0ms step_avg:nanms\n"
    text += "step:1/10 train_loss:15.5 train_time:250ms step_avg:nanms\n"
    text += "step:2/10 train_loss:nan train_time:500ms step_avg:1ms\n"
    text += "step:2/10 val_loss:15.0 train_time:500ms step_avg:nanms\n"
    log = read(tmp_path, text, "a1b2.txt")
    assert log.columns["step"].tolist() == [0, 0, 1, 2]
    assert log.columns["elapsed_s"].tolist() == [0, 0.25, 0.5, 0.5]
    assert log.unusable["train_loss", "nan"].tolist() == [8]
    assert facts(log) == {"planned_steps": 10, "seq_len": 1024, "tokens_per_step": 524288}
    assert codes(log) == {"steps_one_based"}


def test_nanogpt_prefers_the_batch_loss_and_falls_back_to_the_mean(tmp_path: Path) -> None:
    head = "tokens per iteration will be: 491,520\nnumber of parameters: 123.59M\n"
    text = head + "step 0: train loss 10.9, val loss 10.8\niter 0: loss 10.85, time 9.1ms, mfu -100.00%\n"
    log = read(tmp_path, text)
    assert log.columns["step"].tolist() == [0, 0]
    np.testing.assert_array_equal(log.columns["train_loss"], [np.nan, 10.85])
    np.testing.assert_array_equal(log.columns["val_loss"], [10.8, np.nan])
    assert facts(log)["tokens_per_step"] == 491520
    log = read(tmp_path, "step 0: train loss 10.9, val loss 10.8\nstep 250: train loss 5.5, val loss 5.6\n")
    assert log.columns["train_loss"].tolist() == [10.9, 5.5]
    assert codes(log) == {"train_loss_is_a_mean"}


@pytest.mark.parametrize(
    ("last", "earlier", "cut"),
    [
        ("2.65", ["2.656", "2.512"], True),  # shorter than all
        ("2.65", ["2.656", "2.5"], True),  # of 2.651 to 2.659, or 2.65 itself
        ("2.656", ["2.656", "2.5"], False),
        ("3.9999998", ["3.12345678901", "3.5"], False),  # what may be missing is below the noise of any loss
        ("1.2", ["1.2e-05", "3e-05"], True),
        ("1.2e-0", ["1.25e-05", "3e-05"], True),
        ("3e-05", ["1.25e-05", "4e-05"], False),
        ("1000", ["99998", "99999"], True),  # a count that went down
        ("100000", ["99998", "99999"], False),
        ("2", ["2.656", "2"], True),
        ("nan", ["2.656", "2.5", "nan"], False),
    ],
)
def test_a_last_number_without_a_line_end_counts_as_cut_where_that_matters(
    last: str, earlier: list[str], cut: bool
) -> None:
    assert may_be_cut(last, earlier) is cut
