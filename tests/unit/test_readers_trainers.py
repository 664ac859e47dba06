"""Standard output of trainers, each as one of them writes it: steps, losses, tokens and facts."""

from __future__ import annotations

import json
import math
from pathlib import Path

import numpy as np
import pytest

from tokenaxis import readers
from tokenaxis.axis import TokenAxis, build_axis
from tokenaxis.declarations import Declaration
from tokenaxis.errors import TokenAxisError
from tokenaxis.readers.base import IntervalMean
from tokenaxis.readers.extent import Extent, extent


def read(folder: Path, text: str, name: str = "run.log", **declared: object) -> readers.RawLog:
    path = folder / name
    path.write_text(text, encoding="utf-8")
    return readers.read(str(path), Declaration(**declared))  # type: ignore[arg-type]


def axis_of(folder: Path, text: str, **declared: object) -> TokenAxis:
    declaration = Declaration(**declared)  # type: ignore[arg-type]
    return build_axis(read(folder, text, **declared), declaration, "run.log", "auto")


def codes(log: readers.RawLog) -> set[str]:
    return {notice.code for notice in log.warnings}


def facts(log: readers.RawLog) -> dict[str, object]:
    return {key: value for key, value, _, _ in log.facts}


def steps_of(folder: Path, reader: str, name: str = "run.log") -> Extent | None:
    return extent(readers.sample(str(folder / name)), reader)


# --- Hugging Face Trainer


def bar(step: int, total: int = 60) -> str:
    return f" {100 * step // total:2d}%|██▌       | {step}/{total} [01:{step % 60:02d}<05:58,  1.89s/it]"


def mapping(step: int, key: str = "loss", more: str = "") -> str:
    return f"{{'{key}': {4 - step / 100:.4f}, 'learning_rate': 4.75e-05{more}, 'epoch': {step / 100:.2f}}}"


def test_hf_mappings_take_the_step_of_the_bar_that_is_drawn_again_behind_them(tmp_path: Path) -> None:
    text = "Map: 100%|██████████| 2500/2500 [00:00<00:00, 9258.81 examples/s]\n"
    for step in range(1, 61):
        # the bar before a mapping may be old: tqdm does not draw every step
        text += "\r" + bar(step) if step % 3 else ""
        if step % 10 == 0:
            text += "\r" + " " * 30 + "\r" + mapping(step) + "\n\r" + bar(step)
        if step % 20 == 0:
            text += "\n\r  0%|          | 0/8 [00:00<?, ?it/s]\r100%|██| 8/8 [00:01<00:00, 8.00it/s]\x1b[A\r"
            text += mapping(step, "eval_loss") + "\n\r" + bar(step)
    text += "\n{'train_runtime': 17.0, 'train_loss': 1.0, 'epoch': 2.0}\n"
    log = read(tmp_path, text)
    assert log.format == "hf-stdout"
    train = ~np.isnan(log.columns["train_loss"])
    assert log.columns["step"][train].tolist() == [10, 20, 30, 40, 50, 60]
    assert log.columns["step"][~train].tolist() == [20, 40, 60]
    assert log.means == {"train_loss": IntervalMean(None, counted_after=True)}
    assert facts(log)["planned_steps"] == 60


def test_hf_mappings_behind_a_bar_on_their_line_take_its_step(tmp_path: Path) -> None:
    log = read(tmp_path, "".join(bar(step) + mapping(step) + "\n" for step in range(10, 60, 10)))
    assert log.columns["step"].tolist() == [10, 20, 30, 40, 50]
    assert steps_of(tmp_path, "hf-stdout") == Extent(10, 50, 10)


def test_hf_mappings_that_name_their_step_need_no_bar(tmp_path: Path) -> None:
    swift = "".join(mapping(step, more=f", 'global_step/max_steps': '{step}/60'") + "\n" for step in (1, 5, 10))
    log = read(tmp_path, swift)
    assert (log.columns["step"].tolist(), facts(log)["planned_steps"]) == ([1, 5, 10], 60)
    assert steps_of(tmp_path, "hf-stdout") == Extent(1, 10, 4)


def test_hf_mappings_without_steps_point_to_trainer_state(tmp_path: Path) -> None:
    with pytest.raises(TokenAxisError, match="epochs and no steps") as caught:
        read(tmp_path, "".join(mapping(step) + "\n" for step in range(10, 60, 10)))
    assert "trainer_state.json" in str(caught.value.remedy)


def test_hf_batch_is_that_of_the_header_with_a_declared_length(tmp_path: Path) -> None:
    head = "  Total train batch size (w. parallel, distributed & accumulation) = 64\n"
    rows = "".join(bar(step) + mapping(step) + "\n" for step in range(10, 60, 10))
    axis = axis_of(tmp_path, head + rows, seq_len=2048)
    assert axis.columns["tokens_per_step"][0] == 64 * 2048


