"""Bins of equal width in ln x: what a fit sees instead of rows."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class Bins:
    """Which rows make up which bin.

    Attributes:
        first: (bins,) first row of each bin.
        rows: (bins,) rows of each bin, float.
    """

    first: np.ndarray
    rows: np.ndarray

    def mean(self, values: np.ndarray) -> np.ndarray:
        """Mean of (rows,) values in each bin, (bins,)."""
        if len(self.first) == len(values):
            return values
        return np.add.reduceat(values, self.first) / self.rows


def bins_of(ln_x: np.ndarray, bins: int, cuts: np.ndarray | None = None) -> Bins:
    """Bins of (rows,) ascending ln x; none are empty. A series with no more rows than bins is not binned.

    Args:
        ln_x: (rows,) ascending.
        bins: number of bins over the whole range.
        cuts: rows at which a bin must begin, besides.
    """
    count = len(ln_x)
    if count <= bins:
        return Bins(np.arange(count), np.ones(count))
    edges = np.linspace(ln_x[0], ln_x[-1], bins + 1)[:-1]
    first = np.searchsorted(ln_x, edges)
    first = distinct(first if cuts is None else np.concatenate([first, cuts]))
    return Bins(first, np.diff(np.append(first, count)).astype(float))


def distinct(values: np.ndarray) -> np.ndarray:
    """The different ones of (values,), ascending: np.unique, without its hash table (slow for a few hundred)."""
    ascending = np.sort(values)
    return ascending[np.append(True, ascending[1:] != ascending[:-1])]
