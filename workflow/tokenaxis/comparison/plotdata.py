"""The curves of the figures as plain rows, for DVC's plots and any other program that draws."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from tokenaxis.comparison.curves import Curve, Windows
from tokenaxis.comparison.tables import Field, Table

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


def plot_tables(curves: Iterable[Curve], windows: Iterable[Windows]) -> tuple[Table, Table]:
    """(smoothed curves, a row per point; predictions, a row per run, target and window)."""
    losses = [
        row for curve in curves for row in _rows(LOSS_FIELDS, [curve.run], curve.smooth.tokens, curve.smooth.value)
    ]
    predictions = [
        row
        for entry in windows
        for row in _rows(
            PREDICTION_FIELDS, [entry.run, entry.target], entry.window_tokens, entry.predicted, entry.low, entry.high
        )
    ]
    return Table("loss", LOSS_FIELDS, losses), Table("stability", PREDICTION_FIELDS, predictions)


def _rows(fields: tuple[Field, ...], fixed: list[Any], *columns: Any) -> Iterator[dict[str, Any]]:
    names = [field.name for field in fields]
    for values in zip(*columns, strict=True):
        rounded = (float(f"{value:.{DIGITS}g}") for value in values)  # nan stays nan, and is written as a blank
        yield dict(zip(names, [*fixed, *rounded], strict=True))