def test_hf_losses_of_a_policy_are_said_to_be_none(tmp_path: Path) -> None:
    log = read(tmp_path, "".join(bar(s) + mapping(s, more=", 'reward': 1.0") + "\n" for s in range(10, 60, 10)))
    assert "loss_of_a_policy" in codes(log)


def test_hf_losses_that_stand_apart_from_their_bar_are_refused(tmp_path: Path) -> None:
    text = "".join(bar(step) for step in range(1, 61)) + "\n"
    with pytest.raises(TokenAxisError, match="apart from its progress bar") as caught:
        read(tmp_path, text + "".join(mapping(step) + "\n" for step in range(10, 60, 10)))
    assert "trainer_state.json" in str(caught.value.remedy)


def test_hf_batch_of_unsloth_is_known(tmp_path: Path) -> None:
    head = "   \\\\   /|    Num examples = 2,975 | Num Epochs = 2 | Total steps = 60\n"
    head += "\\        /    Data Parallel GPUs = 1 | Total batch size (2 x 8 x 1) = 16\n"
    log = read(tmp_path, head + "".join(bar(step) + mapping(step) + "\n" for step in range(10, 60, 10)))
    assert (facts(log)["sequences_per_step"], facts(log)["planned_steps"]) == (16, 60)


# --- NeMo


def nemo(step: int, iteration: int | None = None, epoch: int = 0, val: float | None = None) -> str:
    row = f"Training epoch {epoch}, iteration {step if iteration is None else iteration}/99 | lr: 1.5e-07 | "
    row += f"global_batch_size: 8 | global_step: {step} | reduced_train_loss: {4 - step / 100:.4g} | "
    row += f"train_step_timing in s: 0.5 | consumed_samples: {8 * step + 8}"
    return row + ("" if val is None else f" | val_loss: {val} | val_ppl: 17.57") + "\n"


def test_nemo_counts_from_0_and_its_samples_hold_the_batch(tmp_path: Path) -> None:
    text = "".join(nemo(step) for step in range(30))
    axis = axis_of(tmp_path, text, seq_len=2048)
    assert axis.columns["step"].tolist() == list(range(30))
    assert axis.columns["tokens"].tolist() == [8 * 2048 * step for step in range(30)]
    assert axis.columns["tokens_per_step"][0] == 8 * 2048
    assert "seq_len_unknown" in codes(read(tmp_path, text))
    assert facts(read(tmp_path, text))["planned_steps"] == 100


