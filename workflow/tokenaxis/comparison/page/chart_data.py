"""What the page's script draws of one run, as compact JSON: all of a coloured run, a thinned copy of a grey one."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass

from tokenaxis.comparison.curves import RAW_POINTS, Curve, Windows
from tokenaxis.comparison.rounding import json_lists
from tokenaxis.comparison.thinning import Track

#: digits of a drawn number: a pixel is some 1e-3 of a chart, which leaves a factor of a hundred to zoom in
DIGITS = 5
#: up to so many runs the page carries the curves as the figures have them
MOST_WHOLE = 512
#: points of all grey runs together beyond that: smoothed curves, learning rates, batch sizes
ALL_SMOOTH, ALL_RATES, ALL_BATCHES = 60_000, 20_000, 60_000
#: windows of all runs and targets together, whatever the number of runs
ALL_WINDOWS = 24_000
#: fewer raw points than this show nothing of a curve: then grey runs have none
FEWEST_RAW = 40
#: points of a grey run at least
FEWEST_SMOOTH, FEWEST_RATES, FEWEST_BATCHES = 8, 4, 4


@dataclass(frozen=True)
class PageShares:
    """Points of one grey run on the page; None: as many as it has. 0 raw points: none at all."""

    smooth: int | None
    raw: int | None
    rates: int | None
    batches: int | None
    windows: int


def page_shares(runs: int) -> PageShares:
    """The shares of one of `runs` runs; they change where the number of runs passes a power of two, not with each."""
    several = 1 << max(runs - 1, 0).bit_length()
    windows = max(ALL_WINDOWS // several, 1)
    if several <= MOST_WHOLE:
        return PageShares(None, None, None, None, windows)
    raw = RAW_POINTS // several
    return PageShares(
        smooth=max(FEWEST_SMOOTH, ALL_SMOOTH // several),
        raw=raw if raw >= FEWEST_RAW else 0,
        rates=max(FEWEST_RATES, ALL_RATES // several),
        batches=max(FEWEST_BATCHES, ALL_BATCHES // several),
        windows=windows,
    )


WHOLE = PageShares(None, None, None, None, ALL_WINDOWS)


def chart_data(curve: Curve, windows: Sequence[Windows], shares: PageShares) -> str:
    """Members of the run's JSON object, without braces."""
    import numpy as np

    lr = None if curve.lr is None else _thinned(curve.lr, shares.rates)
    batch = None if curve.batch is None else _thinned(curve.batch, shares.batches)
    stride = max(1, -(-sum(len(entry.predicted) for entry in windows) // shares.windows))
    tracks = {
        "raw": None if shares.raw == 0 or curve.raw is None else _thinned(curve.raw, shares.raw),
        "smooth": _thinned(curve.smooth, shares.smooth),
        "hours": curve.hours,
        "lr": lr,
        "batch": batch,
    }
    kept = [entry.thinned(stride) for entry in windows]
    arrays = [np.array(curve.attempt_starts, dtype=np.float64)]
    arrays += [values for track in tracks.values() if track is not None for values in (track.tokens, track.value)]
    arrays += [values for entry in kept for values in (entry.window_tokens, entry.predicted, entry.low, entry.high)]
    arrays += [batch.step] if batch is not None else []
    lists = iter(json_lists(arrays, DIGITS))
    members = [f'"attempts":{next(lists)}']
    places: dict[str, str] = {}
    for name, track in tracks.items():
        places[name] = "null" if track is None else next(lists)
        members.append(f'"{name}":' + ("null" if track is None else f"[{places[name]},{next(lists)}]"))
    each = [f"[{float(entry.target)!r},{','.join(itertools.islice(lists, 4))}]" for entry in kept]
    members.append(f'"windows":[{",".join(each)}]')
    # where the batch changes: between those places steps are a straight line of tokens
    members.append('"steps":' + ("null" if batch is None else f"[{places['batch']},{next(lists)}]"))
    return ",".join(members)


def _thinned(track: Track, points: int | None) -> Track:
    """At most `points` points: evenly spaced rows, both ends and the highest value among them."""
    import numpy as np

    if points is None or len(track.tokens) <= points:
        return track
    even = np.linspace(0, len(track.tokens) - 1, points - 1).round().astype(np.int64)
    rows = np.unique(np.append(even, track.value.argmax()))
    return Track(track.tokens[rows], track.step[rows], track.value[rows])
