"""Train a small byte-level GPT on one CPU core and write a plain CSV log of its losses.

The text is the source of the Python standard library of the interpreter that runs this script, read at training time.
Its last 5 % is held out; val_loss is taken on a fixed, evenly spaced sample of it. One token is one byte and every loss
is in nats per byte. A row of the log belongs to one optimizer step: `step` counts from 0, `train_loss` is the loss of
that step's batch and `val_loss` (blank where not taken) the held-out loss, both before that step's update.

A run's batches depend on its seed and on the step alone, so that a resumed run repeats what the killed one did.
`sweeps/tiny-gpt/commands.sh` holds the commands of the demo sweep. A single run:

    python scripts/train_tiny_gpt.py --out gpt_4Kbs.csv --batch-tokens 4000 --tokens 6400000 --lr 2e-3
"""

from __future__ import annotations

import argparse
import hashlib
import json
import math
import os
import platform
import signal
import sys
import sysconfig
import time
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import torch

VOCAB = 256
HELD_OUT = 0.05  # part of the text, at its end, that is never trained on
VAL_SEQUENCES = 128  # sequences of the fixed validation sample
EXCLUDED_DIRS = {"site-packages", "test", "tests", "idle_test", "__pycache__"}
EXCLUDED_PREFIXES = ("config-", "_sysconfigdata")  # written when Python is built: they differ between machines


def read_text() -> bytes:
    """Return the standard library's *.py files, sorted by path and joined, as bytes (1 byte = 1 token)."""
    root = Path(sysconfig.get_path("stdlib"))
    names = sorted(path.relative_to(root).as_posix() for path in root.rglob("*.py"))
    kept = [name for name in names if not EXCLUDED_DIRS.intersection(name.split("/"))]
    return b"".join((root / name).read_bytes() for name in kept if not name.startswith(EXCLUDED_PREFIXES))


def plan_steps(schedule: list[tuple[int, int]], tokens: int) -> list[int]:
    """Return tokens_per_step of each step of a run that ends once `tokens` tokens are consumed.

    `schedule` holds (start, batch) pairs in tokens: from `start` consumed tokens on, a step takes `batch` tokens.
    """
    plan, consumed = [], 0
    while consumed < tokens:
        plan.append([batch for start, batch in schedule if start <= consumed][-1])
        consumed += plan[-1]
    return plan


