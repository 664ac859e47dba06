"""What the page's script draws: targets, views and runs as compact JSON, and the plotting library itself."""

from __future__ import annotations

import importlib.util
import json
import math
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tokenaxis.comparison import quantities as q
from tokenaxis.comparison.figures.loss import loss_limits, token_limits
from tokenaxis.comparison.figures.style import SERIES, Palette
from tokenaxis.comparison.page.chart_data import DIGITS, MOST_WHOLE, page_shares
from tokenaxis.errors import printable

if TYPE_CHECKING:
    from tokenaxis.comparison.model import RunResult
    from tokenaxis.comparison.page.render import Material


def plotly_bytes() -> bytes | None:
    """plotly.js as the package `plotly` carries it, without importing that package; None when it is not there."""
    spec = importlib.util.find_spec("plotly")
    if spec is None or spec.origin is None:
        return None
    path = Path(spec.origin).parent / "package_data" / "plotly.min.js"
    if not path.is_file():
        return None
    # a closing tag inside a string of the library would end the page's script element
    return path.read_bytes().replace(b"</script", b"<\\/script")


def payload(material: Material, drawn: Callable[[str], bytes]) -> Iterator[bytes]:
    """The data of the page's charts, piece by piece: JSON that is safe inside a script element.

    Args:
        drawn: run id -> what `chart_data` made of it.
    """
    answers = material.answers
    by_id = {run.id: run for run in material.sweep.runs}
    conventions = sorted({row["convention"] for row in material.tables["conventions"].rows})
    data = {
        "targets": list(answers.targets),
        "targetNames": [q.target(target) for target in answers.targets],
        "focus": answers.focus,
        "conventions": [printable(name) for name in conventions],
        "view": _view(material),
    }
    yield _safe(data)[:-1] + b',"runs":['
    for number, run in enumerate(answers.runs):
        about = _safe(_about(material, by_id[run], conventions))[:-1]
        yield b"," * (number > 0) + about + b"," + drawn(run) + b"}"
    yield b"]}"


def thinned_to(runs: int) -> str:
    """What the page says about its charts of many runs; "" where nothing is thinned."""
    shares = page_shares(runs)
    if 1 << max(runs - 1, 0).bit_length() <= MOST_WHOLE:
        return ""
    raw = f", {shares.raw} points as logged" if shares.raw else "; as logged only coloured runs are drawn"
    return (
        f"With {q.plural(runs, 'run')}, a grey run's curve has at most {shares.smooth} points here{raw}. "
        f"Coloured runs have all of theirs; no table leaves out a run."
    )


def _safe(data: dict[str, Any]) -> bytes:
    text = json.dumps(data, separators=(",", ":"), allow_nan=False)  # ASCII: also no U+2028 in a script
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026").encode("ascii")


def _view(material: Material) -> dict[str, list[float | None]] | None:
    """The part of the plane that the static figure shows."""
    drawn = [curve for curve in material.curves.values() if len(curve.smooth.tokens)]
    if not drawn:
        return None
    bottom, top = loss_limits(material.answers, drawn)
    return {"loss": _numbers((bottom, top)), "tokens": _numbers(token_limits(material.answers, drawn, top))}


def _about(material: Material, run: RunResult, conventions: list[str]) -> dict[str, Any]:
    """What there is to say about a run beside its curves."""
    palette: Palette = material.palette
    per_token = run.conventions.get("flops_per_token") or {}
    cells = [
        [index, cell.status == "reached", *_numbers((cell.tokens, cell.low, cell.high))]
        for index, target in enumerate(material.answers.targets)
        if (cell := material.answers.cells.get((run.id, target))) is not None and cell.answered
    ]
    return {
        "name": printable(run.id),
        "colour": SERIES.index(palette.colour(run.id)) if run.id in palette else -1,
        "loss": (material.curves[run.id].loss_name or "").replace("_", " "),
        "flops": _numbers(per_token.get(name) for name in conventions),
        "cells": cells,
    }


def _numbers(values: Iterable[float | None]) -> list[float | None]:
    """Rounded to DIGITS significant digits, whole ones without a point; None for what is not finite."""
    shown: list[float | None] = []
    for value in values:
        if value is None or not math.isfinite(value):
            shown.append(None)
            continue
        number = float(f"{value:.{DIGITS}g}")
        shown.append(int(number) if number == int(number) and abs(number) < 1e15 else number)
    return shown
