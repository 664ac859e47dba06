"""The comparison stage in order: answers, curves, tables, figures, summary, page."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from tokenaxis.comparison import derived_tables, files, papers
from tokenaxis.comparison.answers import Answers, collect
from tokenaxis.comparison.batch_size import trade_offs
from tokenaxis.comparison.calibration import calibrated, with_intervals
from tokenaxis.comparison.curves import Shares
from tokenaxis.comparison.digest import Digest, Recipe
from tokenaxis.comparison.drawing import Drawn, draw_all, highlighted
from tokenaxis.comparison.figures import style
from tokenaxis.comparison.headlines import sentences
from tokenaxis.comparison.hindsight import Hindsight, summarised
from tokenaxis.comparison.keeping import Keeper
from tokenaxis.comparison.matched import differences
from tokenaxis.comparison.model import Source, Sweep
from tokenaxis.comparison.options import Options
from tokenaxis.comparison.page import run_details
from tokenaxis.comparison.page.chart_data import page_shares
from tokenaxis.comparison.plotdata import LOSS_FIELDS, PREDICTION_FIELDS, header
from tokenaxis.comparison.quantities import natural
from tokenaxis.comparison.scaling import scaling
from tokenaxis.comparison.shelf import FIGURES, Shelf
from tokenaxis.comparison.summary import metrics, summarise, summary_bytes
from tokenaxis.comparison.tablefiles import csv_bytes, parquet_bytes
from tokenaxis.comparison.tables import Table, build


def make_comparison(
    sweep: Sweep, sources: Sequence[Source], params: dict[str, Any], out: Path, fingerprint: str, shelf: Shelf
) -> dict[str, Any]:
    """See `tokenaxis.comparison.make`; the runs of `sweep` are read from `sources`, or from `shelf`."""
    from tokenaxis.comparison.page.render import Material, render

    options = Options.of(params)
    digests = sorted(
        shelf.digests(sources, _recipe(len(sources), options)), key=lambda digest: natural(digest.result.id)
    )
    sweep = replace(sweep, runs=[digest.result for digest in digests])
    curves = {digest.result.id: digest.curve for digest in digests}
    answers = collect(sweep, options.baseline)
    scores = {digest.result.id: digest.scores for digest in digests if digest.scores}
    answers = with_intervals(answers, calibrated(answers, scores))
    tables = build(sweep, answers, curves)
    found = trade_offs(sweep, answers, options.batch_size_horizon)
    past = _pooled(digests, options.hindsight_horizons)
    gaps = differences(answers, curves, tables["conventions"], answers.level)
    law = scaling(sweep, answers, curves, options)
    headlines = sentences(sweep, answers, tables["conventions"], found, past, law, options.headline_targets)
    summary = summarise(sweep, answers, headlines, fingerprint, past, options.min_runs_per_target)
    tables |= derived_tables.build(gaps, past, found, law)
    folder = files.Folder(out)
    _write_tables(folder, tables, answers)
    for name, fields, part in (("loss", LOSS_FIELDS, "losses"), ("stability", PREDICTION_FIELDS, "predictions")):
        lines = (shelf.part(run, part) for run in answers.runs)
        folder.write_parts(f"plots/{name}.csv", itertools.chain([header(fields)], lines))
    palette = style.Palette(highlighted(answers))
    keeper = Keeper(shelf.folder and shelf.folder / FIGURES, shelf.code, options.figures)
    drawings = draw_all(Drawn(answers, palette, curves, shelf, tables["conventions"], found, law), keeper, folder)
    written = {f"{drawing.name}.{kind}" for drawing in drawings for kind in options.figures}
    files.remove_stale_figures(out / "figures", written)
    material = Material(
        sweep=sweep,
        answers=answers,
        palette=palette,
        curves=curves,
        shelf=shelf,
        tables=tables,
        trade_offs=found,
        hindsight=past,
        differences=gaps,
        scaling=law,
        min_runs=options.min_runs_per_target,
        headlines=headlines,
        drawings=drawings,
        figure_kinds=options.figures,
    )
    folder.write("metrics.json", files.json_bytes(metrics(summary)))
    folder.write_parts("index.html", render(material))
    summary["files"] = folder.hashes
    files.write(out / "summary.json", summary_bytes(summary))  # last: whoever sees it may trust the rest
    keeper.save()
    return summary


def _recipe(runs: int, options: Options) -> Recipe:
    return Recipe(
        options.smooth_half_width,
        options.hindsight_horizons,
        Shares.among(runs),
        page_shares(runs),
        with_facts=runs <= run_details.MOST_WITH_FACTS,
    )


def _pooled(digests: Sequence[Digest], horizons: Sequence[float]) -> list[Hindsight]:
    return summarised({horizon: [row for digest in digests for row in digest.judged[horizon]] for horizon in horizons})


def _write_tables(folder: files.Folder, tables: dict[str, Table], answers: Answers) -> None:
    """Each table as csv, parquet, Markdown and LaTeX; for papers the targets are a matrix of runs and targets."""
    for name, table in tables.items():
        columns = table.columns()
        folder.write(f"{name}.csv", csv_bytes(table, columns))
        folder.write(f"{name}.parquet", parquet_bytes(table, columns))
        if name == "targets":
            rows = papers.matrix(answers)
            folder.write(f"{name}.md", papers.markdown(answers, rows))
            folder.write(f"{name}.tex", papers.latex(answers, rows))
        else:
            found = papers.shown(table, columns)
            folder.write(f"{name}.md", papers.table_markdown(table, found))
            folder.write(f"{name}.tex", papers.table_latex(table, found))