def lr_at(step: int, steps: int, peak_lr: float, warmup: int, schedule: str) -> float:
    """Return the learning rate of `step` (0-based) out of `steps`; `warmup` is in steps, the lr has no unit.

    Linear warm-up to `peak_lr`, then: constant; cosine down to a tenth of the peak; or wsd, which is constant and goes
    linearly to a tenth of the peak over the last fifth of the steps.
    """
    if step < warmup:
        return peak_lr * (step + 1) / warmup
    if schedule == "cosine":
        done = (step - warmup) / max(1, steps - warmup)
        return peak_lr * (0.1 + 0.45 * (1 + math.cos(math.pi * done)))
    if schedule == "wsd":
        decay = max(1, steps // 5)
        return peak_lr * (1 - 0.9 * max(0, step - (steps - decay)) / decay)
    return peak_lr


def build_model(layers: int, heads: int, width: int, seq_len: int) -> torch.nn.Module:
    """Return a pre-norm GPT: tied embeddings, learned positions, GELU MLP of 4 * width; seq_len is in tokens."""
    from torch import nn
    from torch.nn import functional

    class Block(nn.Module):
        """One layer: causal self-attention and an MLP, each behind a LayerNorm and added to the stream."""

        def __init__(self) -> None:
            """Make the weights of the layer."""
            super().__init__()
            self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
            self.qkv, self.attn_out = nn.Linear(width, 3 * width), nn.Linear(width, width)
            self.mlp_in, self.mlp_out = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            """Map (sequences, tokens, width) to the same shape."""
            n, t, _ = x.shape
            q, k, v = self.qkv(self.norm1(x)).view(n, t, 3, heads, width // heads).permute(2, 0, 3, 1, 4)
            y = functional.scaled_dot_product_attention(q, k, v, is_causal=True)
            x = x + self.attn_out(y.transpose(1, 2).reshape(n, t, width))
            return x + self.mlp_out(functional.gelu(self.mlp_in(self.norm2(x))))

    class GPT(nn.Module):
        """The whole model; called on inputs and targets, it returns their mean loss."""

        def __init__(self) -> None:
            """Make the weights: normal(0, 0.02), smaller where a layer writes to the stream."""
            super().__init__()
            self.embed, self.position = nn.Embedding(VOCAB, width), nn.Embedding(seq_len, width)
            self.blocks = nn.ModuleList(Block() for _ in range(layers))
            self.norm = nn.LayerNorm(width)
            for name, weight in self.named_parameters():
                if weight.dim() == 2:
                    nn.init.normal_(weight, std=0.02 / (math.sqrt(2 * layers) if "_out." in name else 1))
                elif name.endswith("bias"):
                    nn.init.zeros_(weight)

        def forward(self, inputs: torch.Tensor, targets: torch.Tensor) -> torch.Tensor:
            """Return the mean loss in nats per byte of (sequences, tokens) inputs against the bytes that follow."""
            x = self.embed(inputs) + self.position.weight[: inputs.shape[1]]
            for block in self.blocks:
                x = block(x)
            logits = functional.linear(self.norm(x), self.embed.weight)
            return functional.cross_entropy(logits.flatten(0, 1), targets.flatten())

    return GPT()


def take_sequences(data: torch.Tensor, starts: torch.Tensor, seq_len: int) -> tuple[torch.Tensor, torch.Tensor]:
    """Return inputs and targets of the sequences of `seq_len` tokens that begin at `starts` (byte offsets)."""
    import torch

    windows = data[starts[:, None] + torch.arange(seq_len + 1)].long()
    return windows[:, :-1], windows[:, 1:]


def run_facts(args: argparse.Namespace, text: bytes, model: torch.nn.Module, steps: int) -> dict[str, object]:
    """Return what a README should say of a run: model shape, parameter counts, text (in bytes), versions."""
    import torch

    shape = {"n_layers": args.layers, "n_heads": args.heads, "width": args.width, "d_ff": 4 * args.width}
    n_params = sum(weight.numel() for weight in model.parameters())
    n_embedding_params = model.embed.weight.numel() + model.position.weight.numel()
    counts = {"n_params": n_params, "n_embedding_params": n_embedding_params, "vocab": VOCAB, "seq_len": args.seq_len}
    source = {"text_bytes": len(text), "text_sha256": hashlib.sha256(text).hexdigest()}
    versions = {"python": platform.python_version(), "torch": torch.__version__}
    return {"out": args.out.name, "seed": args.seed, "steps": steps, **shape, **counts, **source, **versions}


def train(args: argparse.Namespace) -> None:
    """Train one run and log it to args.out; prints the run's facts first and its wall time in seconds last."""
    import torch

    torch.set_num_threads(1)
    torch.manual_seed(args.seed)
    text = read_text()
    data = torch.frombuffer(bytearray(text), dtype=torch.uint8)
    n_train = int(len(data) * (1 - HELD_OUT))
    train_data, val_data = data[:n_train], data[n_train:]
    val_starts = torch.linspace(0, len(val_data) - args.seq_len - 1, VAL_SEQUENCES, dtype=torch.float64).long()
    val_batch = take_sequences(val_data, val_starts, args.seq_len)
    model = build_model(args.layers, args.heads, args.width, args.seq_len)
    weights = list(model.parameters())
    groups = [  # only matrices decay
        {"params": [weight for weight in weights if weight.dim() == 2], "weight_decay": 0.1},
        {"params": [weight for weight in weights if weight.dim() != 2], "weight_decay": 0.0},
    ]
    optimizer = torch.optim.AdamW(groups, lr=args.lr, betas=(0.9, 0.95), fused=True)
    plan = plan_steps(args.batch_schedule or [(0, args.batch_tokens)], args.tokens)
    print(json.dumps(run_facts(args, text, model, len(plan))), flush=True)

    first_step, earlier_s = 0, 0.0
    if args.resume:
        state = torch.load(args.resume, weights_only=True)
        model.load_state_dict(state["model"])
        optimizer.load_state_dict(state["optimizer"])
        first_step, earlier_s = state["step"], state["elapsed_s"]
    extra = ["tokens"] * args.log_tokens + ["global_batch"] * bool(args.batch_schedule)
    start_s = time.perf_counter() - earlier_s
    with open(args.out, "a" if args.resume else "w", buffering=1, encoding="utf-8") as log:  # flushed line by line
        if not args.resume:
            log.write(",".join(["step", *extra, "train_loss", "val_loss", "lr", "grad_norm", "elapsed_s"]) + "\n")
        for step in range(first_step, len(plan)):
            if args.checkpoint_every and step > first_step and step % args.checkpoint_every == 0:
                state = {"model": model.state_dict(), "optimizer": optimizer.state_dict(), "step": step}
                save_checkpoint(args.checkpoint, {**state, "elapsed_s": time.perf_counter() - start_s})
            val_loss = None
            if step % args.val_every == 0 or step == len(plan) - 1:
                with torch.no_grad():
                    val_loss = model(*val_batch).item()
            lr = lr_at(step, len(plan), args.lr, args.warmup_steps, args.schedule)
            for group in optimizer.param_groups:
                group["lr"] = lr
            generator = torch.Generator().manual_seed(args.seed * 1_000_003 + step)
            shape = (plan[step] // args.seq_len,)
            starts = torch.randint(len(train_data) - args.seq_len, shape, generator=generator)
            train_loss = model(*take_sequences(train_data, starts, args.seq_len))
            optimizer.zero_grad()
            train_loss.backward()
            grad_norm = torch.nn.utils.clip_grad_norm_(weights, 1.0)
            optimizer.step()
            if step % args.log_every == 0 or val_loss is not None:
                values = {"tokens": sum(plan[:step]), "global_batch": plan[step]}
                row = [str(step), *(str(values[name]) for name in extra), f"{train_loss.item():.4f}"]
                row += ["" if val_loss is None else f"{val_loss:.4f}", f"{lr:.6g}", f"{grad_norm.item():.4f}"]
                log.write(",".join([*row, f"{time.perf_counter() - start_s:.2f}"]) + "\n")
            if step == args.stop_after_step:
                os.kill(os.getpid(), signal.SIGKILL)
    print(json.dumps({"out": args.out.name, "wall_s": round(time.perf_counter() - start_s, 1)}), flush=True)


def save_checkpoint(path: Path, state: dict[str, object]) -> None:
    """Write `state` to `path`, whole or not at all; its `step` is the one to go on with, `elapsed_s` in seconds."""
    import torch

    partial = path.with_name(path.name + ".partial")
    torch.save(state, partial)
    partial.replace(path)


def schedule_entry(text: str) -> tuple[int, int]:
    """Parse TOKENS:BATCH, both in tokens."""
    start, batch = text.split(":")
    return int(start), int(batch)


def parse_args(argv: list[str] | None) -> argparse.Namespace:
    """Return the checked command line; token counts are in tokens (bytes), `--*-steps` and `--*-every` in steps."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, required=True, metavar="FILE.csv", help="the log to write")
    batch = parser.add_mutually_exclusive_group(required=True)
    batch.add_argument("--batch-tokens", type=int, metavar="N", help="tokens per step, the same in all steps")
    entry = {"type": schedule_entry, "metavar": "TOKENS:BATCH", "help": "from TOKENS consumed on, BATCH per step"}
    batch.add_argument("--batch-schedule", nargs="+", **entry)
    parser.add_argument("--tokens", type=int, required=True, metavar="TOTAL", help="tokens to train on")
    parser.add_argument("--lr", type=float, default=2e-3, help="peak learning rate")
    parser.add_argument("--schedule", choices=["constant", "cosine", "wsd"], default="constant", help="of the lr")
    integers = {"seq-len": 125, "warmup-steps": 100, "layers": 3, "heads": 4, "width": 64, "seed": 0}
    integers |= {"log-every": 1, "val-every": 50, "checkpoint-every": 0}  # in steps; checkpoint-every 0: never
    for name, default in integers.items():
        parser.add_argument(f"--{name}", type=int, default=default, metavar="N", help=f"default: {default}")
    parser.add_argument("--log-tokens", action="store_true", help="add a column of the tokens consumed before the step")
    parser.add_argument("--checkpoint", type=Path, metavar="CKPT", help="default: the log's name with .pt")
    parser.add_argument("--resume", type=Path, metavar="CKPT", help="go on from CKPT, appending to the log")
    parser.add_argument("--stop-after-step", type=int, metavar="N", help="die by SIGKILL right after step N")
    args = parser.parse_args(argv)
    args.checkpoint = args.checkpoint or args.out.with_suffix(".pt")
    schedule = args.batch_schedule or [(0, args.batch_tokens)]
    if schedule != sorted(schedule) or schedule[0][0] != 0:
        parser.error("--batch-schedule must begin at 0 and ascend")
    if any(size < args.seq_len or size % args.seq_len for _, size in schedule):
        parser.error("every batch must be a whole number of sequences of --seq-len tokens")
    return args


def main(argv: list[str] | None = None) -> int:
    """Run the command line; returns the exit status (2 when torch is missing)."""
    args = parse_args(argv)
    try:
        import torch  # noqa: F401
    except ImportError:
        print("train_tiny_gpt.py needs torch: pip install '.[torch]'", file=sys.stderr)
        return 2
    train(args)
    return 0


if __name__ == "__main__":
    sys.exit(main())
