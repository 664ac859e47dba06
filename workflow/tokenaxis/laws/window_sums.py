"""Sums over many windows of the same points: the moments of a basis, for all windows and exponents at once."""

from __future__ import annotations

import numpy as np

#: points of a block: suffix sums run inside all blocks at once, then over the blocks
BLOCK = 16
#: exponents that may be worked on at a time, and the values of a basis that they may make: a core's cache holds them
AT_ONCE, CACHED = (12, 6, 4, 3, 2, 1), 32_000
#: largest ln of a basis value: its square still is a number
LARGEST_POWER = 300.0


class Order:
    """Points from the last one backward, so arranged that sums over windows of them are cheap.

    A sum over a window is a difference of suffix sums. They run from the end, because exp(-alpha u) is largest at the
    start: later points cannot drown a window. The points are cut into blocks, and the first of every block stand before
    the second of any: a step of the sum is one addition of contiguous rows, for all blocks at once.
    """

    def __init__(self, points: int, begin: np.ndarray, end: np.ndarray):
        """`begin`, `end` (windows,): where windows start and end, counted in points from the end of all."""
        self.points = points
        self.blocks = points // BLOCK + 1  # a zero stands before the first point: the suffix sum of no point
        self.ranges = [np.divmod(place, BLOCK) for place in (begin, end)]
        self.places: dict[int, list[np.ndarray]] = {}

    def arranged(self, values: np.ndarray) -> np.ndarray:
        """(points,) values in this order, zeros around them, (BLOCK, 1, blocks)."""
        padded = np.zeros(self.blocks * BLOCK)
        padded[1 : self.points + 1] = values[::-1]
        return np.ascontiguousarray(padded.reshape(self.blocks, BLOCK).T)[:, None]

    def windowed(self, values: np.ndarray) -> np.ndarray:
        """Sums over each window, (windows, rows), of arranged (BLOCK, rows, blocks) values, which are overwritten."""
        for i in range(1, BLOCK):
            values[i] += values[i - 1]
        before = np.zeros(values.shape[1:])
        np.cumsum(values[-1, :, :-1], axis=1, out=before[:, 1:])
        begin, end, begin_block, end_block = self._places(values.shape[1])
        sums = before.take(begin_block)
        sums -= before.take(end_block)
        sums += values.take(begin)
        sums -= values.take(end)
        return sums

    def _places(self, rows: int) -> list[np.ndarray]:
        """Places of the windows' starts and ends in flat (BLOCK, rows, blocks) values, and of their blocks in flat
        (rows, blocks) values, (windows, rows) each."""
        if rows not in self.places:
            row = np.arange(rows) * self.blocks
            inside = [(inside * rows * self.blocks + block)[:, None] + row for block, inside in self.ranges]
            self.places[rows] = inside + [block[:, None] + row for block, _ in self.ranges]
        return self.places[rows]


def fill_moments(
    order: Order, u: np.ndarray, y: np.ndarray, w: np.ndarray, exponents: np.ndarray, small: int, out: np.ndarray
) -> None:
    """Sums over each window of w b y, w b and w b^2 into (3, windows, exponents), b being the basis of each exponent.

    Args:
        order: of the points. u, y, w: ln x, loss and weight, arranged.
        exponents: (exponents,), a multiple of AT_ONCE[0]. small: how many of them are small (see `_fill_basis`), too.
    """
    at_once = next(few for few in AT_ONCE if few * u.size <= CACHED or few == 1)
    basis = np.empty((BLOCK, at_once, order.blocks))
    moments = np.empty((BLOCK, 3, at_once, order.blocks))
    for first in range(0, len(exponents), at_once):
        at = slice(first, first + at_once)
        _fill_basis(u, exponents[at, None], first < small, basis)
        weighted = np.multiply(basis, w, out=moments[:, 1])
        np.multiply(weighted, y, out=moments[:, 0])
        np.multiply(weighted, basis, out=moments[:, 2])
        sums = order.windowed(moments.reshape(BLOCK, -1, order.blocks))
        out[:, :, at] = sums.reshape(-1, 3, at_once).transpose(1, 0, 2)


def _fill_basis(u: np.ndarray, exponents: np.ndarray, small: bool, out: np.ndarray) -> None:
    """expm1(-alpha u) / alpha of small exponents (nodes, 1), exp(-alpha u) of large ones, into (..., nodes, points)."""
    np.multiply(u, -exponents, out=out)
    np.minimum(out, LARGEST_POWER, out=out)
    if small:
        np.expm1(out, out=out)
        out /= exponents
    else:
        np.exp(out, out=out)
