"""What the engines' own reports show of the comparison: `snakemake --report`, `dvc plots` and `dvc metrics`."""

from __future__ import annotations

import json
import zipfile
from collections.abc import Callable
from pathlib import Path

from .conftest import Checkout

Copy = Callable[[Checkout], Checkout]


def caption_of(checkout: Checkout, name: str) -> str:
    """The first words of a caption, as they stand in HTML."""
    text = (checkout.path / "workflow" / "report" / f"{name}.rst").read_text(encoding="utf-8")
    return " ".join(text.split()[:4])


def test_snakemakes_report_holds_every_figure_with_its_caption(made_by_snakemake: Checkout, copy_of: Copy) -> None:
    checkout = copy_of(made_by_snakemake)
    checkout.snakemake()  # a copy has new inodes: the first run looks again
    checkout.run("snakemake", "--report", "report.zip")  # no --cores: the shards stay as they were
    figures = {path.stem: path.read_bytes() for path in (checkout.results / "comparison" / "figures").glob("*.svg")}
    assert {"loss", "targets", "stability", "tracks"} <= figures.keys()
    with zipfile.ZipFile(checkout.path / "report.zip") as report:
        held = {Path(name).name: report.read(name) for name in report.namelist()}
    page = held["report.html"].decode()
    for name, content in figures.items():
        assert held[f"{name}.svg"] == content
        assert caption_of(checkout, name) in page, f"workflow/report/{name}.rst"
    assert "index.html" in held and "targets.csv" in held
    assert "Nothing to be done" in checkout.snakemake().stderr, "a report is no reason to run anything again"


def test_every_figure_that_can_be_drawn_has_a_caption(root: Path) -> None:
    drawn = {path.stem for path in (root / "workflow" / "tokenaxis" / "comparison" / "figures").glob("*.py")}
    captions = {path.stem for path in (root / "workflow" / "report").glob("*.rst")}
    assert drawn - {"__init__", "panels", "style"} == captions - {"page", "table", "workflow"}


def test_a_report_before_the_first_run_is_not_an_error_of_the_program(checkout: Checkout) -> None:
    assert "Traceback" not in checkout.run("snakemake", "--report", "report.zip", check=False).stderr


def test_a_deleted_figure_comes_back(made_by_snakemake: Checkout, copy_of: Copy) -> None:
    checkout = copy_of(made_by_snakemake)
    (checkout.results / "comparison" / "figures" / "loss.svg").unlink()
    checkout.snakemake()
    assert (checkout.results / "comparison" / "figures" / "loss.svg").exists()


def test_dvc_plots_show_losses_and_predictions_with_units(made_by_dvc: Checkout, copy_of: Copy) -> None:
    checkout = copy_of(made_by_dvc)
    checkout.dvc("plots", "show", "-o", "plots")
    page = (checkout.path / "plots" / "index.html").read_text(encoding="utf-8")
    for words in (
        "Loss against tokens",
        "smoothed loss (nats per token)",
        "predicted tokens to the target",
        "tokens seen",
    ):
        assert words in page
    assert page.count("a_0.5Mbs") > 10, "a row per point"


def test_dvc_metrics_are_a_few_numbers(made_by_dvc: Checkout) -> None:
    shown = json.loads(made_by_dvc.dvc("metrics", "show", "--json").stdout)
    (found,) = (entry["data"] for entry in shown[""]["data"].values())
    assert found["runs"] == 4 and found["refused"] == 1
    assert set(found["targets"]["3.20"]) == {"best_run", "best_tokens", "reached", "predicted"}
