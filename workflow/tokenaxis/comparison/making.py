"""The comparison stage in order: answers, curves, tables, figures, summary, page."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

from tokenaxis.comparison import derived_tables, files, papers
from tokenaxis.comparison.answers import Answers, collect
from tokenaxis.comparison.batch_size import TradeOff, trade_offs
from tokenaxis.comparison.calibration import with_calibration
from tokenaxis.comparison.curves import Curve, Windows, read_curve, read_windows
from tokenaxis.comparison.figures import batch_size, conventions, loss, stability, style, targets, tracks
from tokenaxis.comparison.figures import scaling as scaling_figure
from tokenaxis.comparison.headlines import sentences
from tokenaxis.comparison.hindsight import hindsight
from tokenaxis.comparison.matched import differences
from tokenaxis.comparison.model import Sweep
from tokenaxis.comparison.options import Options
from tokenaxis.comparison.plotdata import plot_tables
from tokenaxis.comparison.quantities import plural
from tokenaxis.comparison.scaling import Scaling, scaling
from tokenaxis.comparison.summary import metrics, summarise
from tokenaxis.comparison.tablefiles import csv_bytes, parquet_bytes
from tokenaxis.comparison.tables import Table, build, in_order


def make_comparison(sweep: Sweep, params: dict[str, Any], out: Path, fingerprint: str) -> dict[str, Any]:
    """See `tokenaxis.comparison.make`."""
    from tokenaxis.comparison.page.render import Material, render

    options = Options.of(params)
    answers = collect(sweep, options.baseline)
    curves: dict[str, Curve] = {}
    windows: list[Windows] = []
    for run in in_order(sweep.runs):
        curves[run.id] = read_curve(run, len(sweep.runs), options.smooth_half_width)
        windows += read_windows(run, len(sweep.runs))
    answers = with_calibration(answers, windows)
    tables = build(sweep, answers, curves)
    found = trade_offs(sweep, answers, options.batch_size_horizon)
    past = hindsight(answers, windows, options.hindsight_horizons)
    gaps = differences(answers, curves, tables["conventions"], answers.level)
    law = scaling(sweep, answers, curves, options)
    headlines = sentences(sweep, answers, tables["conventions"], found, past, law, options.headline_targets)
    summary = summarise(sweep, answers, headlines, fingerprint, past, options.min_runs_per_target)
    tables |= derived_tables.build(gaps, past, found, law)
    folder = files.Folder(out)
    _write_tables(folder, tables, answers)
    for table in plot_tables(curves.values(), windows):
        folder.write(f"plots/{table.name}.csv", csv_bytes(table))
    kinds = options.figures
    palette = style.Palette(highlighted(answers))
    with style.drawing_style():
        drawings = draw_all(answers, palette, curves, windows, tables["conventions"], found, law)
        inline = {drawing.name: _save(drawing, folder, kinds) for drawing in drawings}
    written = {f"{drawing.name}.{kind}" for drawing in drawings for kind in kinds}
    files.remove_stale_figures(out / "figures", written)
    material = Material(
        sweep=sweep,
        answers=answers,
        palette=palette,
        curves=curves,
        windows=windows,
        tables=tables,
        trade_offs=found,
        hindsight=past,
        differences=gaps,
        scaling=law,
        min_runs=options.min_runs_per_target,
        headlines=headlines,
        drawings=drawings,
        inline=inline,
        figure_kinds=kinds,
    )
    folder.write("metrics.json", files.json_bytes(metrics(summary)))
    folder.write("index.html", render(material).encode("utf-8"))
    summary["files"] = folder.hashes
    files.write(out / "summary.json", files.json_bytes(summary))  # last: whoever sees it may trust the rest
    return summary


def _write_tables(folder: files.Folder, tables: dict[str, Table], answers: Answers) -> None:
    """Each table as csv, parquet, Markdown and LaTeX; for papers the targets are a matrix of runs and targets."""
    for name, table in tables.items():
        folder.write(f"{name}.csv", csv_bytes(table))
        folder.write(f"{name}.parquet", parquet_bytes(table))
        matrix = name == "targets"
        folder.write(f"{name}.md", papers.markdown(answers) if matrix else papers.table_markdown(table))
        folder.write(f"{name}.tex", papers.latex(answers) if matrix else papers.table_latex(table))


def highlighted(answers: Answers) -> list[str]:
    """Runs in the order in which they deserve a colour: the baseline, the first at each target, then by rank."""
    order = [answers.baseline] if answers.baseline else []
    rankings = [[cell.run for cell in answers.ranking(target)] for target in reversed(answers.targets)]
    for place in range(max((len(ranking) for ranking in rankings), default=0)):
        order += [ranking[place] for ranking in rankings if place < len(ranking)]
    return list(dict.fromkeys([*order, *answers.runs]))


def draw_all(
    answers: Answers,
    palette: style.Palette,
    curves: dict[str, Curve],
    windows: list[Windows],
    convention_table: Table,
    found: list[TradeOff],
    law: Scaling,
) -> list[style.Drawing]:
    """Every figure that there is data for, in the page's order."""
    shown = style.shown_runs(answers.runs, palette)
    some = answers.only(shown)
    left = len(answers.runs) - len(shown)
    thin = [entry.only(shown) for entry in found]
    drawn = (
        _partly(loss.draw(some, curves, palette), left),
        targets.draw(answers, palette),
        _partly(stability.draw(some, [entry for entry in windows if entry.run in shown], palette), left),
        _partly(batch_size.draw(thin), left),
        scaling_figure.draw(law),
        _partly(tracks.draw({run: curves[run] for run in some.runs}, palette), left),
        conventions.draw(convention_table, answers.focus),
    )
    return [drawing for drawing in drawn if drawing is not None]


def _partly(drawing: style.Drawing | None, left: int) -> style.Drawing | None:
    if drawing is None or not left:
        return drawing
    more = f" {plural(left, 'run')} that would be grey are left out of the static figure; the tables have all."
    return replace(drawing, caption=drawing.caption + more)


def _save(drawing: style.Drawing, folder: files.Folder, kinds: tuple[str, ...]) -> bytes:
    """Write the figure in each of `kinds` and return it as svg for the page."""
    svg = style.rendered(drawing.figure, "svg")
    for kind in kinds:
        content = svg if kind == "svg" else style.rendered(drawing.figure, kind)
        folder.write(f"figures/{drawing.name}.{kind}", content)
    return svg
