"""Captured consoles: colours, carriage returns, what launchers put before lines, lines that stand more than once."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from tokenaxis import readers
from tokenaxis.axis import TokenAxis, build_axis
from tokenaxis.declarations import Declaration
from tokenaxis.errors import TokenAxisError
from tokenaxis.readers.extent import Extent, extent
from tokenaxis.readers.lines import lead, rank_of, visible


def read(folder: Path, text: str, name: str = "run.log") -> readers.RawLog:
    path = folder / name
    path.write_bytes(text.encode())
    return readers.read(str(path))


def axis_of(folder: Path, text: str, **declared: object) -> TokenAxis:
    declaration = Declaration(**declared)  # type: ignore[arg-type]
    return build_axis(read(folder, text), declaration, "run.log", "auto")


def codes(log: readers.RawLog) -> set[str]:
    return {notice.code for notice in log.warnings}


def facts(log: readers.RawLog) -> dict[str, object]:
    return {key: value for key, value, _, _ in log.facts}


def loss(step: int) -> str:
    return f"{4 - step / 100:.4f}"


def nanogpt(step: int) -> str:
    return f"iter {step}: loss {loss(step)}, time {40 + step % 7}.{step % 89}ms, mfu 10.07%"


def nanochat(step: int) -> str:
    return f"step {step:05d}/21400 (0.05%) | loss: {loss(step)} | lrm: 1.00 | dt: {300 + step}ms | tok/sec: 1,000"


def titan(step: int, rank: int = 0) -> str:
    row = f"step: {step:2d}  loss: {loss(step)}  grad_norm:  1.5  memory: 1GiB  tps: 4{rank}"
    return f"[rank{rank}]:[titan] - root - INFO - {row}"


def megatron(step: int) -> str:
    return (
        f" iteration {step:8d}/    5000 | consumed samples: {step * 8} | lm loss: {loss(step)}E+00 | grad norm: 1.0 |"
    )


def llmc(step: int) -> str:
    return f"step {step:4d}/900 | loss {loss(step)} (+0.1z)| norm 0.5 (+0.1z)| lr 6.00e-04 | {step}.1 ms | 9 tok/s"


def modded(step: int) -> str:
    return f"step:{step}/900 train_loss:{loss(step)} train_time:{step}ms step_avg:1.00ms"


@pytest.mark.parametrize("line", [nanogpt, nanochat, titan, megatron, llmc, modded])
@pytest.mark.parametrize(
    "before",
    ["[rank0]: ", "[default3]:", "0: ", " 12: ", "[1,0]<stdout>:", "worker-0: ", "2024-01-01 10:00:00,123 - INFO - "]
    + ["(Worker pid=77, ip=10.0.0.1) ", "[2024-01-01T10:00:00+0000] ", "10.1.2.3: "],
)
def test_what_a_launcher_puts_before_each_line_is_no_part_of_it(line, before: str, tmp_path: Path) -> None:
    plain = read(tmp_path, "".join(line(step) + "\n" for step in range(1, 30)))
    led = read(tmp_path, "".join(before + line(step) + "\n" for step in range(1, 30)))
    assert led.format == plain.format
    assert led.rows_read == plain.rows_read == 29
    assert led.names == plain.names
    for name, values in plain.columns.items():
        np.testing.assert_array_equal(led.columns[name], values, err_msg=name)


def test_the_numbers_before_lines_may_differ_from_line_to_line(tmp_path: Path) -> None:
    head = "2024-01-01 09:59:59,001 - INFO - tokens per iteration will be: 491,520\n"
    text = "".join(f"2024-01-01 10:00:{step:02d},{step * 7} - INFO - {nanogpt(step)}\n" for step in range(40))
    log = read(tmp_path, head + text)
    assert log.columns["step"].tolist() == list(range(40))
    assert facts(log)["tokens_per_step"] == 491520


def test_colours_and_cursor_moves_are_undone(tmp_path: Path) -> None:
    text = "".join(f"\x1b[32m{nanogpt(step)[:8]}\x1b[0m{nanogpt(step)[8:]}\x1b[A\n" for step in range(10, 30))
    assert read(tmp_path, text).columns["step"].tolist() == list(range(10, 30))
    sample = readers.sample(str(tmp_path / "run.log"))
    assert extent(sample, "nanogpt") == Extent(10, 29, 1)


def test_a_carriage_return_begins_a_line_but_counts_none(tmp_path: Path) -> None:
    text = "a header\n" + "\r".join(nanochat(step) for step in range(30)) + "\nthe end\n" + nanochat(30) + "\n"
    log = read(tmp_path, text)
    assert log.columns["step"].tolist() == list(range(31))
    assert log.lines.tolist() == [2] * 30 + [4]
    assert read(tmp_path, text.replace("\r", "\r\n")).lines.tolist() == [*range(2, 32), 33]


@pytest.mark.parametrize("behind", [0, 1])
def test_a_line_that_every_rank_writes_is_one_row_and_no_attempt(behind: int, tmp_path: Path) -> None:
    steps = [(step - behind * (rank == 3), rank) for step in range(1, 60) for rank in range(4)]
    named = "".join(titan(step, rank) + "\n" for step, rank in steps if step > 0)
    log = read(tmp_path, named)
    assert log.columns["step"].tolist() == list(range(59))
    assert "lines_of_other_ranks" in codes(log)
    nameless = named.replace("[rank0]:", "").replace("[rank1]:", "").replace("[rank2]:", "").replace("[rank3]:", "")
    log = read(tmp_path, nameless)
    assert sorted(log.columns["step"].tolist()) == list(range(59))
    assert "repeated_lines" in codes(log)
    axis = axis_of(tmp_path, nameless, tokens_per_step=8.0)
    assert len(axis.meta["attempts"]) == 1


def test_of_ranks_that_write_losses_of_their_own_the_lowest_counts(tmp_path: Path) -> None:
    lines = [f"[rank{rank}]: step {step} loss={4 - step / 100 + rank} x=1" for step in range(50) for rank in (1, 0, 2)]
    log = read(tmp_path, "\n".join(lines) + "\n")
    assert log.columns["train_loss"].tolist() == [4 - step / 100 for step in range(50)]
    assert "lines_of_other_ranks" in codes(log)


def test_a_job_that_was_resumed_on_other_ranks_keeps_the_lines_of_both(tmp_path: Path) -> None:
    text = "".join(f"[default7]:{megatron(step)}\n" for step in range(1, 40))
    text += "".join(f"[default3]:{megatron(step)}\n" for step in range(30, 60)).replace(
        "grad norm: 1.0", "grad norm: 2.0"
    )
    log = read(tmp_path, text)
    assert log.rows_read == 39 + 30
    assert "lines_of_other_ranks" not in codes(log)


def test_rows_that_a_screen_shows_again_are_no_resume(tmp_path: Path) -> None:
    lines = [nanochat(step) for step in range(40)]
    torn = " 301ms | tok/sec: 1,000"
    text = "\n".join([*lines[:20], *lines[17:20], torn, *lines[10:25], *lines[25:]]) + "\n"
    log = read(tmp_path, text)
    assert log.columns["step"].tolist() == list(range(40))
    assert "reprinted_lines" in codes(log)
    assert len(axis_of(tmp_path, text, tokens_per_step=8.0).meta["attempts"]) == 1


def test_steps_that_were_done_again_stay_an_attempt_also_with_the_same_losses(tmp_path: Path) -> None:
    again = "".join(nanogpt(step).replace("ms,", "9ms,") + "\n" for step in range(20, 50))
    text = "".join(nanogpt(step) + "\n" for step in range(40)) + again
    axis = axis_of(tmp_path, text, tokens_per_step=8.0)
    assert [attempt["first_step"] for attempt in axis.meta["attempts"]] == [0, 20]
    assert axis.meta["rows"]["superseded"] == 20


def test_a_log_without_times_keeps_equal_lines_as_an_attempt(tmp_path: Path) -> None:
    text = "".join(f"s:{step} trl:{loss(step)} lr:0.0001 norm:1.0\n" for step in [*range(30), *range(20, 40)])
    log = read(tmp_path, text)
    assert log.rows_read == 50
    assert not codes(log)


def test_a_second_header_changes_the_batch_of_the_rows_below_it(tmp_path: Path) -> None:
    one, two = ("tokens per iteration will be: 8,192\n", "tokens per iteration will be: 16,384\n")
    rows = "".join(nanogpt(step) + "\n" for step in range(30))
    more = "".join(nanogpt(step).replace("mfu", "mfu ") + "\n" for step in range(20, 50))
    log = read(tmp_path, one + rows + two + more)
    assert log.columns["tokens_per_step"].tolist() == [8192.0] * 30 + [16384.0] * 30
    assert "tokens_per_step" not in facts(log)
    assert axis_of(tmp_path, one + rows + two + more).columns["tokens"][-1] == 20 * 8192 + 29 * 16384
    assert facts(read(tmp_path, one + rows + one + more))["tokens_per_step"] == 8192


def test_a_rank_is_read_from_what_torchrun_srun_mpirun_and_deepspeed_write() -> None:
    heads = [b"[rank3]: x", b"[default3]:x", b"3: x", b"  3: x", b"[1,3]<stdout>:x", b"worker-3: x", b"[Rank 3] x"]
    assert [rank_of(head) for head in heads] == [3] * 7
    assert [rank_of(head) for head in (b"iter 3: loss", b"10:03:00 x", b"step 3: x", b"x")] == [None] * 4


def test_what_leads_a_line_is_found_once_and_fits_other_numbers() -> None:
    assert lead(b"x\niter 1: loss\n", rb"iter \d+") == b""
    assert lead(b"nothing\n", rb"iter \d+") == b""
    assert lead(b"[r0] 10:01: iter 1: loss\n", rb"iter \d+") == rb"\[r\d+\] +\d+:\d+: +"
    assert visible(b"\x1b[1;31ma\x1b[0m\rb") == b"a\nb"


def test_nanochat_forks_write_the_validation_loss_behind_the_bits_per_byte(tmp_path: Path) -> None:
    text = "".join(nanochat(step) + "\n" for step in range(0, 40, 10))
    text += "Step 00040 | Validation bpb: 0.863491 | val_loss: 2.833243\n"
    text += "step 00040/00040 (final) | loss: 2.839640 | early_stop: 0\n"
    log = read(tmp_path, text)
    assert (log.columns["step"][-1], log.columns["val_loss"][-1]) == (40, 2.833243)
    assert log.bad_lines == []
    assert "validation_in_bits_per_byte" not in {warning.code for warning in log.warnings}


def test_torchtitan_stages_of_a_pipeline_that_compute_no_loss_are_left_out(tmp_path: Path) -> None:
    first = [f"[rank0]:[titan] - root - INFO - step: {n:2d}  loss: -1.00000  grad_norm:  1.5\n" for n in range(1, 9)]
    last = [titan(n, 1) + "\n" for n in range(1, 9)]
    for text in ("".join(first + last), "".join(one + two for one, two in zip(first, last, strict=True))):
        log = read(tmp_path, text)
        assert (len(log.lines), log.columns["train_loss"].min() > 0) == (8, True)
        assert {"stages_without_loss"} <= {warning.code for warning in log.warnings}
    with pytest.raises(TokenAxisError, match="all -1") as caught:
        read(tmp_path, "".join(first))
    assert "last stage" in str(caught.value.remedy)


def test_torchtitan_states_its_batch_in_tokens_since_2026(tmp_path: Path) -> None:
    head = "[titan] - torchtitan.trainer - INFO - Trainer is initialized with 512 tokens per DP rank, 2048 tokens per "
    head += "train step, gradient accumulation steps 4, maximum context length 1024, total steps 10 (warmup 2)\n"
    log = read(tmp_path, head + "".join(titan(n) + "\n" for n in range(1, 9)))
    stated = {key: value for key, value, *_ in log.facts}
    assert (stated["tokens_per_step"], stated["seq_len"], stated["planned_steps"]) == (2048, 1024, 10)


def test_files_of_ranks_one_behind_the_other_are_no_second_run(tmp_path: Path) -> None:
    text = "".join(titan(n, rank) + "\n" for rank in (0, 1) for n in range(1, 20))
    log = read(tmp_path, text)
    assert (len(log.lines), "lines_of_other_ranks" in {warning.code for warning in log.warnings}) == (19, True)


def test_a_run_that_resumes_to_the_same_numbers_keeps_its_evaluations(tmp_path: Path) -> None:
    """A deterministic run writes the same validation lines again; they are of its second attempt."""

    def lines(first: int, last: int, clock: int) -> list[str]:
        found = []
        for step in range(first, last + 1):
            found.append(
                f" iteration {step:8d}/      40 | consumed samples: {step * 8:12d} | elapsed time per iteration (ms): "
                f"{clock + step}.5 | learning rate: 1.0E-04 | global batch size:     8 | lm loss: {4 - step / 50:.6E} |"
            )
            if step % 4 == 0:
                found.append(
                    f" validation loss at iteration {step} | lm loss value: {4.2 - step / 50:.6E} | lm loss PPL: 9 |"
                )
        return found

    path = tmp_path / "run.log"
    path.write_text("\n".join(lines(1, 12, 100) + lines(7, 16, 700)) + "\n")
    log = readers.read(str(path))
    evaluated = log.columns["step"][~np.isnan(log.columns["val_loss"])].tolist()
    assert sorted(set(evaluated)) == [4, 8, 12, 16]
    assert evaluated[-3:] == [8, 12, 16], "also by the attempt that counts"


def test_evaluation_words_before_a_loss_tell_whose_it_is(tmp_path: Path) -> None:
    path = tmp_path / "run.log"
    rows = [f"step {step} | train | loss: {4 - step / 100:.3f}" for step in range(0, 40)]
    path.write_text("\n".join([*rows, "step 39 | eval | loss: 5.100"]) + "\n")
    log = readers.read(str(path))
    assert log.columns["val_loss"][-1] == 5.1 and np.isnan(log.columns["train_loss"][-1])


@pytest.mark.parametrize(
    "row",
    [
        "step {step}/1000 | loss {loss:.4f} | val_loss {val:.4f} | lr 1e-4 | tokens {tokens}",
        "iter {step}: loss {loss:.4f}, val loss {val:.4f}, tokens {tokens}",
        "step {step} | loss: {loss:.4f} | val_loss: {val:.4f} | tokens: {tokens} | tok/sec: 100",
    ],
)
def test_lines_like_a_known_trainers_that_hold_more_are_read_by_their_names(row: str, tmp_path: Path) -> None:
    path = tmp_path / "run.log"
    steps = range(0, 200, 10)
    path.write_text(
        "".join(row.format(step=n, loss=4 - n / 100, val=5 - n / 100, tokens=n * 512) + "\n" for n in steps)
    )
    log = readers.read(str(path))
    assert log.columns["train_loss"].tolist() == [round(4 - n / 100, 4) for n in steps]
    assert log.columns["val_loss"].tolist() == [round(5 - n / 100, 4) for n in steps]
    assert log.columns["tokens"].tolist() == [n * 512 for n in steps]


def test_a_resumed_run_may_log_a_number_that_stands_above(tmp_path: Path) -> None:
    """Of two decimals some are equal by chance, others not; no step of the second attempt is a reprint."""
    first = [f"step={step} loss={4 - step / 100:.2f}" for step in range(100)]
    again = [f"step={step} loss={4 - step / 100 + 0.01 * (step % 3 == 1):.2f}" for step in range(60, 120)]
    path = tmp_path / "run.log"
    path.write_text("\n".join(first + again) + "\n")
    log = readers.read(str(path))
    assert log.columns["step"].tolist() == [*range(100), *range(60, 120)]
