"""Export runs as event files of TensorBoard: DIR/RUN/events.out.tfevents.0.tokenaxis.

    python scripts/export_tensorboard.py RUN... --out DIR

What the training loop reported keeps its own tags, over steps and, below tokenaxis/over_tokens/, over tokens; what
tokenaxis derived goes below tokenaxis/; the passport is a text. No price is exported. Exit status: 0; 2 for an expected
failure.
"""

import os
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "workflow"))
os.environ["OPENBLAS_NUM_THREADS"] = "1"  # before numpy loads: its threads cost 0.1 s a process and gain nothing here

from collections.abc import Iterator

from tokenaxis.export import tensorboard
from tokenaxis.pipeline import exporting


def main(argv: list[str] | None = None) -> int:
    options = exporting.parser("export_tensorboard", __doc__ or "")
    options.add_argument("--out", type=Path, required=True, metavar="DIR", help="what tensorboard --logdir takes")
    args = options.parse_args(argv)

    def work() -> Iterator[str]:
        for path in [exporting.passport_path(name, args.params) for name in args.runs]:
            run, _ = exporting.read_run(path)
            yield f"{run.id}: {tensorboard.export(run, args.out)}"

    return exporting.main(work)


if __name__ == "__main__":
    sys.exit(main())
