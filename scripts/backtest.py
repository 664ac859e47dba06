"""How much should these predictions be trusted? Hide the end of finished runs, predict it, and compare.

    python scripts/backtest.py LOG_OR_DIRECTORY... [--law auto power seed] [--hide 0.7 0.5 0.3] [--constant] [--json]

Prints errors of the predicted tokens by horizon, coverage of the nominal 50, 80 and 90% intervals, verdicts right and
wrong, the error of the predicted end loss, and with 8 runs or more the conformal calibration on these very runs.
Exit status: 0; 2 for an expected failure.
"""

import argparse
import os
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "workflow"))
os.environ["OPENBLAS_NUM_THREADS"] = "1"  # before numpy loads: its threads cost 0.1 s a process and gain nothing here

from tokenaxis import laws
from tokenaxis.errors import TokenAxisError
from tokenaxis.pipeline import backtesting


def main(argv: list[str] | None = None) -> int:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("logs", nargs="+", metavar="LOG_OR_DIRECTORY")
    options.add_argument("--law", nargs="+", choices=("auto", *laws.NAMES), default=["auto"])
    options.add_argument("--hide", type=float, nargs="+", default=[0.7, 0.5, 0.3], help="shares of a run to hide")
    options.add_argument(
        "--constant", action="store_true", help="only the stretch of constant rate, at horizons 1.25-3"
    )
    options.add_argument(
        "--plan",
        choices=("log", "declared", "none"),
        default="log",
        help="what is known of the schedule: the log's own rates (or the declared plan), the declared plan, nothing",
    )
    options.add_argument("--loss", choices=("train_loss", "val_loss"), help="loss to fit (default: params fits.loss)")
    options.add_argument("--sweep", help="use the declarations of configs/sweeps/SWEEP.yaml")
    options.add_argument("--tokens-per-step", type=float, help="declare the batch of all runs")
    options.add_argument("--planned-steps", type=int, help="declare the planned end of all runs")
    options.add_argument(
        "--lr-schedule", metavar="YAML", help="declare the schedule, e.g. '{kind: cosine, final: 0.1}'"
    )
    options.add_argument("--tolerance", type=float, help="tolerance of CONVERGED (default: params stability.tolerance)")
    options.add_argument("--json", action="store_true", help="print JSON instead of tables")
    options.add_argument("--figure", metavar="FILE", help="also draw the errors against the horizon")
    options.add_argument("--params", default="params.yaml", help="file of defaults")
    try:
        return backtesting.run(options.parse_args(argv), print)
    except TokenAxisError as error:
        print(error, file=sys.stderr)
        return 2


if __name__ == "__main__":
    sys.exit(main())
