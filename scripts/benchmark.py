"""Measure what the pipeline costs: CPU seconds and wall time, engine and imports included.

    python scripts/benchmark.py --runs 50 --rows 10000 [--engines snakemake dvc] [--reference SCRIPT] [--json]

Makes a sweep of planted logs (the law 2 + 0.6 (tokens/1e9)^-0.35 with noise) in a scratch copy of this checkout, and times
each engine: everything new, nothing to do, one log longer, one log more, one parameter changed. With --reference, that
script is run once per log with `--stability-sweep`, on as many logs as --reference-runs says, and its cost is scaled.
"""

import argparse
import json
import os
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
#: stages that a run passes through, for --until: the comparison is about the sweep, not about a run
PER_RUN_TARGET = {"snakemake": ["--until", "passports"], "dvc": ["repro", "passports"]}


def main() -> int:
    args = options().parse_args()
    with tempfile.TemporaryDirectory(prefix="tokenaxis-benchmark-") as scratch:
        rows = []
        for engine in args.engines:
            checkout = make_checkout(Path(scratch) / engine, args.runs, args.rows)
            rows += [{"engine": engine, **row} for row in measure(engine, checkout, args)]
        if args.reference:
            rows.append({"engine": "reference script", **measure_reference(checkout, args)})
    if args.json:
        print(json.dumps({"runs": args.runs, "rows": args.rows, "measurements": rows}, indent=1))
    else:
        print(f"{args.runs} runs x {args.rows} rows, {os.cpu_count()} cores")
        print(f"{'engine':<18} {'what':<18} {'CPU s':>8} {'wall s':>8} {'CPU s/run':>10}")
        for row in rows:
            print(
                f"{row['engine']:<18} {row['what']:<18} {row['cpu_s']:>8.2f} {row['wall_s']:>8.2f} {row['cpu_s'] / args.runs:>10.4f}"
            )
    return 0


def options() -> argparse.ArgumentParser:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, required=True, help="runs in the sweep")
    parser.add_argument("--rows", type=int, required=True, help="rows of each log")
    parser.add_argument("--engines", nargs="+", choices=("snakemake", "dvc"), default=["snakemake", "dvc"])
    parser.add_argument("--cores", type=int, default=2, help="cores given to Snakemake")
    parser.add_argument(
        "--reference", type=Path, help="a script to compare with, run as SCRIPT LOG --target T --stability-sweep"
    )
    parser.add_argument("--reference-runs", type=int, default=3, help="logs that the reference script is timed on")
    parser.add_argument("--json", action="store_true", help="machine-readable output")
    return parser


def make_checkout(folder: Path, runs: int, rows: int) -> Path:
    """A copy of this checkout with a planted sweep in logs/."""
    listed = subprocess.run(
        ["git", "ls-files", "-z", "-co", "--exclude-standard"], cwd=ROOT, capture_output=True, check=True
    )
    for name in filter(None, listed.stdout.decode().split("\0")):
        if (ROOT / name).is_file() and not name.startswith(("tests/", "sweeps/")):
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / name, folder / name)
    (folder / "logs").mkdir()
    for number in range(runs):
        write_log(folder / "logs" / f"run{number:05d}_0.5Mbs.csv", rows, number)
    params = (folder / "params.yaml").read_text(encoding="utf-8")
    params = params.replace("sweep: tiny-gpt", "sweep: planted").replace("logs: sweeps/tiny-gpt", "logs: logs")
    (folder / "params.yaml").write_text(params.replace("  targets: auto", "  targets: [2.4, 2.3]"), encoding="utf-8")
    subprocess.run(["git", "init", "-q"], cwd=folder, check=True)
    return folder


def write_log(path: Path, rows: int, seed: int) -> None:
    """A log of `rows` steps of 0.5M tokens that follows the planted law."""
    import numpy as np

    step = np.arange(1, rows + 1)
    loss = 2 + 0.6 * (step * 5e-4) ** -0.35 + 0.02 * np.random.default_rng(seed).standard_normal(rows)
    lr = 1e-3 * np.minimum(1, step / 200)
    lines = [f"{s},{x:.6f},{r:.8g}" for s, x, r in zip(step, loss, lr, strict=True)]
    path.write_text("step,train_loss,lr\n" + "\n".join(lines) + "\n", encoding="utf-8")


def measure(engine: str, checkout: Path, args: argparse.Namespace) -> list[dict]:
    """Time an engine on the sweep, all new first."""
    full = (
        ["snakemake", "--cores", str(args.cores), "--quiet", "all"] if engine == "snakemake" else ["dvc", "repro", "-q"]
    )
    per_run = ["snakemake", "--cores", str(args.cores), "--quiet", "all", "--until", "passports"]
    per_run = per_run if engine == "snakemake" else ["dvc", "repro", "-q", "passports"]
    logs = checkout / "logs"
    measured = [timed("per-run stages", per_run, checkout), timed("comparison", full, checkout)]
    measured.append(timed("nothing to do", full, checkout))
    write_log(logs / "run00000_0.5Mbs.csv", args.rows + 10, 0)
    measured.append(timed("one log longer", full, checkout))
    write_log(logs / "another_0.5Mbs.csv", args.rows, 123456)
    measured.append(timed("one log more", full, checkout))
    params = (checkout / "params.yaml").read_text(encoding="utf-8")
    (checkout / "params.yaml").write_text(
        params.replace("targets: [2.4, 2.3]", "targets: [2.4, 2.25]"), encoding="utf-8"
    )
    measured.append(timed("one target changed", full, checkout))
    return measured


def measure_reference(checkout: Path, args: argparse.Namespace) -> dict:
    """The reference script in a loop over some logs, scaled to all."""
    logs = sorted((checkout / "logs").glob("run*.csv"))[1 : 1 + args.reference_runs]
    total = {"cpu_s": 0.0, "wall_s": 0.0}
    for log in logs:
        row = timed(
            "",
            [sys.executable, str(args.reference.resolve()), str(log), "--target", "2.3", "--stability-sweep"],
            checkout,
        )
        total = {key: total[key] + row[key] for key in total}
    scale = args.runs / len(logs)
    return {"what": f"{len(logs)} logs, scaled", **{key: value * scale for key, value in total.items()}}


def timed(what: str, command: list[str], folder: Path) -> dict:
    """Run a command. -> CPU seconds of it and its children, wall seconds."""
    environment = os.environ | {"PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"}
    before, start = resource.getrusage(resource.RUSAGE_CHILDREN), time.monotonic()
    run = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True)
    if run.returncode:
        raise SystemExit(f"{command} failed:\n{run.stdout}{run.stderr}")
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return {"what": what, "cpu_s": cpu, "wall_s": time.monotonic() - start}


if __name__ == "__main__":
    sys.exit(main())
