"""The page's HTML from its material. All text goes through Jinja: escaped, control characters spelled out."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tokenaxis.comparison.answers import Answers
from tokenaxis.comparison.batch_size import TradeOff
from tokenaxis.comparison.curves import Curve, Windows
from tokenaxis.comparison.figures.style import Drawing, Palette
from tokenaxis.comparison.hindsight import Hindsight
from tokenaxis.comparison.matched import Difference
from tokenaxis.comparison.model import Sweep
from tokenaxis.comparison.scaling import Scaling
from tokenaxis.comparison.tables import Table

FOLDER = Path(__file__).parent


@dataclass(frozen=True)
class Material:
    """What the page shows; `inline` holds the figures' svg by name, `figure_kinds` the files beside the page.

    `min_runs`: targets that fewer runs were asked for stand in a table of their own.
    """

    sweep: Sweep
    answers: Answers
    palette: Palette
    curves: dict[str, Curve]
    windows: list[Windows]
    tables: dict[str, Table]
    trade_offs: list[TradeOff]
    hindsight: list[Hindsight]
    differences: list[Difference]
    scaling: Scaling
    min_runs: int
    headlines: list[str]
    drawings: list[Drawing]
    inline: dict[str, bytes]
    figure_kinds: tuple[str, ...]


def render(material: Material) -> str:
    """The whole page as text."""
    from tokenaxis.comparison.page import sections

    environment = _environment()
    template = environment.get_template("page.html.j2")
    return template.render(sections.context(material)) + "\n"


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