def test_nemo_steps_go_on_through_epochs_and_no_end_is_guessed(tmp_path: Path) -> None:
    log = read(tmp_path, "".join(nemo(step, step % 100, step // 100) for step in range(0, 300, 10)))
    assert log.columns["step"].tolist() == list(range(0, 300, 10))
    assert "planned_steps" not in facts(log)
    assert steps_of(tmp_path, "nemo") == Extent(0, 290, 10)


def test_nemo_shows_a_validation_loss_until_the_next_but_it_is_one(tmp_path: Path) -> None:
    values = [None] * 5 + [2.5] * 5 + [2.25] * 5
    log = read(tmp_path, "".join(nemo(step, val=val) for step, val in enumerate(values)))
    seen = ~np.isnan(log.columns["val_loss"])
    assert log.columns["step"][seen].tolist() == [5, 10]
    assert log.columns["val_loss"][seen].tolist() == [2.5, 2.25]


def test_nemo_1_is_read_from_its_bar(tmp_path: Path) -> None:
    rows = (
        f"Epoch 0: :   0%|          | {step + 1}/300 [00:10<8:00, v_num=, reduced_train_loss={4 - step / 100:.3f}, "
        f"global_step={step:.1f}, consumed_samples={(step + 1) * 256:.1f}]"
        for step in range(40)
    )
    log = read(tmp_path, "\r".join(rows), seq_len=10)
    assert log.columns["step"].tolist() == list(range(40))
    assert log.columns["tokens"].tolist() == [2560.0 * (step + 1) for step in range(40)]


# --- MaxText


def maxtext(step: int, more: str = "") -> str:
    head = f"I0317 10:00:13.224641 1253 metric_logger.py:181] completed step: {step}, seconds: 0.434, "
    return head + f"TFLOP/s/device: 3.2, Tokens/s/device: 129.1, total_weights: 30193, loss: {4 - step / 100}{more}\n"


def test_maxtext_counts_from_0_and_its_evaluation_comes_after_the_update(tmp_path: Path) -> None:
    text = "Config param global_batch_size_to_train_on: 8\nConfig param max_target_length: 4096\n"
    text += "Config param num_experts: 1\n" + "".join(maxtext(step) for step in range(5))
    log = read(tmp_path, text + "eval metrics after step: 4, loss=9.855, total_weights=75264.0\n" + maxtext(5))
    assert log.format == "maxtext"
    assert log.columns["step"].tolist() == [0, 1, 2, 3, 4, 5, 5]
    np.testing.assert_array_equal(log.columns["val_loss"], [np.nan] * 5 + [9.855, np.nan])
    assert facts(log)["tokens_per_step"] == 8 * 4096
    assert "moe_experts" not in facts(log)


def test_maxtext_with_multi_token_prediction_gives_the_models_own_loss(tmp_path: Path) -> None:
    log = read(tmp_path, "".join(maxtext(step, ", main_model_loss: 2.5, mtp_loss: 1.5") for step in range(5)))
    assert log.columns["train_loss"].tolist() == [2.5] * 5


# --- Composer


def composer(batch: int, before: str = "") -> str:
    values = (f"time/batch: {batch - 1}", f"time/token: {(batch - 1) * 4096}", f"loss/train/total: {4 - batch / 100}")
    values += ("metrics/train/LanguageCrossEntropy: 3.0", "lr-DecoupledAdamW/group0: 0.0006")
    return f"{before}[batch={batch}/900]:\n" + "".join(f"{before}\t Train {value}\n" for value in values)


@pytest.mark.parametrize("before", ["", "0: "])
def test_composer_counts_the_batch_and_its_tokens_do_not(before: str, tmp_path: Path) -> None:
    text = "".join(composer(batch, before) for batch in range(1, 10))
    text += f"{before}[Eval batch=3/3] Eval on eval data:\n{before}\t Eval metrics/eval/LanguageCrossEntropy: 3.25\n"
    text += composer(10, before)
    log = read(tmp_path, text)
    assert log.columns["step"].tolist() == [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 9]
    assert log.columns["val_loss"][9] == 3.25
    assert log.columns["train_loss"][0] == 3.99
    axis = axis_of(tmp_path, text)
    assert axis.columns["tokens"].tolist() == [4096.0 * step for step in range(10)]
    assert axis.columns["lr"][0] == 0.0006
    assert facts(log)["planned_steps"] == 900


def test_old_composer_has_a_value_a_line(tmp_path: Path) -> None:
    text = "".join(
        f"[batch={b}/900]: trainer/global_step: {b}\n[batch={b}/900]: loss/train/total: {4 - b / 100}\n"
        for b in range(1, 9)
    )
    log = read(tmp_path, text)
    assert log.columns["step"].tolist() == list(range(8))
    assert log.columns["train_loss"][-1] == 3.92
    assert steps_of(tmp_path, "composer") == Extent(1, 8, 1)


# --- fairseq


def fairseq(updates: int, wpb: float = 16384, **more: float) -> str:
    loss = 12 - updates / 1000
    row = {"epoch": 1, "update": 0.25, "loss": f"{loss:.3f}", "ppl": f"{2**loss:.2f}", "wpb": f"{wpb:g}"}
    row |= {"num_updates": str(updates), "lr": "0.0005", "gnorm": "1.2"} | {k: f"{v:.3f}" for k, v in more.items()}
    return "2021-03-08 12:31:36 | INFO | train_inner | " + json.dumps(row) + "\n"


def test_fairseq_losses_become_nats_and_validation_comes_with_its_update(tmp_path: Path) -> None:
    valid = '2021-03-08 12:43:15 | INFO | valid | {"epoch": 1, "valid_loss": "10.0", "valid_ppl": "1024", '
    valid += '"valid_num_updates": "300"}\n'
    log = read(tmp_path, "".join(fairseq(updates) for updates in (100, 200, 300)) + valid)
    assert log.columns["step"].tolist() == [100, 200, 300, 300]
    np.testing.assert_allclose(log.columns["train_loss"][:3], np.array([11.9, 11.8, 11.7]) * math.log(2), rtol=1e-12)
    assert log.columns["val_loss"][3] == pytest.approx(10 * math.log(2), rel=1e-12)
    assert codes(log) == {"loss_in_base_two"}
    assert log.columns["tokens_per_step"][0] == 16384
    assert steps_of(tmp_path, "fairseq") == Extent(100, 300, 100)


def test_fairseq_in_its_simple_form_and_with_batches_of_different_sizes(tmp_path: Path) -> None:
    rows = (
        f"2023-06-13 17:31:08 | INFO | train_inner | epoch 003:     85 / 282 loss=3.0, nll_loss=2.0, ppl=4, wps=7.3, "
        f"wpb={60000 + n}, bsz=2.3, num_updates={n}, lr=0.0001, gnorm=0.5, clip=0\n"
        for n in (100, 200, 300)
    )
    valid = (
        "2023-06-13 17:40:08 | INFO | valid | epoch 003 | valid on 'valid' subset | loss 3.5 | nll_loss 2.5 | ppl 5.66 "
    )
    log = read(tmp_path, "".join(rows) + valid + "| wps 9 | num_updates 300 | best_loss 3.4\n")
    assert log.columns["train_loss"][0] == pytest.approx(3 * math.log(2), rel=1e-12)
    assert log.columns["val_loss"][3] == pytest.approx(3.5 * math.log(2), rel=1e-12)
    assert facts(log)["tokens_per_step"] == 60200


def test_fairseq_experts_loss_is_without_the_gates_part(tmp_path: Path) -> None:
    text = "".join(
        fairseq(updates, inner_loss=10.0).replace(f'"ppl": "{2 ** (12 - updates / 1000):.2f}"', '"ppl": "1024"')
        for updates in (100, 200, 300)
    )
    assert read(tmp_path, text).columns["train_loss"][0] == pytest.approx(10 * math.log(2), rel=1e-12)


# --- nanotron, torchtune and others by name


def nanotron(step: int) -> str:
    head = f"06/01/2024 10:00:00 [INFO|DP=0|PP=0|TP=0|node-1]: iteration: {step} / 900 | "
    head += f"consumed_tokens: {step * 0.262:.3g}M"
    return head + f" | tokens_per_sec: 22K | global_batch_size: 262K | lm_loss: {4 - step / 100:.3g} | lr: 2e-05 |\n"


def test_nanotron_rounds_its_tokens_so_that_the_batch_comes_from_its_configuration(tmp_path: Path) -> None:
    text = "".join(nanotron(step) for step in range(1, 20))
    log = read(tmp_path, text)
    assert log.columns["step"].tolist() == list(range(19))
    assert "tokens" not in log.columns
    assert {"batch_is_rounded", "steps_one_based"} <= codes(log)
    head = "Config(parallelism=ParallelismArgs(dp=8, pp=1, tp=2), tokens=TokensArgs(sequence_length=2048, "
    head += "train_steps=900, micro_batch_size=4, batch_accumulation_per_replica=4))\n"
    assert facts(read(tmp_path, head + text))["tokens_per_step"] == 8 * 2048 * 4 * 4


@pytest.mark.parametrize(
    "line",
    [
        "Step {n} | loss:{loss} lr:2e-05 tokens_per_second_per_gpu:1234.5 peak_memory_active:12.3 ",
        "0: INFO    24-11-01 10:00:00.123 - 0:01:00 - step: {n} acc: 0  loss: {loss}  grad: 1.2e+00  lr: 3.0e-04",
        "2024-06-01 - 0:01:12 - train - INFO - step: {n:06d} - done (%): 0.1 - loss: {loss} - lr: 2.4e-06 - ETA: >1",
    ],
)
def test_trainers_that_count_an_update_before_its_loss_are_known(line: str, tmp_path: Path) -> None:
    log = read(tmp_path, "".join(line.format(n=n, loss=f"{4 - n / 100:.3f}") + "\n" for n in range(1, 20)))
    assert log.columns["step"].tolist() == list(range(19))
    assert "steps_one_based" in codes(log)


def test_losses_that_only_a_progress_bar_shows_are_refused_for_what_they_are(tmp_path: Path) -> None:
    bars = "\r".join(
        f"Epoch 0:  10%|█    | {n}/1000 [00:10<01:30,  9.9it/s, train_loss_step={4 - n / 100}]" for n in range(60)
    )
    with pytest.raises(TokenAxisError, match="progress bar"):
        read(tmp_path, bars)


# --- what known formats were found to write besides


def test_build_nanogpt_prints_a_validation_loss_before_the_line_of_its_step(tmp_path: Path) -> None:
    text = "total desired batch size: 524288\nvalidation loss: 10.9545\n"
    row = "step {n:5d} | loss: {loss:.6f} | lr 1.0e-04 | norm: 1.2345 | dt: 123.4ms | tok/sec: 1500000.00\n"
    text += "".join(row.format(n=n, loss=4 - n / 100) for n in range(3)) + "validation loss: 3.5\n"
    text += row.format(n=3, loss=3.0) + "validation loss: 3.25\n"
    log = read(tmp_path, text)
    assert log.format == "build-nanogpt"
    seen = ~np.isnan(log.columns["val_loss"])
    assert log.columns["step"][seen].tolist() == [0, 3, 4]
    assert facts(log)["tokens_per_step"] == 524288


def test_nanogpt_forks_add_fields_and_leave_out_the_train_loss(tmp_path: Path) -> None:
    text = "".join(f"iter {n}: loss {4 - n / 100:.4f}, grad_norm 2.5, lr 6.00e-05, time 9.1ms\n" for n in range(5))
    log = read(
        tmp_path, text + "Step 4: val loss 3.5\nstep 5: train loss 3, train perplexity 20, val loss 3.25, val ppl 1\n"
    )
    assert log.columns["lr"][:5].tolist() == [6e-5] * 5
    assert log.columns["grad_norm"][:5].tolist() == [2.5] * 5
    assert log.columns["val_loss"][-2:].tolist() == [3.5, 3.25]


def test_nanochat_settings_of_the_model_and_fine_tuning_are_read(tmp_path: Path) -> None:
    head = (
        'Model config:\n{\n  "sequence_len": 512,\n  "n_layer": 16,\n  "n_embd": 1024\n}\ntotal       : 285,214,240\n'
    )
    row = "step 00000/21400 (0.00%) | loss: 9.1 | lrm: 1.00 | dt: 1ms\n"
    wanted = {"seq_len": 512, "n_layers": 16, "d_model": 1024, "n_params": 285214240, "planned_steps": 21400}
    assert facts(read(tmp_path, head + row + row.replace("00000", "00001"))) == wanted
    text = "Step 00000 | Validation loss: 1.5\n"
    text += "".join(
        f"Step {n:05d}/00701 | Training loss: {2 - n / 100:.6f}| lrm: 0.9| num_tokens: 12,345\n" for n in range(9)
    )
    log = read(tmp_path, text)
    assert log.columns["step"].tolist() == [0, *range(9)]
    assert log.columns["val_loss"][0] == 1.5
    assert "tokens" not in log.columns


def test_autoresearch_states_its_batch_at_the_end(tmp_path: Path) -> None:
    text = "\r".join(f"step {n:05d} (1.0%) | loss: {4 - n / 1000:.6f} | lrm: 1.00 | dt: {n}ms    " for n in range(953))
    log = read(tmp_path, text + "\n---\nval_bpb:          0.9979\ntotal_tokens_M:   499.6\nnum_steps:        953\n")
    assert log.rows_read == 953
    assert ("tokens_per_step", 524288, "detected") in [fact[:3] for fact in log.facts]


GOLF = (
    "model_params:17059912\nworld_size:8 grad_accum_steps:1\nattention_mode:gqa num_heads:8 num_kv_heads:4\n"
    "train_batch_tokens:524288 train_seq_len:1024 iterations:20000 warmup_steps:20 max_wallclock_seconds:600.000\n"
    "warmup_step:1/20\nstep:0/20000 val_loss:6.9370 val_bpb:4.0978 train_time:0ms step_avg:0.01ms\n"
    "step:200/20000 train_loss:2.8041 train_time:8677ms step_avg:43.38ms\n"
    "step:200/20000  val_loss:2.8397 val_bpb:1.6774 train_time:8699ms step_avg:43.49ms\n"
    "stopping_early: wallclock_cap train_time:600038ms step:13780/20000\n"
    "final_int8_zlib_roundtrip val_loss:2.0727 val_bpb:1.2244 eval_time:1401ms\n"
)


def test_parameter_golf_prints_its_settings_and_bits_per_byte_beside_the_loss(tmp_path: Path) -> None:
    log = read(tmp_path, GOLF)
    assert log.format == "modded-nanogpt"
    assert log.columns["step"].tolist() == [0, 199, 200]
    assert log.columns["elapsed_s"].tolist() == [0, 8.677, 8.699]
    wanted = {"tokens_per_step": 524288, "seq_len": 1024, "world_size": 8, "n_params": 17059912}
    assert facts(log) == wanted | {"n_heads": 8, "n_kv_heads": 4, "planned_steps": 20000}


SOURCE = """class Hyperparameters:
    train_bs_schedule: tuple = (8 * 2048 * 8, 16 * 2048 * 8, 24 * 2048 * 8)
    train_bs_extension: int = 24 * 2048 * 8
    num_scheduled_iterations: int = 1735
    num_extension_iterations: int = 40
def get_bs(step: int):
    if step >= args.num_scheduled_iterations:
        return args.train_bs_extension
    x = step / args.num_scheduled_iterations
    bs_idx = int(len(args.train_bs_schedule) * x)
    return args.train_bs_schedule[bs_idx]
"""


def test_modded_nanogpt_batches_that_grow_are_counted_from_the_source(tmp_path: Path) -> None:
    rows = "".join(f"step:{n}/1775 val_loss:{4 - n / 1000:.4f} train_time:{n}ms\n" for n in (0, 250, 750, 1750, 1775))
    axis = axis_of(tmp_path, SOURCE + rows)
    sizes = [131072] * 579 + [262144] * 578 + [393216] * 618  # int(3 * step / 1735) of each step, then the extension
    assert axis.columns["tokens"].tolist() == [float(sum(sizes[:n])) for n in (0, 250, 750, 1750, 1775)]
    assert axis.columns["tokens_per_step"].tolist()[:3] == [131072, 131072, 262144]
    log = read(tmp_path, SOURCE.replace("bs_idx = int", "bs_idx = round") + rows)
    assert "tokens" not in log.columns
    assert "batch_schedule_unknown" in codes(log)


@pytest.mark.parametrize(
    ("source", "batch"),
    [
        ("    train_batch_size: int = 2048 * 16 * 8\n", 262144),
        (
            "    train_seq_len = 48*1024 # FlexAttention\nassert world_size == 8\nf(world_size * args.train_seq_len)\n",
            393216,
        ),
        ("    batch_size : int = 8*64\n    sequence_length : int = 1024\n", 524288),
        ("    train_seq_len = 48*1024\nf(world_size * args.train_seq_len)\n", None),
    ],
)
def test_modded_nanogpt_batches_go_by_many_names(source: str, batch: int | None, tmp_path: Path) -> None:
    log = read(tmp_path, source + "step:0/9 val_loss:10.8 train_time:0ms\nstep:5/9 val_loss:9.8 train_time:5ms\n")
    assert facts(log).get("tokens_per_step") == batch


def test_old_torchtitan_logs_means_and_new_does_not(tmp_path: Path) -> None:
    old = (
        "Training starts at step 1, with local batch size 1, global batch size 8, sequence length 8192, total steps 9\n"
    )
    row = "step: {n:2d}  loss: {loss:7.4f}  memory: 42.08GiB(30.10%)  tps: 1,478  {more}mfu: 8.65%\n"
    steps = (1, 10, 20, 30)
    log = read(tmp_path, old + "".join(row.format(n=n, loss=4 - n / 100, more="") for n in steps))
    assert log.means == {"train_loss": IntervalMean()}
    assert axis_of(tmp_path, old + "".join(row.format(n=n, loss=4 - n / 100, more="") for n in steps)).columns[
        "step"
    ].tolist() == [0, 5, 14, 24]
    log = read(tmp_path, old + "".join(row.format(n=n, loss=4 - n / 100, more="tflops: 1.0  ") for n in steps))
    assert log.means == {}


def test_torchtitan_forks_add_the_rate_and_the_norm_behind(tmp_path: Path) -> None:
    row = "step: {n}  loss: 3.5  memory: 42.08GiB(30.10%)  tps: 1,478  mfu: 8.65%  gnorm: 1.5  lr: 0.0003\n"
    log = read(tmp_path, "".join(row.format(n=n) for n in range(1, 5)))
    assert log.columns["lr"].tolist() == [0.0003] * 4
    assert log.columns["grad_norm"].tolist() == [1.5] * 4


def test_olmo_core_writes_commas_question_marks_and_the_rate(tmp_path: Path) -> None:
    block = "INFO\t[step={n}/{end},epoch=1,eta=3 days]\n    train/CE loss=3.5\n    optim/LR (group 0)=0.0003\n"
    log = read(tmp_path, "".join(block.format(n=n, end="1,907,359") for n in range(1, 5)))
    assert facts(log)["planned_steps"] == 1907359
    assert log.columns["lr"].tolist() == [0.0003] * 4
    assert "planned_steps" not in facts(read(tmp_path, "".join(block.format(n=n, end="???") for n in range(1, 5))))


# --- Megatron


def megatron(step: int, loss: str = "lm loss", more: str = "") -> str:
    return (
        f" iteration {step:8d}/    5000 | elapsed time per iteration (ms): 9.1 | {loss}: {4 - step / 100:.6E}{more} |\n"
    )


def test_megatron_validation_of_several_sets_is_of_the_first_and_never_of_the_test_set(tmp_path: Path) -> None:
    text = "".join(megatron(step) for step in range(1, 6))
    final = " validation loss at iteration 5 on {where} | lm loss value: {loss} | lm loss PPL: 2.2 |\n"
    log = read(
        tmp_path, text + final.format(where="validation set", loss=3.5) + final.format(where="test set", loss=9.5)
    )
    assert log.columns["val_loss"][-1] == 3.5
    assert "val_loss_chosen" not in codes(log)
    log = read(tmp_path, text + final.format(where="[c4]", loss=3.5) + final.format(where="[pile]", loss=4.5))
    assert log.columns["val_loss"][-1] == 3.5
    assert "val_loss_chosen" in codes(log)


def test_megatron_losses_by_another_name_are_declared(tmp_path: Path) -> None:
    text = "".join(megatron(step, "mse loss").replace(" |\n", "\n") for step in range(1, 6))
    with pytest.raises(TokenAxisError, match="no loss column") as caught:
        read(tmp_path, text)
    assert "{columns: {train_loss: 'mse loss'}}" in str(caught.value.remedy)
    log = read(tmp_path, text, columns={"train_loss": "mse loss"})
    assert log.columns["train_loss"].tolist() == [4 - step / 100 for step in range(1, 6)]
    assert log.names["train_loss"] == "mse loss"


def test_neox_writes_behind_its_arguments_whether_they_were_set(tmp_path: Path) -> None:
    head = "  hidden_size ..................... 768.........................updated\n"
    head += "  train_batch_size ................ 1024........................updated\n"
    head += "  seq_length ...................... 2048........................default\n"
    head += "  log_interval .................... 10..........................updated\n"
    log = read(tmp_path, head + "".join(megatron(step, "lm_loss") for step in range(10, 60, 10)))
    wanted = {"d_model": 768, "seq_len": 2048, "tokens_per_step": 1024 * 2048}
    assert facts(log) == wanted | {"train_loss_interval_steps": 10, "planned_steps": 5000}


# --- MLPerf


def mllog(key: str, value: object, time: int = 0, **metadata: object) -> str:
    entry = {"namespace": "", "time_ms": 1000 * time, "event_type": "POINT_IN_TIME", "key": key, "value": value}
    return ":::MLLOG " + json.dumps(entry | {"metadata": metadata}) + "\n"


def test_mllog_steps_that_are_counts_of_samples_are_divided_by_the_batch(tmp_path: Path) -> None:
    text = (
        mllog("submission_benchmark", "llama2_70b_lora") + mllog("global_batch_size", 8) + mllog("run_start", None, 100)
    )
    for n in range(1, 5):
        text += mllog("tracked_stats", {"train_loss": 4.0 - n}, 100 + n, step=384 * n)
        text += mllog("block_stop", None, samples_count=384 * n)
        text += mllog("eval_accuracy", 0.9, 100 + n, samples_count=384 * n + 3)
    log = read(tmp_path, text)
    assert log.columns["step"].tolist() == [48, 48, 96, 96, 144, 144, 192, 192]
    assert log.columns["elapsed_s"].tolist() == [1, 1, 2, 2, 3, 3, 4, 4]
    assert "samples_within_a_batch" in codes(log)


def test_mllog_epochs_of_gpt3_are_tokens(tmp_path: Path) -> None:
    batch = 1536 * 2048
    text = mllog("submission_benchmark", "gpt3") + mllog("global_batch_size", 1536) + mllog("max_sequence_length", 2048)
    text += "".join(mllog("eval_accuracy", 3.0 - n / 10, epoch_num=24 * batch * n) for n in range(1, 5))
    assert read(tmp_path, text).columns["step"].tolist() == [24, 48, 72, 96]


def test_mllog_without_its_beginning_says_what_is_missing(tmp_path: Path) -> None:
    text = mllog("submission_benchmark", "llama2_70b_lora") + mllog("eval_accuracy", 0.9, samples_count=384)
    with pytest.raises(TokenAxisError, match="no global_batch_size") as caught:
        read(tmp_path, text)
    assert "whole log" in str(caught.value.remedy)


def test_mllog_evaluations_are_placed_where_they_start_if_their_own_count_is_a_batch_less(tmp_path: Path) -> None:
    text = mllog("submission_benchmark", "llama31_8b") + mllog("global_batch_size", 32)
    for n in range(1, 5):
        text += mllog("eval_start", None, samples_count=12288 * n)
        text += mllog("eval_accuracy", 4.0 - n / 10, samples_count=12288 * n - 32)
    assert read(tmp_path, text).columns["step"].tolist() == [384, 768, 1152, 1536]


# --- key-value: names that are declared


def test_lines_without_a_step_name_the_number_that_could_be_one(tmp_path: Path) -> None:
    text = "".join(
        f"ep: 0, batch: {20 * n}, time: 8.4, ntokens: {400 + 7 * (n % 3)}/513, loss: {11 - n / 9:.3f}\n"
        for n in range(1, 9)
    )
    with pytest.raises(TokenAxisError, match="a loss and no step") as caught:
        read(tmp_path, text)
    assert "`defaults: {columns: {step: batch}}`" in str(caught.value.remedy)
    log = read(tmp_path, text, columns={"step": "batch"})
    assert log.columns["step"].tolist() == [20.0 * n for n in range(1, 9)]


def test_names_that_are_declared_need_no_word_for_step_or_loss(tmp_path: Path) -> None:
    text = "".join(f"Ep 1, Upd {n:06d}, Train: {9 - n / 10:.3f}, Val: {9.5 - n / 10:.3f}\n" for n in range(0, 50, 5))
    log = read(tmp_path, text, columns={"step": "Upd", "train_loss": "Train", "val_loss": "Val"})
    assert (log.columns["step"][-1], log.columns["train_loss"][0], log.columns["val_loss"][0]) == (45, 9.0, 9.5)


def test_second_run_that_begins_with_the_same_line_is_no_reprint(tmp_path: Path) -> None:
    text = "".join(f"step {n}, loss: {10.9 - n / 5:.4f}\n" for n in range(30))
    again = "".join(f"step {n}, loss: {10.9 - n / 9:.4f}\n" for n in range(30))
    log = read(tmp_path, text + again)
    assert (len(log.lines), "reprinted_lines" in codes(log)) == (60, False)


def test_batch_of_a_fork_of_build_nanogpt_is_known(tmp_path: Path) -> None:
    head = "total desired batch size: 524288\n=> calculated gradient accumulation steps: 32\n"
    rows = "".join(f"step {n} | loss: {9 - n / 9:.4f} | time: 4431.57ms | tokens/sec: 118307.47\n" for n in range(9))
    assert facts(read(tmp_path, head + rows))["tokens_per_step"] == 524288


def test_lines_of_an_evaluation_are_no_training_losses(tmp_path: Path) -> None:
    text = "".join(f"step= {n}/900 | loss={9 - n / 90:.4f} | lr=2.8e-04\n" for n in range(0, 100, 10))
    text += "[validation] step=90 loss=7.5143 ppl=20.375\n"
    log = read(tmp_path, text)
    assert np.isfinite(log.columns["train_loss"]).sum() == 10
    assert log.columns["val_loss"][-1] == 7.5143


def test_tokens_that_are_rounded_give_no_batch(tmp_path: Path) -> None:
    rows = [f"step= {n} | tokens={n * 524288 / 1e9:.3f}B | loss={9 - n / 900:.4f}\n" for n in range(1500, 1900, 10)]
    log = read(tmp_path, "".join(rows))
    assert "tokens" not in log.columns
    (notice,) = (warning for warning in log.warnings if warning.code == "batch_is_rounded")
    assert "{tokens_per_step: 524288}" in notice.message
    log = read(tmp_path, "Tokens/update: 524,288\n" + "".join(rows))
    assert facts(log)["tokens_per_step"] == 524288


# --- MiniMind


def test_minimind_counts_batches_over_epochs(tmp_path: Path) -> None:
    text = "".join(
        f"Epoch:[{epoch}/2]({n}/500) loss:{9 - n / 90:.3f} lr:0.00055 epoch_Time:45.0min:\n"
        for epoch in (1, 2)
        for n in range(0, 500, 100)
    )
    log = read(tmp_path, text)
    assert log.format == "minimind"
    assert log.columns["step"].tolist() == list(range(0, 1000, 100))
    assert (facts(log)["planned_steps"], "steps_are_batches" in codes(log)) == (1000, True)


def test_minimind_steps_are_updates_where_the_log_prints_its_arguments(tmp_path: Path) -> None:
    head = "Run with args: Namespace(epochs=1, batch_size=64, accumulation_steps=8, max_seq_len=512)\n"
    text = "".join(
        f"2025-11-28 Epoch:[1/1]({n}/400), loss: {9 - n / 90:.4f}, logits_loss: 1.0, aux_loss: 0.0, lr: 0.0005, eta\n"
        for n in range(50, 401, 50)
    )
    log = read(tmp_path, head + text)
    assert log.columns["step"].tolist() == [(n - 1) // 8 for n in range(50, 401, 50)]
    assert (facts(log)["seq_len"], "steps_are_batches" in codes(log)) == (512, False)


def test_olmo_prints_its_configuration(tmp_path: Path) -> None:
    text = "2025-12-12 11:03:40.016\thost:0\ttrain:98\tINFO\tTrainConfig(run_name='a', model=ModelConfig(d_model=2048, "
    text += "n_heads=16, n_layers=16, max_sequence_length=4096, vocab_size=50280), global_train_batch_size=512)\n"
    text += "2025-12-12 11:03:43.336\thost:0\ttrain:141\tINFO\tTotal number of parameters: 1,279,787,008\n"
    for n in range(1, 20):
        text += f"2025-12-12 11:05:02.009\thost:0\tolmo.train:979\tINFO\t[step={n}/15000,epoch=0]\n"
        text += f"    train/CrossEntropyLoss={3 - n / 90:.3f}\n    train/Perplexity=20.04\n"
    log = read(tmp_path, text)
    stated = facts(log)
    assert (stated["n_params"], stated["seq_len"], stated["n_layers"]) == (1279787008, 4096, 16)
    assert stated["tokens_per_step"] == 2097152
    assert log.columns["step"].tolist() == list(range(1, 20))


def test_val_that_nothing_calls_a_loss_is_named(tmp_path: Path) -> None:
    text = "".join(f"moe step={n} loss={3.2 - n / 600:.4f} lr=4e-04 val={3.1 - n / 600:.4f} dead=0\n" for n in range(9))
    log = read(tmp_path, text)
    (notice,) = (warning for warning in log.warnings if warning.code == "val_may_be_a_loss")
    assert "{columns: {val_loss: val}}" in notice.message
    assert "val_loss" in read(tmp_path, text, columns={"val_loss": "val"}).columns


def test_megatron_sequence_length_is_also_that_of_its_data_set(tmp_path: Path) -> None:
    text = (
        "INFO: Building GPTDataset with config=GPTDatasetConfig(random_seed=1234, sequence_length=1024, blend=None)\n"
    )
    for n in range(10010, 10100, 10):
        text += f" iteration {n}/  100000 | consumed samples: {512 * n} | elapsed time per iteration (ms): 2191.4 | "
        text += f"learning rate: 4E-04 | global batch size:   512 | lm loss: {4 - n / 20000:.6E} | grad norm: 0.060 |\n"
    log = read(tmp_path, text)
    assert facts(log)["seq_len"] == 1024
    assert log.columns["tokens"][0] == 512 * 1024 * 10010


def test_steps_are_one_column_whatever_phase_stands_before_their_name(tmp_path: Path) -> None:
    text = "".join(
        f"INFO train step={n}/600 loss={9 - n / 90:.4f}\nINFO val step={n} val_loss={9.5 - n / 90:.4f}\n"
        for n in range(0, 200, 20)
    )
    log = read(tmp_path, text)
    assert log.columns["step"].tolist() == [float(n) for n in range(0, 200, 20) for _ in range(2)]
    assert np.isfinite(log.columns["val_loss"]).sum() == 10
