"""What the page's script draws: curves, crossings and windows as compact JSON, and the plotting library itself."""

from __future__ import annotations

import functools
import importlib.util
import json
import math
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tokenaxis.comparison import quantities as q
from tokenaxis.comparison.figures.loss import loss_limits, token_limits
from tokenaxis.comparison.figures.style import SERIES, Palette
from tokenaxis.errors import printable

if TYPE_CHECKING:
    import numpy as np

    from tokenaxis.comparison.curves import Curve, Track, Windows
    from tokenaxis.comparison.model import RunResult
    from tokenaxis.comparison.page.render import Material

#: digits of a drawn number: a pixel is some 1e-3 of a chart, which leaves a factor of a hundred to zoom in
DIGITS = 5
#: windows of all runs and targets together that the page carries
PAGE_WINDOWS = 24_000


@functools.cache
def plotly_source() -> str | None:
    """plotly.js as the package `plotly` carries it, without importing that package; None when it is not there."""
    spec = importlib.util.find_spec("plotly")
    if spec is None or spec.origin is None:
        return None
    path = Path(spec.origin).parent / "package_data" / "plotly.min.js"
    if not path.is_file():
        return None
    # a closing tag inside a string of the library would end the page's script element
    return path.read_text(encoding="utf-8").replace("</script", "<\\/script")


def payload(material: Material) -> str:
    """The data of the page's charts as JSON that is safe inside a script element."""
    answers = material.answers
    by_id = {run.id: run for run in material.sweep.runs}
    windows: dict[str, list[Windows]] = {}
    stride = max(1, -(-sum(len(entry.predicted) for entry in material.windows) // PAGE_WINDOWS))
    for entry in material.windows:
        windows.setdefault(entry.run, []).append(entry.thinned(stride))
    conventions = sorted({row["convention"] for row in material.tables["conventions"].rows})
    data = {
        "targets": list(answers.targets),
        "targetNames": [q.target(target) for target in answers.targets],
        "focus": answers.focus,
        "conventions": [printable(name) for name in conventions],
        "view": _view(material),
        "runs": [
            _run(material, by_id[run], material.curves[run], windows.get(run, []), conventions) for run in answers.runs
        ],
    }
    text = json.dumps(data, separators=(",", ":"), allow_nan=False)  # ASCII: also no U+2028 in a script
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


def _view(material: Material) -> dict[str, list[float | None]] | None:
    """The part of the plane that the static figure shows."""
    drawn = [curve for curve in material.curves.values() if len(curve.smooth.tokens)]
    if not drawn:
        return None
    bottom, top = loss_limits(material.answers, drawn)
    return {"loss": _numbers((bottom, top)), "tokens": _numbers(token_limits(material.answers, drawn, top))}


def _run(
    material: Material, run: RunResult, curve: Curve, windows: list[Windows], conventions: list[str]
) -> dict[str, Any]:
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
        "loss": (curve.loss_name or "").replace("_", " "),
        "raw": _pair(curve.raw),
        "smooth": _pair(curve.smooth),
        "steps": _knots(curve),
        "hours": _pair(curve.hours),
        "lr": _pair(curve.lr),
        "batch": _pair(curve.batch),
        "attempts": _numbers(curve.attempt_starts),
        "flops": _numbers(per_token.get(name) for name in conventions),
        "cells": cells,
        "windows": [
            [
                material.answers.targets.index(entry.target),
                *(_numbers(values) for values in (entry.window_tokens, entry.predicted, entry.low, entry.high)),
            ]
            for entry in windows
            if entry.target in material.answers.targets
        ],
    }


def _pair(track: Track | None) -> list[list[float | None]] | None:
    return None if track is None else [_numbers(track.tokens), _numbers(track.value)]


def _knots(curve: Curve) -> list[list[float | None]] | None:
    """(tokens, step) where the batch changes: between them steps are a straight line of tokens."""
    return None if curve.batch is None else [_numbers(curve.batch.tokens), _numbers(curve.batch.step)]


def _numbers(values: Iterable[float | None] | np.ndarray) -> list[float | None]:
    """Rounded to DIGITS significant digits, whole ones without a point; None for what is not finite."""
    shown: list[float | None] = []
    for value in values:
        if value is None or not math.isfinite(value):
            shown.append(None)
            continue
        number = float(f"{value:.{DIGITS}g}")
        shown.append(int(number) if number == int(number) and abs(number) < 1e15 else number)
    return shown
