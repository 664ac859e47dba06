"""The rows of growing windows, binned once for all of them."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from tokenaxis.crossing import NOISE_INFLATION, median, neighbourhood_curve
from tokenaxis.laws.base import TOKEN_UNIT
from tokenaxis.laws.binning import Bins, bins_of, distinct
from tokenaxis.laws.robust import SPIKE
from tokenaxis.series import LossSeries


@dataclass(frozen=True)
class WindowRows:
    """Windows over binned rows.

    Attributes:
        last: (windows,) index of each window's last row in the series.
        begin, end: (windows,) bins that each window spans.
        first: first row that any window holds; the bins count from it.
        bins: rows of each bin.
        ln_x, loss: (bins,) means; the axis in TOKEN_UNIT.
        within: (windows,) sum of squares of rows about the means of their bins.
    """

    last: np.ndarray
    begin: np.ndarray
    end: np.ndarray
    first: int
    bins: Bins
    ln_x: np.ndarray
    loss: np.ndarray
    within: np.ndarray


def window_rows(
    series: LossSeries,
    axis: np.ndarray,
    windows: int,
    fraction: float,
    params: dict[str, Any],
    fit_params: dict[str, Any],
) -> WindowRows | None:
    """Windows whose ends are evenly spaced in steps, each with the fit start that it would have had at its time.

    Args:
        series: the series. axis: (rows,) tokens or weighted tokens. windows: how many.
        fraction: a window starts at this fraction of its tokens, or at the end of warm-up.
        params: the `stability` section. fit_params: the `fits` section.

    Returns:
        None if no window has the rows of a fit.
    """
    ranges = _ranges(series, windows, fraction, params, fit_params)
    if ranges is None:
        return None
    starts, ends = ranges
    first = int(starts.min())
    ln_x = np.log(np.maximum(axis[first:], 1.0) / TOKEN_UNIT)
    loss = without_spikes(series)[first:]
    bins = bins_of(ln_x, _bins(ln_x, fit_params), np.concatenate([starts, ends[:-1]]) - first)
    mean = bins.mean(loss)
    hidden = np.concatenate([[0.0], np.cumsum(bins.mean(loss * loss) * bins.rows - bins.rows * mean * mean)])
    begin, end = np.searchsorted(bins.first, starts - first), np.searchsorted(bins.first, ends - first)
    within = np.maximum(hidden[end] - hidden[begin], 0.0)
    return WindowRows(ends - 1, begin, end, first, bins, bins.mean(ln_x), mean, within)


def _ranges(
    series: LossSeries, windows: int, fraction: float, params: dict[str, Any], fit_params: dict[str, Any]
) -> tuple[np.ndarray, np.ndarray] | None:
    """(first rows, ends) of the windows: ends evenly spaced in steps, each with its own fit start."""
    tokens, rows = series.tokens, len(series.tokens)
    warm = series.fit_start_step if series.fit_start_step is not None else series.warmup_end_step
    past = 0 if warm is None else int(np.searchsorted(series.step, warm))
    past = max(past, int(np.searchsorted(tokens, 0.0, "right")))
    shortest = max(fit_params["min_rows"], math.ceil(params["min_window_fraction"] * (rows - past)))
    if past + shortest > rows:
        return None
    at = np.linspace(series.step[past + shortest - 1], series.step[-1], windows)
    ends = distinct(np.searchsorted(series.step, at, "right"))
    ends[-1] = rows
    starts = np.maximum(np.searchsorted(tokens, fraction * tokens[ends - 1]), past)
    enough = ends - starts >= fit_params["min_rows"]
    return (starts[enough], ends[enough]) if enough.any() else None


def noise_inflation(fits: dict[str, Any]) -> float:
    """Noise inflation of the whole log's fit, or a cautious one where there is none."""
    value = None if fits["fit"] is None else fits["fit"].get("noise_inflation")
    return NOISE_INFLATION**2 if value is None else float(value)


def _bins(ln_x: np.ndarray, fit_params: dict[str, Any]) -> int:
    """As many bins per unit of ln x as the whole log's fit has, over the range of all windows."""
    width = math.log(1.0 / max(fit_params["start_fraction"], 1e-3)) / fit_params["bins"]
    return max(fit_params["bins"], min(int((ln_x[-1] - ln_x[0]) / width), 4 * fit_params["bins"]))


def without_spikes(series: LossSeries) -> np.ndarray:
    """Losses with spikes clipped around a local level, (rows,)."""
    level = neighbourhood_curve(series.tokens, series.loss)
    residual = series.loss - level
    limit = SPIKE * 1.4826 * median(np.abs(residual))
    return level + np.clip(residual, -limit, limit) if limit > 0.0 else series.loss
