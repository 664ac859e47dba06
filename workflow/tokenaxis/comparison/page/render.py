"""The page's HTML from its material. All text goes through Jinja: escaped, control characters spelled out."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tokenaxis.comparison.answers import Answers
from tokenaxis.comparison.batch_size import TradeOff
from tokenaxis.comparison.curves import Curve
from tokenaxis.comparison.figures.style import Drawing, Palette
from tokenaxis.comparison.hindsight import Hindsight
from tokenaxis.comparison.matched import Difference
from tokenaxis.comparison.model import Sweep
from tokenaxis.comparison.page.markup import Parts
from tokenaxis.comparison.scaling import Scaling
from tokenaxis.comparison.shelf import Shelf
from tokenaxis.comparison.tables import Table

FOLDER = Path(__file__).parent


@dataclass(frozen=True)
class Material:
    """What the page shows; `shelf` holds what is known of each run, `figure_kinds` are the files beside the page.

    `min_runs`: targets that fewer runs were asked for stand in a table of their own.
    """

    sweep: Sweep
    answers: Answers
    palette: Palette
    curves: dict[str, Curve]
    shelf: Shelf
    tables: dict[str, Table]
    trade_offs: list[TradeOff]
    hindsight: list[Hindsight]
    differences: list[Difference]
    scaling: Scaling
    min_runs: int
    headlines: list[str]
    drawings: list[Drawing]
    figure_kinds: tuple[str, ...]


def render(material: Material) -> Iterator[bytes]:
    """The page, piece by piece: what there is one of comes from the template, what each run has from its digest."""
    from tokenaxis.comparison.page import sections

    parts = Parts()
    template = _environment().get_template("page.html.j2")
    yield from parts.filled(template.render(sections.context(material, parts)) + "\n")


def _environment() -> Any:
    from jinja2 import Environment, FileSystemLoader, StrictUndefined

    from tokenaxis.errors import printable

    def shown(value: Any) -> Any:
        # type, not isinstance: markup is a str too, and its line breaks are wanted
        return printable(value) if type(value) is str else "" if value is None else value

    return Environment(
        loader=FileSystemLoader(FOLDER),
        autoescape=True,
        finalize=shown,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
