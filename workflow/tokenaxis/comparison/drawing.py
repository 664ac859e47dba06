"""Which figures there are, what each is drawn from, and which runs stand out in them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from tokenaxis.comparison.answers import Answers
from tokenaxis.comparison.batch_size import TradeOff
from tokenaxis.comparison.curves import Curve, Windows
from tokenaxis.comparison.digest import read_drawn
from tokenaxis.comparison.figures import batch_size, conventions, loss, scaling, stability, style, targets, tracks
from tokenaxis.comparison.keeping import Keeper
from tokenaxis.comparison.quantities import plural
from tokenaxis.comparison.scaling import Scaling
from tokenaxis.comparison.shelf import Shelf
from tokenaxis.comparison.tables import Table

if TYPE_CHECKING:
    from tokenaxis.comparison.files import Folder


@dataclass(frozen=True)
class Drawn:
    """What figures are drawn from; raw points and windows are fetched from the shelf for the runs that are shown."""

    answers: Answers
    palette: style.Palette
    curves: dict[str, Curve]
    shelf: Shelf
    conventions: Table
    trade_offs: list[TradeOff]
    scaling: Scaling


def highlighted(answers: Answers) -> list[str]:
    """Runs in the order in which they deserve a colour: the baseline, the first at each target, then by rank."""
    order = [answers.baseline] if answers.baseline else []
    rankings = [[cell.run for cell in answers.ranking(target)] for target in reversed(answers.targets)]
    for place in range(max((len(ranking) for ranking in rankings), default=0)):
        order += [ranking[place] for ranking in rankings if place < len(ranking)]
    return list(dict.fromkeys([*order, *answers.runs]))


def draw_all(drawn: Drawn, keeper: Keeper, folder: Folder) -> list[style.Drawing]:
    """Write every figure that there is data for, and return them in the page's order."""
    with keeper:
        found = [keeper.figure(name, data, draw, folder) for name, data, draw in _figures(drawn)]
    return [drawing for drawing in found if drawing is not None]


def _figures(drawn: Drawn) -> Iterator[tuple[str, Any, Callable[[], style.Drawing | None]]]:
    """(name, all that decides how it looks, how to draw it) of each figure."""
    answers, palette = drawn.answers, drawn.palette
    shown = style.shown_runs(answers.runs, palette)
    some, left = answers.only(shown), len(answers.runs) - len(shown)
    curves = {run: drawn.curves[run] for run in some.runs}
    windows: list[Windows] = []
    for run in some.runs:
        raw, own = read_drawn(run, drawn.shelf.part(run, "drawn"))
        windows += own
        if len(some.runs) <= loss.MOST_RAW:
            curves[run] = replace(curves[run], raw=raw)
    thin = [entry.only(shown) for entry in drawn.trade_offs]
    best = targets.shown(answers)
    costs = conventions.shown(drawn.conventions, answers.focus)
    yield "loss", [some, curves, palette, left], lambda: _partly(loss.draw(some, curves, palette), left)
    yield "targets", [best, palette], lambda: targets.draw(best, palette)
    yield "stability", [some, windows, palette, left], lambda: _partly(stability.draw(some, windows, palette), left)
    yield "batch_size", [thin, left], lambda: _partly(batch_size.draw(thin), left)
    yield "scaling", _law(drawn.scaling), lambda: scaling.draw(drawn.scaling)
    yield "tracks", [curves, palette, left], lambda: _partly(tracks.draw(curves, palette), left)
    yield "conventions", costs, lambda: conventions.draw(costs)


def _law(found: Scaling) -> Any:
    return None if found.fit is None else [found.used, found.fit.law, found.budgets]


def _partly(drawing: style.Drawing | None, left: int) -> style.Drawing | None:
    if drawing is None or not left:
        return drawing
    more = f" {plural(left, 'run')} that would be grey are left out of the static figure; the tables have all."
    return replace(drawing, caption=drawing.caption + more)
