"""Measure what the pipeline costs: CPU seconds, wall time and memory, engine and imports included.

    python scripts/benchmark.py --runs 50 200 1000 --rows 10000 [--engines snakemake dvc] [--reference SCRIPT]
                                [--figure FILE] [--json] [--repeats N]

For each number of runs, makes a sweep of planted logs (the law 2 + 0.6 (tokens/1e9)^-0.35 with noise) in a scratch copy
of this checkout, and measures each engine: everything new, the comparison of that alone, nothing to do, one log longer,
one log more, one parameter changed. With --reference, that script is run once per log with `--stability-sweep`, on as
many logs as --reference-runs says, and its cost is scaled to all. --figure draws cost against the number of runs.
"""

import argparse
import itertools
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
#: what is measured, in order
CASES = (
    "all new",
    "its comparison",
    "nothing to do",
    "one log longer",
    "one log more",
    "one target changed",
)


def main() -> int:
    args = options().parse_args()
    measured: list[dict] = []
    with tempfile.TemporaryDirectory(prefix="tokenaxis-benchmark-", dir=args.scratch) as scratch:
        for runs, engine, _ in itertools.product(args.runs, args.engines, range(args.repeats)):
            checkout = make_checkout(Path(scratch) / "checkout", runs, args.rows)
            measured += [{"runs": runs, "engine": engine, **row} for row in measure(engine, checkout, args)]
            if args.reference and engine == args.engines[-1]:
                measured.append({"runs": runs, "engine": "reference script", **measure_reference(checkout, runs, args)})
            shutil.rmtree(checkout)
            print(f"{engine}, {runs} runs: done", file=sys.stderr)
    rows = medians(measured)
    if args.figure:
        draw(rows, args)
    if args.json:
        print(json.dumps({"rows": args.rows, "cores": args.cores, "measurements": rows}, indent=1))
    else:
        print("\n".join(table(rows, args)))
    return 0


def medians(measured: list[dict]) -> list[dict]:
    """One row for each number of runs, engine and case: medians over the repeats, the order kept."""
    groups: dict[tuple, list[dict]] = {}
    for row in measured:
        groups.setdefault((row["runs"], row["engine"], row["what"]), []).append(row)
    return [
        row | {key: statistics.median(each[key] for each in group) for key in ("cpu_s", "wall_s", "peak_mb")}
        for group in groups.values()
        for row in group[:1]
    ]


def options() -> argparse.ArgumentParser:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, nargs="+", required=True, help="runs in the sweep; several for the figure")
    parser.add_argument("--rows", type=int, required=True, help="rows of each log")
    parser.add_argument("--engines", nargs="+", choices=("snakemake", "dvc"), default=["snakemake", "dvc"])
    parser.add_argument("--cores", type=int, default=2, help="cores given to Snakemake")
    parser.add_argument(
        "--reference", type=Path, help="a script to compare with, run as SCRIPT LOG --target T --stability-sweep"
    )
    parser.add_argument("--reference-runs", type=int, default=3, help="logs that the reference script is measured on")
    parser.add_argument("--repeats", type=int, default=1, help="how often everything is measured; medians are shown")
    parser.add_argument("--figure", type=Path, help="draw CPU seconds against runs into this file (svg, png, pdf)")
    parser.add_argument("--scratch", type=Path, help="folder for the scratch copy; default: the system's")
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
    # byte code is made once in the life of a checkout, not once for a sweep
    subprocess.run([sys.executable, "-m", "compileall", "-q", "workflow/tokenaxis"], cwd=folder, check=True)
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
    """Measure an engine on the sweep, all new first. -> a row per case."""
    full = (
        ["snakemake", "--cores", str(args.cores), "--quiet", "all"] if engine == "snakemake" else ["dvc", "repro", "-q"]
    )
    logs, params = checkout / "logs", checkout / "params.yaml"
    measured = [measured_run(full, checkout)]
    for part in ("comparison", ".engine/digests"):  # what it knows of each run is made anew as well
        shutil.rmtree(checkout / "results" / "planted" / part)
    measured.append(measured_run([sys.executable, "scripts/comparison.py"], checkout))
    measured_run(full, checkout)  # takes note of the comparison that was made by hand
    measured.append(measured_run(full, checkout))
    write_log(logs / "run00000_0.5Mbs.csv", args.rows + 10, 0)
    measured.append(measured_run(full, checkout))
    write_log(logs / "another_0.5Mbs.csv", args.rows, 123456)
    measured.append(measured_run(full, checkout))
    text = params.read_text(encoding="utf-8")
    params.write_text(text.replace("targets: [2.4, 2.3]", "targets: [2.4, 2.25]"), encoding="utf-8")
    measured.append(measured_run(full, checkout))
    return [{"what": what, **row} for what, row in zip(CASES, measured, strict=True)]


