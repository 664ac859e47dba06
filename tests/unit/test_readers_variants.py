"""Small logs as trainers really write them: each is read as what it is, or refused with what to declare."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import pytest

from tokenaxis import readers
from tokenaxis.axis import TokenAxis, build_axis
from tokenaxis.declarations import Declaration
from tokenaxis.errors import TokenAxisError


@dataclass
class Variant:
    """A log's name, its lines, and what it holds once it is on its token axis.

    Attributes:
        steps: first and last, as updates done before the loss.
        train: number of training losses and the last one; val: the same of validation losses.
        tokens: of the last row; None where the batch size has to be declared (then 1000 is).
    """

    name: str
    text: str
    reader: str
    steps: tuple[int, int]
    train: tuple[int, float] | None = None
    val: tuple[int, float] | None = None
    tokens: float | None = None
    facts: dict[str, float] = field(default_factory=dict)
    elapsed: float | None = None


def rows(count: int, line: Callable[[int], str], start: int = 0, every: int = 1) -> str:
    return "".join(line(step) + "\n" for step in range(start, start + count * every, every))


def loss(step: int) -> str:
    return f"{4 - step / 100:.4f}"


def js(**values: object) -> str:
    return json.dumps(values)


def titan(step: int, rank: str = "[rank0]:") -> str:
    return (
        f"{rank}[titan] 2026-02-24 19:46:17,508 - root - INFO - step: {step:2d}  loss: {loss(step)}  grad_norm: "
        "26.6250  memory: 66.91GiB(37.51%)  tps: 10,050  tflops: 314.71  mfu: 13.99%"
    )


def megatron(step: int, prefix: str = "", tail: str = "") -> str:
    return (
        f"{prefix} iteration {step:8d}/    9000 | consumed samples: {step * 8:12d} | elapsed time per iteration (ms): "
        f"3649.8 | learning rate: 1.000000E-04 | global batch size:     8 | lm loss: {4 - step / 100:.6E} | loss "
        f"scale: 1.0 | grad norm: 9.089 | number of skipped iterations:   0 | number of nan iterations:   0 |{tail}"
    )


ARGUMENTS = "------------------------ arguments ------------------------\n  seq_length ...................... 128\n"

VARIANTS = [
    Variant("titan.log", rows(20, titan, 1), "torchtitan", (0, 19), (20, 3.8)),
    # all ranks print the same line
    Variant(
        "titan_ranks.log",
        rows(20, lambda s: "\n".join(titan(s, f"[rank{r}]:") for r in range(8)), 1),
        "torchtitan",
        (0, 19),
        (20, 3.8),
    ),
    Variant("titan_plain.log", rows(20, lambda s: titan(s, ""), 1), "torchtitan", (0, 19), (20, 3.8)),
    Variant(
        "mega.out",
        ARGUMENTS + rows(20, megatron, 1),
        "megatron",
        (0, 19),
        (20, 3.8),
        tokens=19 * 1024,
        facts={"seq_len": 128},
    ),
    Variant(
        "bridge.out",
        ARGUMENTS + rows(20, lambda s: megatron(s, "[default7]: [2026-09-11 12:06:52.987995]"), 1),
        "megatron",
        (0, 19),
        (20, 3.8),
        tokens=19 * 1024,
    ),
    Variant(
        "moe.out",
        ARGUMENTS
        + rows(20, lambda s: megatron(s).replace(" | loss scale", " | load_balancing_loss: 1.4E+00 | loss scale"), 1),
        "megatron",
        (0, 19),
        (20, 3.8),
        tokens=19 * 1024,
    ),
    Variant(
        "neox.out",
        "NeoXArgs.from_ymls() deepspeed megatron\n  seq_length .................. 128.......updated\n"
        + rows(
            20,
            lambda s: (
                f"10.0.0.1: [2024-01-01 10:00:00,123] [INFO] [logging.py:60:log_dist] [Rank 0] step={s}, "
                f"skipped=0, lr=[0.0006]\n10.0.0.1: 172.1.1.1:  samples/sec: 41.0 | iteration {s * 10:8d}/  "
                f"320000 | elapsed time per iteration (ms): 9.1 | learning rate: 6E-04 | lm_loss: {4 - s / 100:.6E} | "
                "loss scale: 1.0 | number of skipped iterations:   0 |"
            ),
            1,
        ),
        "megatron",
        (4, 194),  # means over ten steps
        (20, 3.8),
    ),
    Variant(
        "olmo.log",
        rows(
            20,
            lambda s: (
                f"[2024-04-17 09:42:26] INFO     [olmo.train:816, rank=0] [step={s}/739328,epoch=0]\n"
                f"    train/CrossEntropyLoss={loss(s)}\n    train/Perplexity=76,631\n"
                f"    throughput/total_tokens={s * 1024:,}\n    optim/learning_rate_group0=0.0003"
            ),
            1,
        )
        + "[2024-04-17 09:43:26] INFO [olmo.eval:1, rank=0] c4_en-validation\n    eval/c4_en/CrossEntropyLoss=3.5\n",
        "olmo-stdout",
        (0, 20),
        (20, 3.8),
        (1, 3.5),
        tokens=20 * 1024,
        facts={"planned_steps": 739328},
    ),
    Variant(
        "torchtune_log.txt",
        rows(
            20,
            lambda s: f"Step {s} | loss:{loss(s)} lr:2e-05 tokens_per_second_per_gpu:1501.6 peak_memory_active:4.5 ",
            1,
        ),
        "key-value",
        (0, 19),
        (20, 3.8),
    ),
    Variant(
        "litgpt_metrics.csv",
        "epoch,iter,iter_time,learning_rate,loss,remaining_time,step,tokens,total_tokens,val_loss\n"
        + rows(20, lambda s: f"0,{s * 4},0.1,0.0004,{loss(s)},99.0,{s},{s * 1024},{s * 1024},", 1),
        "table",
        (1, 20),
        (20, 3.8),
        tokens=20 * 1024,
    ),
    Variant(
        "lightning/metrics.csv",
        "epoch,step,train_loss_epoch,train_loss_step,val_loss\n"
        + rows(20, lambda s: f"0,{s},,{loss(s)},", 49, 50)
        + "0,999,3.9,,\n0,999,,,3.7\n",
        "table",
        (49, 999),
        (20, 4 - 9.99),
        (1, 3.7),
    ),
    Variant(
        "nanochat.log",
        "Vocab size: 65,536\nTotal batch size 524,288 => gradient accumulation steps: 1\n"
        + rows(
            20,
            lambda s: (
                f"step {s:05d}/21400 ({s / 214:.2f}%) | loss: {loss(s)} | grad norm: 1.1 | lrm: 1.00 | dt: 490.75ms | "
                "tok/sec: 1,068,342 | mfu: 48.5 | total time: 0.00m"
            ),
        ),
        "nanochat",
        (0, 19),
        (20, 3.81),
        tokens=19 * 524288,
    ),
    Variant(
        "nanogpt.out",
        "tokens per iteration will be: 491,520\nstep 0: train loss 10.9, val loss 10.8\n"
        + rows(20, lambda s: f"iter {s}: loss {loss(s)}, time 251.1ms, mfu 38.1%"),
        "nanogpt",
        (0, 19),
        (20, 3.81),
        (1, 10.8),
        tokens=19 * 491520,
    ),
    Variant(
        "hf_stdout.log",
        rows(
            20,
            lambda s: (
                f"{{'loss': {loss(s)}, 'grad_norm': 1.5, 'learning_rate': 5e-05, 'epoch': {s / 10}, 'step': {s}}}"
            ),
            1,
        ),
        "hf-stdout",
        (0, 19),
        (20, 3.8),
    ),
    Variant(
        "trainer_log.jsonl",
        rows(
            20,
            lambda s: js(current_steps=s, total_steps=900, loss=float(loss(s)), lr=1e-5, elapsed_time="0:01:30"),
            5,
            5,
        ),
        "jsonl",
        (2, 97),
        (20, 3.0),
        elapsed=90,
    ),
    Variant(
        "levanter.jsonl",
        rows(20, lambda s: js(_step=s, **{"train/loss": float(loss(s)), "throughput/total_tokens": (s + 1) * 4096})),
        "jsonl",
        (0, 19),
        (20, 3.81),
        tokens=19 * 4096,
    ),
    Variant(
        "composer.jsonl",
        rows(
            20,
            lambda s: js(
                **{
                    "batch": s,
                    "trainer/global_step": s,
                    "loss/train/total": float(loss(s)),
                    "train/loss": float(loss(s)),
                }
            ),
        ),
        "jsonl",
        (0, 19),
        (20, 3.81),
    ),
    Variant(
        "fairseq.log",
        rows(
            20,
            lambda s: (
                "2022-01-01 10:00:00 | INFO | train_inner | "
                + js(
                    epoch=1,
                    update=0.1,
                    loss=f"{12 - s / 1000:.3f}",
                    ppl=f"{2 ** (12 - s / 1000):.2f}",
                    wpb="16384",
                    num_updates=str(s),
                    lr="0.0005",
                    gnorm="1.2",
                )
            ),
            100,
            100,
        ),
        "fairseq",
        (49, 1949),  # means over 100 updates, in the middle of their intervals
        (20, 10 * math.log(2)),  # losses are logged in base 2
        tokens=1949.5 * 16384,
    ),
    Variant(
        "epochs.log",
        rows(20, lambda s: f"Epoch 1/2 | Step {s * 10} | Loss: {loss(s)} | LR: 0.000100"),
        "key-value",
        (0, 190),
        (20, 3.81),
    ),
    Variant(
        "suffixes.log",
        rows(20, lambda s: f"step {s * 100 / 1000:.1f}K tokens {s * 100 * 1024 / 1e6:.4f}M loss {loss(s)} lr 3e-4", 1),
        "key-value",
        (100, 2000),
        (20, 3.8),
        tokens=2000 * 1024,
    ),
    Variant(
        "units.csv",
        "step,tokens,loss,elapsed\n"
        + rows(20, lambda s: f'"{s * 1000:,}",{s * 1.024:.3f}M,{loss(s)},{s // 60}:{s % 60:02d}:00', 1),
        "table",
        (1000, 20000),
        (20, 3.8),
        tokens=20_480_000,
        elapsed=20 * 60,
    ),
    Variant(
        "markdown.md",
        "# run\n\n| step | train loss | lr |\n|-----:|-----------:|---:|\n"
        + rows(20, lambda s: f"| {s} | {loss(s)} | 1e-3 |"),
        "table",
        (0, 19),
        (20, 3.81),
    ),
    Variant(
        "accelerate.jsonl",
        rows(20, lambda s: js(step=s, metrics={"train": {"loss": float(loss(s))}, "val": {"loss": None}})),
        "jsonl",
        (0, 19),
        (20, 3.81),
    ),
    Variant(
        "nan.jsonl",
        rows(20, lambda s: f'{{"step": {s}, "loss": {"NaN" if s == 7 else loss(s)}}}'),
        "jsonl",
        (0, 19),
        (19, 3.81),
    ),
    Variant(
        "golden.json",
        json.dumps(
            {
                "lm loss": {
                    "start_step": 1,
                    "end_step": 96,
                    "step_interval": 5,
                    "values": {str(s): 4 - s / 100 for s in range(1, 97, 5)},
                }
            }
        ),
        "json-history",
        (1, 96),
        (20, 3.04),
    ),
    Variant(
        "keras_history.json",
        json.dumps(
            {"step": list(range(20)), "loss": [4 - s / 100 for s in range(20)], "val_loss": [None] * 19 + [3.9]}
        ),
        "json-history",
        (0, 19),
        (20, 3.81),
        (1, 3.9),
    ),
    Variant(
        "modded.txt",
        "import torch\nclass Hyperparameters:\n    batch_size : int = 8*64\n    sequence_length : int = 1024\n"
        + rows(20, lambda s: f"step:{s}/5100 train_loss:{loss(s)} train_time:{s * 140}ms step_avg:140.1ms", 1),
        "modded-nanogpt",
        (0, 19),
        (20, 3.8),
        tokens=19 * 524288,
    ),
    Variant(
        "llmc_main.log",
        "s:0 tel:11.0\n" + rows(20, lambda s: f"s:{s} trl:{loss(s)} lr:0.000100 norm:1.5"),
        "llmc-main",
        (0, 19),
        (20, 3.81),
        (1, 11.0),
    ),
    Variant(
        "progress.log",
        rows(20, lambda s: f"\rtraining {s}%|##   | {s}/900 [00:01<00:10, 3.1it/s]\nstep={s} loss={loss(s)}"),
        "key-value",
        (0, 19),
        (20, 3.81),
    ),
    Variant(
        "semi.csv",
        "Schritt;step;train_loss\n" + rows(20, lambda s: f"a;{s};{loss(s).replace('.', ',')}"),
        "table",
        (0, 19),
        (20, 3.81),
    ),
]


def axis_of(path: Path, text: str, **declared: object) -> TokenAxis:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
    declaration = Declaration(**declared)  # type: ignore[arg-type]
    return build_axis(readers.read(str(path), declaration), declaration, path.name, "auto")


@pytest.mark.parametrize("variant", VARIANTS, ids=[variant.name for variant in VARIANTS])
def test_a_log_as_its_trainer_writes_it_is_read(variant: Variant, tmp_path: Path) -> None:
    path = tmp_path / variant.name
    if variant.tokens is None:
        axis = axis_of(path, variant.text, tokens_per_step=1000.0)
    else:
        axis = axis_of(path, variant.text)
        assert axis.columns["tokens"][-1] == pytest.approx(variant.tokens, rel=1e-9)  # floats of printed counts
    found = readers.recognise(readers.sample(str(path)))
    assert found.reader is not None
    assert found.reader.name == variant.reader
    assert (int(axis.columns["step"][0]), int(axis.columns["step"][-1])) == variant.steps
    for name, wanted in (("train_loss", variant.train), ("val_loss", variant.val)):
        values = axis.columns.get(name, np.array([math.nan]))
        values = values[~np.isnan(values)]
        assert (len(values), *values[-1:]) == (pytest.approx(wanted, abs=1e-9) if wanted else (0,))
    facts = {fact["key"]: fact["value"] for fact in axis.meta["facts"]}
    assert facts | variant.facts == facts
    if variant.elapsed is not None:
        assert axis.columns["elapsed_s"][-1] == variant.elapsed


@pytest.mark.parametrize(
    ("name", "text", "says"),
    [
        ("epochs_only.csv", "epoch,train_loss,val_loss\n" + rows(9, lambda s: f"{s},3.1,3.2"), "no step column"),
        ("losses_only.csv", "train_loss,lr\n" + rows(9, lambda s: "3.1,1e-3"), "no step column"),
        ("no_loss.csv", "step,accuracy\n" + rows(9, lambda s: f"{s},0.5"), "no loss column"),
        ("no_loss.jsonl", rows(9, lambda s: js(step=s, reward=1.0)), "no loss column"),
        ("headless.csv", rows(9, lambda s: f"{s},3.1,1e-3"), "no header"),
        ("losses.log", rows(9, lambda s: f"epoch {s}: loss={loss(s)}"), "mentions losses"),
        ("long.csv", "run,step,loss\n" + rows(9, lambda s: f"{'ab'[s // 5]},{s % 5},3.1"), "several runs"),
        ("header.csv", "step,train_loss,lr\n", "no row"),
        ("runs.csv", "name,final_loss,lr\na,3.1,1e-3\nb,3.0,1e-3\n", None),
        ("eval.json", json.dumps({"eval_loss": 3.1, "accuracy": 0.5}), None),
        ("config.json", json.dumps({"n_layer": 12, "max_steps": 100, "loss": "ce"}), None),
        ("requirements.txt", "torch==2.1\nnumpy\n", None),
        ("train.py", "for step in range(10):\n    print(f'step {step} loss {loss}')\n", None),
        ("notes.md", "At step 100 the loss was 3.4, which is fine.\n", None),
    ],
)
def test_what_cannot_be_read_is_refused_with_a_remedy_or_passed_over(
    name: str, text: str, says: str | None, tmp_path: Path
) -> None:
    (tmp_path / name).write_text(text, encoding="utf-8")
    found = readers.recognise(readers.sample(str(tmp_path / name)))
    if says is None:
        assert found.reader is None
        assert found.passed_over is not None or found.refused is not None
    else:
        with pytest.raises(TokenAxisError, match=says) as caught:
            readers.read(str(tmp_path / name))
        assert caught.value.remedy
