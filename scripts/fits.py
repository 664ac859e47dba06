"""Find where each run reaches the target losses, or will.

    python scripts/fits.py [--run ID] [--jobs N]

Reads params.yaml and results/<sweep>/; recomputes only what changed. Both engines call this script.
"""

import os
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "workflow"))
os.environ["OPENBLAS_NUM_THREADS"] = "1"  # before numpy loads: its threads cost 0.1 s a process and gain nothing here

from tokenaxis.pipeline.cli import stage_main

if __name__ == "__main__":
    sys.exit(stage_main("fits", __doc__))
