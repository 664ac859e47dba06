"""The curves of the figures as plain rows, for DVC's plots and any other program that draws."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from tokenaxis.comparison.curves import Curve, Windows
from tokenaxis.comparison.rounding import texts
from tokenaxis.comparison.tablefiles import csv_field, csv_text
from tokenaxis.comparison.tables import Field

if TYPE_CHECKING:
    import numpy as np

#: digits of a value: a hundred times finer than a pixel
DIGITS = 6
LOSS_FIELDS = (
    Field("run", "text", "run id"),
    Field("tokens", "number", "tokens consumed"),
    Field("loss", "number", "smoothed loss, nats per token"),
)
PREDICTION_FIELDS = (
    Field("run", "text", "run id"),
    Field("target", "number", "target loss, nats per token"),
    Field("tokens_seen", "number", "tokens that the fit had seen"),
    Field("predicted_tokens", "number", "tokens to the target that it predicted; blank: no answer"),
    Field("low", "number", "lower end of the interval, tokens"),
    Field("high", "number", "upper end of the interval, tokens; blank beside a low: unbounded"),
)


def loss_lines(curve: Curve) -> bytes:
    """The rows of plots/loss.csv that are this run's: its smoothed curve."""
    return _lines([csv_field(curve.run)], [curve.smooth.tokens, curve.smooth.value])


def prediction_lines(windows: Sequence[Windows]) -> bytes:
    """The rows of plots/stability.csv that are a run's: one per target and window."""
    heads = [f"{csv_field(entry.run)},{entry.target!r}" for entry in windows]
    columns = (values for entry in windows for values in (entry.window_tokens, entry.predicted, entry.low, entry.high))
    return _lines(heads, list(columns))


def header(fields: tuple[Field, ...]) -> bytes:
    """The first line."""
    return ",".join(csv_text(field.name) for field in fields).encode() + b"\n"


def _lines(heads: list[str], columns: list[np.ndarray]) -> bytes:
    """For each of `heads`, a line per row of its share of `columns`: it, then the values, blank where there is none."""
    found = texts(columns, DIGITS)
    each = len(columns) // max(len(heads), 1)
    lines = []
    for place, head in enumerate(heads):
        own = found[place * each : (place + 1) * each]
        lines += [f"{head},{','.join(row)}\n" for row in zip(*own, strict=True)]
    return "".join(lines).encode("utf-8")
