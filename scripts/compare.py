"""Which answers moved between two results of a sweep: before and after a change of the logs, parameters or code.

    python scripts/compare.py RESULTS_A RESULTS_B [--all] [--json]

Each of the two is a folder results/<sweep>, or any folder with comparison/summary.json or summary.json in it. Runs are
matched by id and targets by value. An answer has moved when its new number of tokens lies outside its old interval.
--all also lists what changed inside its interval. --json prints {"agree", "counts", "changes": [{"run", "target",
"kind", "tokens_before", "low_before", "high_before", "tokens_after", ..., "ratio"}], "best_run", "newly_refused",
"no_longer_refused"}.
Exit status, like diff's: 0 nothing moved and nothing was lost, 1 something was, 2 an expected failure.
"""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "workflow"))

import argparse
from typing import Any

from tokenaxis import store
from tokenaxis.comparison import sweeps
from tokenaxis.comparison.summary import SCHEMA
from tokenaxis.errors import TokenAxisError


def summary_of(folder: Path) -> dict[str, Any]:
    """The summary.json in or below `folder`."""
    places = (folder / "comparison" / "summary.json", folder / "summary.json")
    found = next((content for path in places if (content := store.read_json(path)) is not None), None)
    if found is None or found.get("schema") != SCHEMA:
        raise TokenAxisError(
            "has no comparison that this version can read", file=str(folder), remedy="run the pipeline on that sweep"
        )
    return found


def main(argv: list[str] | None = None) -> int:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("before", metavar="RESULTS_A", type=Path)
    options.add_argument("after", metavar="RESULTS_B", type=Path)
    options.add_argument("--all", action="store_true", help="also list what changed inside its interval")
    options.add_argument("--json", action="store_true", help="print JSON instead of text")
    args = options.parse_args(argv)
    try:
        found = sweeps.compare(summary_of(args.before), summary_of(args.after))
    except TokenAxisError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    print(store.to_json(sweeps.as_json(found)) if args.json else sweeps.as_text(found, args.all), end="")
    return 0 if found.agree else 1


if __name__ == "__main__":
    sys.exit(main())
