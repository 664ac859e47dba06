"""The whole comparison: which files there are, the same bytes every time, and sweeps with nothing to compare."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.unit.test_comparison_fake_sweep import B_CRIT, PARAMS, make_run, make_sweep, with_id
from tokenaxis.comparison import Sweep, console_table, make
from tokenaxis.comparison.figures import style
from tokenaxis.comparison.page import run_details

NAMES = ["conventions", "critical_batch", "differences", "hindsight", "refused", "runs"]
NAMES += ["scaling_budgets", "scaling_law", "scaling_points", "targets"]
TABLES = [f"{name}.{kind}" for name in NAMES for kind in ("csv", "parquet", "md", "tex")]
OTHERS = ["index.html", "metrics.json", "plots/loss.csv", "plots/stability.csv", "summary.json"]
FIGURES = ["batch_size", "conventions", "loss", "stability", "targets", "tracks"]


def contents(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict]:
    """(folder, summary) of the fake sweep."""
    out = tmp_path_factory.mktemp("comparison")
    return out, make(make_sweep(), PARAMS, out, fingerprint="f" * 64)


def test_the_documented_files_are_there_and_no_others(made: tuple[Path, dict]) -> None:
    figures = [f"figures/{name}.{kind}" for name in FIGURES for kind in ("svg", "png")]
    assert sorted(contents(made[0])) == sorted([*TABLES, *figures, *OTHERS])


def test_two_comparisons_of_the_same_runs_are_the_same_bytes(made: tuple[Path, dict], tmp_path: Path) -> None:
    sweep = make_sweep()
    sweep.runs.reverse()  # the order in which runs are found does not matter
    make(sweep, PARAMS, tmp_path, fingerprint="f" * 64)
    again, first = contents(tmp_path), contents(made[0])
    assert [name for name in first if first[name] != again.get(name)] == []


def test_the_order_of_sets_decides_no_byte(tmp_path: Path, root: Path) -> None:
    """Sets of names are walked in another order in every process."""
    code = (
        "import sys; from pathlib import Path; from tokenaxis.comparison import make;"
        "from tests.unit.test_comparison_fake_sweep import PARAMS, make_sweep;"
        "make(make_sweep(), PARAMS | {'figures': ['svg']}, Path(sys.argv[1]))"
    )
    for seed in ("1", "2"):
        environment = os.environ | {"PYTHONHASHSEED": seed, "PYTHONPATH": f"{root / 'workflow'}{os.pathsep}{root}"}
        subprocess.run([sys.executable, "-c", code, str(tmp_path / seed)], env=environment, cwd=root, check=True)
    first, second = contents(tmp_path / "1"), contents(tmp_path / "2")
    assert [name for name in first if first[name] != second.get(name)] == []


def test_a_users_own_matplotlib_settings_change_nothing(made: tuple[Path, dict], tmp_path: Path) -> None:
    import matplotlib

    with matplotlib.rc_context({"font.size": 20, "axes.grid": False, "svg.fonttype": "path"}):
        make(make_sweep(), PARAMS, tmp_path, fingerprint="f" * 64)
        assert matplotlib.rcParams["font.size"] == 20  # and they are still theirs afterwards
    assert contents(tmp_path)["figures/loss.svg"] == contents(made[0])["figures/loss.svg"]


def test_figures_name_no_date_and_no_program(made: tuple[Path, dict]) -> None:
    for name, content in contents(made[0] / "figures").items():
        assert b"matplotlib.org" not in content and b"<dc:date>" not in content, name


def test_summary_counts_statuses_and_names_the_best_run(made: tuple[Path, dict]) -> None:
    out, summary = made
    assert json.loads((out / "summary.json").read_text("utf-8")) == summary
    assert summary["schema"] == "tokenaxis/comparison/1" and summary["fingerprint"] == "f" * 64
    target = summary["targets"]["1.60"]
    assert {key: target[key] for key in ("reached", "predicted", "unreachable", "not_available")} == {
        "reached": 7, "predicted": 1, "unreachable": 0, "not_available": 0,
    }  # fmt: skip
    assert (target["best_run"], summary["baseline"], summary["runs"]) == ("gpt_2Kbs", "gpt_2Kbs", 8)
    assert summary["refused"] == [
        {"name": "broken.csv", "reason": "line 14 is cut off", "remedy": "delete the file or repair the line"}
    ]


def test_headlines_say_who_is_first_by_how_much_and_how_sure(made: tuple[Path, dict]) -> None:
    headlines = made[1]["headlines"]
    # (1 + 4000/B_CRIT) / (1 + 2000/B_CRIT) = 1.18; intervals of 2% each: 1.18 exp(±0.028)
    assert round((1 + 4000 / B_CRIT) / (1 + 2000 / B_CRIT), 2) == 1.18
    assert (
        "gpt_2Kbs reaches 1.60 nats per token first, after 2.19M tokens [2.15M, 2.23M] and 1,094 steps, 1.18 times "
        "[1.15, 1.22] fewer than gpt_4Kbs, the next; the last, gpt_16Kbs, needs 2.27 times as many." in headlines
    )
    assert any(line.startswith("gpt_2Kbs is predicted to reach 1.40 nats per token first") for line in headlines)
    assert any("critical batch size is 9.00K tokens per step" in line for line in headlines)
    assert "The ranking by FLOP until 1.40 nats per token is the same under all 4 conventions of counting." in headlines


def test_runs_that_intervals_cannot_tell_apart_are_not_ranked_in_words(tmp_path: Path) -> None:
    runs = [make_run("a", 4000), make_run("b", 4040)]  # 0.3% apart, intervals of 2%
    headlines = make(Sweep("s", runs), PARAMS, tmp_path)["headlines"]
    assert any("the intervals do not tell the two apart" in line for line in headlines)


def test_a_ranking_that_flips_with_the_convention_is_said(tmp_path: Path) -> None:
    runs = [make_run("a", 2000, targets=(1.8,)), make_run("b", 4000, targets=(1.8,))]
    runs[1].conventions["flops_to_target"][0]["flops"]["hf"] = 1.0
    headlines = make(Sweep("s", runs), PARAMS, tmp_path)["headlines"]
    assert any(line.startswith("Which run is first by FLOP until 1.80 nats per token depends") for line in headlines)


def test_the_console_table_fits_a_hundred_columns_and_says_where_the_report_is(made: tuple[Path, dict]) -> None:
    text = console_table(made[1])
    assert max(len(line) for line in text.splitlines()) <= 100
    lines = text.splitlines()
    assert lines[1].split() == ["run", "2.00", "1.80", "1.60", "1.40"]
    assert lines[3].split()[:3] == ["gpt_2Kbs", "689K", "±2%"]
    assert any(line.startswith("gpt_16Kbs") and "~14.5M" in line for line in lines)
    assert any(line.startswith("refused broken.csv: line 14 is cut off") for line in lines)
    assert lines[-1] == "report: results/tiny-gpt/comparison/index.html"


@pytest.mark.parametrize(
    ("half", "shown"),
    [(0.0002, "<0.1%"), (0.0053, "0.5%"), (0.029, "2.9%"), (0.0999, "10%"), (0.5, "50%"), (3.0, ">99%")],
)
def test_half_widths_on_the_console_are_short(made: tuple[Path, dict], half: float, shown: str) -> None:
    cell = {
        "status": "reached",
        "tokens": 2e6,
        "low": 2e6 / (1 + half),
        "high": 2e6 * (1 + half),
        "interval_level": 0.9,
    }
    summary = made[1] | {"cells": {"a": {"1.60": cell}}}
    assert f" 2.00M ±{shown}" in console_table(summary)


def test_the_console_table_takes_a_sweep_as_well(made: tuple[Path, dict]) -> None:
    assert console_table(make_sweep()) == console_table(made[1])


def test_the_console_table_of_many_runs_and_targets_stays_short() -> None:
    targets = tuple(1.4 + 0.05 * number for number in range(20))
    runs = [
        make_run(f"run-with-a-name-that-is-rather-long-{number}", observed=1e6, targets=targets) for number in range(60)
    ]
    text = console_table(Sweep("s", runs), report="r.html")
    assert max(len(line) for line in text.splitlines()) <= 100
    assert "... and 20 more runs in the report" in text
    assert "15 more targets in the report" in text


@pytest.mark.parametrize(
    "sweep",
    [
        Sweep("nothing", []),
        Sweep("all-refused", [], [{"name": "a.csv", "reason": "empty", "remedy": None}]),
        Sweep("no-targets", [make_run("a", targets=()), make_run("b", targets=())]),
        Sweep("none-reached", [make_run("a", targets=(1.0, 1.1))]),
        Sweep("one-run", [make_run("a")]),
        Sweep("one-row", [make_run("a", observed=1, targets=())]),
        Sweep("three-rows", [make_run("a", observed=9000)]),
    ],
    ids=lambda sweep: sweep.name,
)
def test_sweeps_with_little_in_them_make_a_page(sweep: Sweep, tmp_path: Path) -> None:
    summary = make(sweep, PARAMS, tmp_path)
    assert set(TABLES) | {"index.html", "summary.json"} <= set(contents(tmp_path))
    assert summary["headlines"]
    assert summary["runs"] == len(sweep.runs)
    assert max(len(line) for line in console_table(summary).splitlines()) <= 100


def test_an_unreachable_target_is_said_in_words(tmp_path: Path) -> None:
    summary = make(Sweep("s", [make_run("a", targets=(1.6, 1.0))]), PARAMS, tmp_path)
    assert any(
        line.startswith("No run reaches or is predicted to reach 1.00 nats per token") for line in summary["headlines"]
    )
    assert "never" in console_table(summary)


def test_missing_artifacts_of_a_run_are_gaps_and_no_crash(tmp_path: Path) -> None:
    full, bare = make_run("full"), make_run("bare")
    bare = type(bare)(bare.id, bare.name, {}, bare.columns)
    summary = make(Sweep("s", [full, bare]), PARAMS, tmp_path)
    assert summary["cells"]["bare"] == {}


def test_figures_of_an_earlier_comparison_do_not_stay(tmp_path: Path) -> None:
    make(make_sweep(), PARAMS, tmp_path)
    make(Sweep("tiny-gpt", [make_run("a", targets=())]), PARAMS | {"figures": ["svg"]}, tmp_path)
    left = sorted(path.name for path in (tmp_path / "figures").iterdir())
    assert left == ["conventions.svg", "loss.svg", "tracks.svg"]


def test_pdf_figures_on_demand(tmp_path: Path) -> None:
    make(Sweep("s", [make_run("a")]), PARAMS | {"figures": ["pdf"]}, tmp_path)
    make(Sweep("s", [make_run("a")]), PARAMS | {"figures": ["pdf"]}, tmp_path / "again")
    once = (tmp_path / "figures" / "loss.pdf").read_bytes()
    assert once.startswith(b"%PDF") and b"CreationDate" not in once
    assert once == (tmp_path / "again" / "figures" / "loss.pdf").read_bytes()
    assert not (tmp_path / "figures" / "loss.svg").exists()


def test_a_name_that_matplotlib_would_interpret_is_drawn_as_it_is(tmp_path: Path) -> None:
    names = ["_hidden", "lr_$x^2$", "a" * 200, "run\x00\x1b[31m", "実験"]
    runs = [with_id(make_run(str(number)), name) for number, name in enumerate(names)]
    make(Sweep("s", runs), PARAMS, tmp_path)
    svg = (tmp_path / "figures" / "loss.svg").read_text("utf-8")
    assert all(text in svg for text in ("_hidden", "lr_$x^2$", "実験", "\\x00\\x1b[31m"))
    assert "a" * 31 not in svg


def test_static_figures_draw_a_sample_of_the_grey_runs_and_say_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(style, "MOST_GREY", 5)
    runs = [make_run(f"run{number}", 16000, 3e6, seed=number, targets=(1.8,)) for number in range(30)]
    make(Sweep("s", runs), PARAMS, tmp_path)
    page = (tmp_path / "index.html").read_text("utf-8")
    # ten coloured runs and every fourth of the twenty others
    assert "15 runs that would be grey are left out of the static figure; the tables have all." in page
    assert "5 other runs" in (tmp_path / "figures" / "loss.svg").read_text("utf-8")
    assert (tmp_path / "targets.csv").read_text("utf-8").count("\n") == 31


def test_facts_of_very_many_runs_are_left_to_their_passports(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    make(Sweep("s", [make_run("a"), make_run("b")]), PARAMS, tmp_path)
    assert (tmp_path / "index.html").read_text("utf-8").count("n_params") == 2
    monkeypatch.setattr(run_details, "MOST_WITH_FACTS", 1)
    make(Sweep("s", [make_run("a"), make_run("b")]), PARAMS, tmp_path)
    assert "n_params" not in (tmp_path / "index.html").read_text("utf-8")


def test_two_hundred_runs_stay_small_and_quick(tmp_path: Path) -> None:
    import time

    runs = [make_run(f"run{number}", 2000 * 2 ** (number % 4), 3e6, seed=number) for number in range(200)]
    start = time.process_time()
    make(Sweep("many", runs), PARAMS, tmp_path)
    assert time.process_time() - start < 30  # 20 s is the aim on the reference machine; loaded machines are slower
    assert (tmp_path / "index.html").stat().st_size < 10e6