def measure_reference(checkout: Path, runs: int, args: argparse.Namespace) -> dict:
    """The reference script in a loop over some logs, scaled to all."""
    logs = sorted((checkout / "logs").glob("run*.csv"))[1 : 1 + args.reference_runs]
    script = str(args.reference.resolve())
    each = [
        measured_run([sys.executable, script, str(log), "--target", "2.3", "--stability-sweep"], checkout)
        for log in logs
    ]
    total = {key: sum(row[key] for row in each) * runs / len(logs) for key in ("cpu_s", "wall_s")}
    return {"what": f"all new, {len(logs)} scaled", **total, "peak_mb": max(row["peak_mb"] for row in each)}


def measured_run(command: list[str], folder: Path) -> dict:
    """Run a command. -> CPU seconds of it and its children, wall seconds, MB of the largest process among them."""
    environment = os.environ | {"PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"}
    with tempfile.TemporaryFile("w+") as output:
        start = time.monotonic()
        process = subprocess.Popen(command, cwd=folder, env=environment, stdout=output, stderr=subprocess.STDOUT)
        _, status, usage = os.wait4(process.pid, 0)
        wall = time.monotonic() - start
        process.returncode = os.waitstatus_to_exitcode(status)
        if process.returncode:
            output.seek(0)
            raise SystemExit(f"{command} failed:\n{output.read()}")
    return {"cpu_s": usage.ru_utime + usage.ru_stime, "wall_s": wall, "peak_mb": usage.ru_maxrss / 1024}


def table(rows: list[dict], args: argparse.Namespace) -> list[str]:
    """The measurements as lines of text."""
    lines = [
        f"{args.rows} rows a run, {args.cores} cores given, {os.cpu_count()} there",
        f"{'runs':>6} {'engine':<17} {'what':<19} {'CPU s':>8} {'wall s':>8} {'CPU ms/run':>11} {'peak MB':>8}",
    ]
    lines += [
        f"{row['runs']:>6} {row['engine']:<17} {row['what']:<19} {row['cpu_s']:>8.2f} {row['wall_s']:>8.2f} "
        f"{1000 * row['cpu_s'] / row['runs']:>11.1f} {row['peak_mb']:>8.0f}"
        for row in rows
    ]
    return lines


def draw(rows: list[dict], args: argparse.Namespace) -> None:
    """CPU seconds against runs on linear axes, one panel an engine, with the straight line that fits each best."""
    import matplotlib

    matplotlib.use("agg")
    import matplotlib.pyplot as plt

    figure, panels = plt.subplots(
        1, len(args.engines), figsize=(5.5 * len(args.engines), 5.5), sharey=True, squeeze=False, layout="constrained"
    )
    for panel, engine in zip(panels[0], args.engines, strict=True):
        for what in CASES:
            points = [(row["runs"], row["cpu_s"]) for row in rows if row["engine"] == engine and row["what"] == what]
            fixed, each = straight_line(points)
            (line,) = panel.plot(*zip(*points, strict=True), "o", markersize=4)
            runs = (0, max(args.runs))
            label = f"{what}: {fixed:.1f} s + {1000 * each:.2f} ms a run"
            panel.plot(runs, [fixed + each * n for n in runs], color=line.get_color(), linewidth=1, label=label)
        panel.set(title=engine, xlabel=f"runs of {args.rows:,} rows", xlim=(0, None))
        panel.grid(alpha=0.3)
        for row in [row for row in rows if row["engine"] == "reference script" and row["runs"] == max(args.runs)]:
            each = row["cpu_s"] / row["runs"]
            panel.plot([], [], " ", label=f"reference script in a loop: {each:.2f} s a run, beyond this panel")
        panel.legend(fontsize=8, loc="upper center", bbox_to_anchor=(0.5, -0.13), frameon=False)
    panels[0][0].set_ylim(0)
    panels[0][0].set_ylabel("CPU seconds of the engine and all that it starts")
    figure.savefig(args.figure)


def straight_line(points: list[tuple[int, float]]) -> tuple[float, float]:
    """(seconds, seconds a run) of the line with the least squares of relative errors; a level where there is one point.

    Relative, for sizes differ by powers of ten, and the largest would decide alone.
    """
    import numpy as np

    runs, cost = np.array(points, float).T
    if len(points) == 1:
        return float(cost[0]), 0.0
    design = np.stack([1 / cost, runs / cost], axis=1)
    fixed, each = np.linalg.lstsq(design, np.ones(len(points)), rcond=None)[0]
    return float(fixed), float(each)


if __name__ == "__main__":
    sys.exit(main())
