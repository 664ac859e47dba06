"""Is the project as good as it set out to be? Back-tests on public logs, each figure beside its goal and the reference.

    python scripts/backtest_goals.py [--logs ../shared/logs] [--no-reference]

Constant learning rate: a run is cut so that the target lies at 1.25, 1.5, 2 and 3 times the observed tokens, from 60%,
80% and all of its stretch. Changing rate: the last 30, 50 and 70% of a run are hidden, its plan is known. At every cut
the loss is chosen from what had been logged by then. The reference is `law: seed`. sweeps/tiny-gpt, which the goals do
not speak of, stands beside the public families.
Exit status: 0, 1 if a goal is missed, 2 for an expected failure (the public logs are not part of the project).
"""

import argparse
import os
import sys
import warnings
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "workflow"))
os.environ["OPENBLAS_NUM_THREADS"] = "1"  # before numpy loads: its threads cost 0.1 s a process and gain nothing here

from tokenaxis.errors import TokenAxisError
from tokenaxis.pipeline import goals


def main(argv: list[str] | None = None) -> int:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    beside = Path(__file__).resolve().parents[2] / "shared" / "logs"
    options.add_argument("--logs", default=os.path.relpath(beside), help="folder of the public logs")
    options.add_argument("--no-reference", dest="reference", action="store_false", help="leave the reference out")
    options.add_argument("--params", default="params.yaml", help="file of defaults")
    warnings.filterwarnings("ignore")  # scipy's, about covariances of the reference's fits
    try:
        return goals.run(options.parse_args(argv), print)
    except TokenAxisError as error:
        print(error, file=sys.stderr)
        return 2


if __name__ == "__main__":
    sys.exit(main())
