"""Measure how fast logs are read, against pyarrow's own readers, and how much memory a large one takes.

    python scripts/benchmark_readers.py [--rows 1000000] [--repeats 7] [--large-mb 1000] [--scratch FOLDER]

Planted CSV and JSON lines. Speed: readers.read and pyarrow take turns in one process; medians and their ratio. Memory:
the high-water mark of a process that reads a log of --large-mb, without what it takes to read a log of twenty rows.
"""

import argparse
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "workflow"))

from tokenaxis import readers
from tokenaxis.declarations import Declaration

COLUMNS = ("MB", "ours s", "pyarrow s", "ratio", "MB/s", "large MB", "its peak MB")
HEADS = {"table": "step,train_loss,lr\n", "jsonl": ""}
ROWS = {
    "table": "{step},{loss:.6f},{lr:.8g}\n",
    "jsonl": '{{"step": {step}, "train_loss": {loss:.6f}, "lr": {lr:.8g}}}\n',
}
MARK = """
import sys
sys.path.insert(0, sys.argv[3])
from tokenaxis import readers
from tokenaxis.declarations import Declaration
readers.read(sys.argv[1], Declaration(), readers.by_name(sys.argv[2]))
print(next(line for line in open("/proc/self/status") if line.startswith("VmHWM")).split()[1])
"""


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=1_000_000, help="rows of the logs whose reading is timed")
    parser.add_argument("--repeats", type=int, default=7, help="how often each is read")
    parser.add_argument("--large-mb", type=int, default=1000, help="size of the logs whose memory is measured")
    parser.add_argument("--scratch", type=Path, help="folder for the logs; default: the system's")
    args = parser.parse_args()
    print(f"{'format':<8}" + "".join(f"{name:>13}" for name in COLUMNS))
    with tempfile.TemporaryDirectory(prefix="tokenaxis-readers-", dir=args.scratch) as folder:
        for name in HEADS:
            path = Path(folder) / name
            write(path, name, args.rows)
            ours, theirs = timed(path, name, args.repeats)
            size = path.stat().st_size / 1e6
            small, large = peak(write(path, name, 20), name), peak(write_large(path, name, args.large_mb), name)
            cells = (size, ours, theirs, theirs / ours, size / ours, path.stat().st_size / 1e6, large - small)
            print(f"{name:<8}" + "".join(f"{cell:>13,.{3 if cell < 10 else 0}f}" for cell in cells))
    return 0


def lines(name: str, rows: int) -> Iterator[str]:
    """The head and rows of a log."""
    yield HEADS[name]
    for step in range(rows):
        yield ROWS[name].format(step=step, loss=2 + 1 / (step + 1), lr=1e-3 / (step + 1))


def write(path: Path, name: str, rows: int) -> Path:
    """Write a log of `rows` rows."""
    with open(path, "w", encoding="utf-8") as file:
        file.writelines(lines(name, rows))
    return path


def write_large(path: Path, name: str, megabytes: int) -> Path:
    """Write a log of some megabytes: the same losses again and again, at ever later steps."""
    step = 0
    with open(path, "w", encoding="utf-8") as file:
        file.write(HEADS[name])
        while file.tell() < megabytes * 1_000_000:
            for turn in range(1, 10_001):
                file.write(ROWS[name].format(step=step + turn, loss=2 + 1 / turn, lr=1e-3 / turn))
            step += 10_000
    return path


def timed(path: Path, name: str, repeats: int) -> tuple[float, float]:
    """(seconds of readers.read, seconds of pyarrow), medians."""
    from pyarrow import csv, json

    theirs = csv.read_csv if name == "table" else json.read_json
    pairs = [
        (seconds(lambda: readers.read(str(path), Declaration(), readers.by_name(name))), seconds(lambda: theirs(path)))
        for _ in range(repeats)
    ]
    ours, arrow = zip(*pairs, strict=True)
    return statistics.median(ours), statistics.median(arrow)


def seconds(work: Callable[[], object]) -> float:
    """Wall seconds of one call."""
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


def peak(path: Path, name: str) -> float:
    """MB at the high-water mark of a process that reads a log."""
    command = [sys.executable, "-c", MARK, str(path), name, str(ROOT / "workflow")]
    return int(subprocess.run(command, capture_output=True, text=True, check=True).stdout) / 1000


if __name__ == "__main__":
    sys.exit(main())
