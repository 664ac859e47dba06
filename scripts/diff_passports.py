"""What differs between the passports of two runs, number by number.

    python scripts/diff_passports.py A B [--json]

A and B are ids of runs of the sweep that params.yaml names, or passports' paths. Sections that only repeat or sign what
stands elsewhere (explain, lineage, fingerprint) are not compared. --json prints {"first", "second", "differences":
[{"place", "first", "second", "ratio"}]}; a side that lacks the place says null, and "only": first | second.
Exit status, like diff's: 0 the same, 1 different, 2 an expected failure.
"""

import os
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "workflow"))
os.environ["OPENBLAS_NUM_THREADS"] = "1"  # before numpy loads: its threads cost 0.1 s a process and gain nothing here

import argparse

from tokenaxis import store
from tokenaxis.errors import TokenAxisError
from tokenaxis.passport import diff
from tokenaxis.pipeline import exporting


def main(argv: list[str] | None = None) -> int:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("first", metavar="A", help="a run's id, or a passport's path")
    options.add_argument("second", metavar="B")
    options.add_argument("--json", action="store_true", help="print JSON instead of a table")
    options.add_argument("--params", type=Path, default=Path("params.yaml"), help="says which sweep an id belongs to")
    args = options.parse_args(argv)
    try:
        one, other = (
            exporting.read_passport(exporting.passport_path(name, args.params)) for name in (args.first, args.second)
        )
    except TokenAxisError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    found = diff.diff(one, other)
    names = (one["run"]["id"], other["run"]["id"])
    if names[0] == names[1]:
        names = (args.first, args.second)
    if args.json:
        print(store.to_json(diff.as_json(found, names)), end="")
    else:
        print(diff.as_text(found, names), end="")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
