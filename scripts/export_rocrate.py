"""Export runs as one RO-Crate: a folder with passports, token axes and a machine-readable account of what made them.

    python scripts/export_rocrate.py RUN... --out DIR [--date YYYY-MM-DD]

Raw logs are described by sha256 and not copied. No price is exported. Exit status: 0; 2 for an expected failure.
"""

import os
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "workflow"))
os.environ["OPENBLAS_NUM_THREADS"] = "1"  # before numpy loads: its threads cost 0.1 s a process and gain nothing here

import datetime
from collections.abc import Callable, Iterator
from typing import Any

from tokenaxis import store
from tokenaxis.errors import TokenAxisError
from tokenaxis.export import rocrate
from tokenaxis.export.run import ExportedRun
from tokenaxis.pipeline import exporting


def main(argv: list[str] | None = None) -> int:
    options = exporting.parser("export_rocrate", __doc__ or "")
    options.add_argument("--out", type=Path, required=True, metavar="DIR", help="the crate; must not exist yet")
    options.add_argument("--name", default="sweep", help="name of the crate")
    today = datetime.date.today().isoformat()
    options.add_argument("--date", default=today, help="date of publication (default: today)")
    args = options.parse_args(argv)

    def work() -> Iterator[str]:
        if args.out.exists():
            raise TokenAxisError("exists already", file=str(args.out), remedy="name a new folder")
        found = [exporting.read_run(exporting.passport_path(name, args.params)) for name in args.runs]
        yield str(rocrate.export([_with_axis(*one) for one in found], args.out, args.name, store.to_json, args.date))

    return exporting.main(work)


def _with_axis(run: ExportedRun, meta: dict[str, Any]) -> tuple[ExportedRun, Callable[[Path], None]]:
    """The run, and what writes its token axis to a path."""
    fingerprint = run.passport["lineage"]["artifacts"]["token_axis"]
    return run, lambda path: store.write_parquet(path, run.columns, meta, fingerprint)


if __name__ == "__main__":
    sys.exit(main())
