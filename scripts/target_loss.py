"""When does a training run reach a target loss?

    python scripts/target_loss.py LOG... --target 3.0 2.8 [--law auto|power|seed] [--stability-sweep] [--json]

Reads any log that a reader knows. `--law seed` reproduces the reference method and its text; the default fits the
robust laws of docs/methods.md. Defaults come from params.yaml. --json prints
{"runs": [{"run", "loss", "law", "observed", "targets": [{"target", "status": reached | predicted | unreachable |
not_available, "step", "tokens", "interval": [low, high], "law", "horizon", "reason", "warnings", ...}], "verdicts",
"warnings"}]}. Exit status: 0; 2 for an expected failure; with --law seed 1 where the reference exits with 1.
"""

import argparse
import os
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "workflow"))
os.environ["OPENBLAS_NUM_THREADS"] = "1"  # before numpy loads: its threads cost 0.1 s a process and gain nothing here

from tokenaxis.errors import TokenAxisError
from tokenaxis.pipeline import target_loss as console

FLAGS = (
    ("--loss-col", str, "column of the loss (seed: train_loss; else params fits.loss)"),
    ("--ema-token-window", float, "smoothing window of the seed law in tokens"),
    ("--batch-size", float, "tokens per step of a fixed-batch run; a logged batch goes before it"),
    ("--fit-start-step", int, "first step of the fit (default: the end of warm-up)"),
    ("--extrapolation-warn-factor", float, "flag predictions beyond this many times the observed tokens"),
    ("--sweep-step", int, "seed law: steps between sweep windows"),
    ("--sweep-min-window", int, "seed law: steps before the first sweep window"),
    ("--convergence-tol", float, "tolerance of the verdict CONVERGED"),
    ("--lr-schedule", str, "planned schedule as YAML, e.g. '{kind: cosine, final: 0.1, warmup_steps: 700}'"),
    ("--planned-steps", int, "planned end of the run"),
)


def parse(argv: list[str] | None) -> argparse.Namespace:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("logs", nargs="+", metavar="LOG")
    options.add_argument("--target", type=float, nargs="+", required=True)
    options.add_argument("--law", choices=("auto", *console.LAWS), default="auto")
    options.add_argument("--batch-schedule", nargs="+", metavar="TOKENS:BATCH", help="batch schedule of the run")
    options.add_argument("--fit-last-stage", action="store_true", help="fit no earlier than the last batch stage")
    options.add_argument("--stability-sweep", action="store_true", help="refit on growing windows, give a verdict")
    options.add_argument("--json", action="store_true", help="print JSON instead of text")
    options.add_argument("--params", default="params.yaml", help="file of defaults")
    for flag, kind, about in FLAGS:
        options.add_argument(flag, type=kind, default=None, help=about)
    return options.parse_args(argv)


def main(argv: list[str] | None = None) -> int:
    args = parse(argv)
    try:
        return console.run(args, print)
    except TokenAxisError as error:
        print(error, file=sys.stderr)
        return console.status(error)


if __name__ == "__main__":
    sys.exit(main())
