"""List the runs of the sweep directory: results/<sweep>/runs.json says what every file in it is.

    python scripts/runs.py

Artifacts of runs that are gone are deleted. Both engines call this script.
"""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "workflow"))

from tokenaxis.pipeline.cli import runs_main

if __name__ == "__main__":
    sys.exit(runs_main(__doc__))
