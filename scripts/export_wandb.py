"""Export runs to Weights & Biases: one W&B run each, offline unless --online.

    python scripts/export_wandb.py RUN... --project P [--entity E] [--name N] [--dir DIR] [--online]

What the training loop reported keeps its own keys, what tokenaxis derived goes below `tokenaxis/`; the passport is the
run's config, summary and files. Nothing leaves this machine without --online (or a later `wandb sync`), and no price
is ever exported. Exit status: 0; 2 for an expected failure.
"""

import os
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "workflow"))
os.environ["OPENBLAS_NUM_THREADS"] = "1"  # before numpy loads: its threads cost 0.1 s a process and gain nothing here

from collections.abc import Iterator

from tokenaxis import store
from tokenaxis.export import wandb
from tokenaxis.pipeline import exporting


def main(argv: list[str] | None = None) -> int:
    options = exporting.parser("export_wandb", __doc__ or "")
    options.add_argument("--project", required=True, help="W&B project")
    options.add_argument("--entity", help="W&B user or team")
    options.add_argument("--name", help="name of the W&B run (default: the run's id)")
    options.add_argument("--dir", type=Path, default=Path(), help="W&B writes DIR/wandb (default: here)")
    options.add_argument("--online", action="store_true", help="send it to W&B now")
    args = options.parse_args(argv)

    def work() -> Iterator[str]:
        for path in [exporting.passport_path(name, args.params) for name in args.runs]:
            run, _ = exporting.read_run(path)
            names = {"entity": args.entity, "name": args.name}
            where = wandb.export(run, args.project, **names, folder=args.dir, online=args.online, to_json=store.to_json)
            yield f"{run.id}: {where}"

    return exporting.main(work)


if __name__ == "__main__":
    sys.exit(main())
