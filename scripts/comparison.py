"""Compare all runs of the sweep: tables, figures and one page in results/<sweep>/comparison/.

    python scripts/comparison.py           bring the comparison up to date
    python scripts/comparison.py --show    only print its table of runs and targets

Both engines call this script.
"""

import os
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "workflow"))
os.environ["OPENBLAS_NUM_THREADS"] = "1"  # before numpy loads: its threads cost 0.1 s a process and gain nothing here

from tokenaxis.pipeline.cli import comparison_main

if __name__ == "__main__":
    sys.exit(comparison_main(__doc__))
