"""One run's share of the comparison: all that is read from its artifacts, thinned, and the texts that it alone decides.

It is made once and kept (`shelf`), so that a comparison of thousands of runs reads the artifacts of those that changed.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from tokenaxis.comparison.answers import Answers, answers_of
from tokenaxis.comparison.calibration import scores_of
from tokenaxis.comparison.curves import Curve, Shares, Windows, read_curve, read_windows
from tokenaxis.comparison.hindsight import Judged, judged
from tokenaxis.comparison.model import RunResult
from tokenaxis.comparison.page.chart_data import WHOLE, PageShares, chart_data
from tokenaxis.comparison.page.run_details import details, run_row
from tokenaxis.comparison.plotdata import loss_lines, prediction_lines
from tokenaxis.comparison.tables import run_row as row_of
from tokenaxis.comparison.thinning import Track

#: parts of a record: what a comparison holds of every run, then what it fetches when it is wanted
PARTS = ("known", "numbers", "drawn", "losses", "predictions", "chart", "row", "details")


@dataclass(frozen=True)
class Recipe:
    """What a digest depends on beside its run: a digest of another recipe is of no use."""

    half_width: float
    horizons: tuple[float, ...]
    shares: Shares
    page: PageShares
    with_facts: bool


@dataclass(frozen=True)
class Digest:
    """What is held of every run.

    Attributes:
        result: the artifacts without their tables, and without what only `details` shows.
        curve: without its raw points.
        scores: as in `calibration.scores_of`; judged: as in `hindsight.judged`.
    """

    result: RunResult
    curve: Curve
    scores: list[float]
    judged: Judged


def record(run: RunResult, recipe: Recipe) -> dict[str, bytes]:
    """The parts of a run's digest, made from its artifacts."""
    curve = read_curve(run, recipe.shares, recipe.half_width)
    windows = read_windows(run, recipe.shares)
    cells = {(run.id, cell.target): cell for cell in answers_of(run)}
    own = Answers((run.id,), tuple(target for _, target in cells), cells, None, "")
    past = judged(own, windows, recipe.horizons)
    row = row_of(run, curve)
    arrays = _Arrays()
    known = {
        "result": _trimmed(run),
        "curve": _described(replace(curve, raw=None), arrays),
        "scores": arrays.add(scores_of(own, windows).get(run.id, [])),
        "judged": [
            [horizon, arrays.add([value for entry in rows for value in entry])] for horizon, rows in past.items()
        ],
    }
    drawn = _Arrays()
    shown = {
        "raw": _track(curve.raw, drawn),
        "windows": [[entry.target, *map(drawn.add, _columns(entry))] for entry in windows],
    }
    texts = {"known": _json(known), "numbers": arrays.content, "drawn": _json(shown) + b"\n" + drawn.content}
    return texts | {
        "losses": loss_lines(curve),
        "predictions": prediction_lines(windows),
        "chart": chart_data(curve, windows, recipe.page).encode("ascii"),
        "row": run_row(run, row).encode("utf-8"),
        "details": details(run, row, recipe.with_facts).encode("utf-8"),
    }


def read(parts: dict[str, bytes], same: Callable[[Any], Any] = lambda value: value) -> Digest:
    """What `record` wrote into the parts "known" and "numbers".

    Args:
        same: returns one object for all equal ones, for what many runs have in common.
    """
    known, take = json.loads(parts["known"]), _taker(parts["numbers"])
    result = known["result"]
    conventions = result["conventions"]
    for key in ("not_available", "formulas"):
        if key in conventions:
            conventions[key] = same(conventions[key])
    past = {}
    for horizon, place in known["judged"]:
        values = take(place).tolist()
        past[horizon] = list(zip(*(values[part::4] for part in range(4)), strict=True))
    return Digest(RunResult(**result, columns=dict), _curve(known["curve"], take), take(known["scores"]).tolist(), past)


def read_drawn(run: str, content: bytes) -> tuple[Track, list[Windows]]:
    """The raw points and the windows, from the part "drawn"."""
    head, _, numbers = content.partition(b"\n")
    known, take = json.loads(head), _taker(numbers)
    raw = _read_track(known["raw"], take)
    assert raw is not None
    return raw, [Windows(run, target, *map(take, places)) for target, *places in known["windows"]]


def whole_chart(curve: Curve, windows: Sequence[Windows]) -> bytes:
    """The part "chart" of a coloured run, which is not thinned."""
    return chart_data(curve, windows, WHOLE).encode("ascii")


def _trimmed(run: RunResult) -> dict[str, Any]:
    """What tables, fits over runs and the page's tables need of the artifacts."""
    fits = _some(run.fits, ("loss", "observed", "warnings"))
    fit = run.fits.get("fit") or {}
    fits["fit"] = {key: fit[key] for key in ("irreducible_loss", "exponent") if key in fit}
    answers = ("target", "status", "step", "tokens", "interval", "interval_level", "law", "horizon", "crossed_back",
               "reached_by_end", "reason", "warnings")  # fmt: skip
    fits["targets"] = [_some(entry, answers) for entry in run.fits.get("targets") or []]
    conventions = ("flops_per_token", "flops_spent", "formulas", "convention", "not_available", "mfu", "warnings")
    facts = run.conventions.get("facts") or {}
    sizes = {key: _some(facts[key], ("value",)) for key in ("n_params", "n_params_nonembedding") if key in facts}
    to_target = [_some(entry, ("target", "flops")) for entry in run.conventions.get("flops_to_target") or []]
    meta = ("format", "rows", "attempts", "superseded_tokens", "tokens", "batch", "lr", "warnings")
    verdicts = [_some(entry, ("target", "verdict", "reason")) for entry in run.stability.get("verdicts") or []]
    return {
        "id": run.id,
        "name": run.name,
        "axis_meta": _some(run.axis_meta, meta),
        "fits": fits,
        "stability": _some(run.stability, ("warnings",)) | {"verdicts": verdicts},
        "conventions": _some(run.conventions, conventions) | {"facts": sizes, "flops_to_target": to_target},
    }


def _some(whole: dict[str, Any], keys: Sequence[str]) -> dict[str, Any]:
    return {key: whole[key] for key in keys if key in whole}


def _json(data: Any) -> bytes:
    return json.dumps(data, separators=(",", ":")).encode("ascii")  # on one line


class _Arrays:
    """float64 arrays one behind the other, least significant byte first."""

    def __init__(self) -> None:
        self.content, self.count = b"", 0

    def add(self, values: Any) -> list[int]:
        """[first, last + 1] of the array among all numbers."""
        import numpy as np

        array = np.ascontiguousarray(values, dtype="<f8")
        first, self.count = self.count, self.count + len(array)
        self.content += array.tobytes()
        return [first, self.count]


def _taker(content: bytes) -> Callable[[list[int]], Any]:
    import numpy as np

    numbers = np.frombuffer(content, dtype="<f8")
    return lambda place: numbers[place[0] : place[1]]


def _columns(entry: Windows) -> tuple[Any, ...]:
    return entry.window_tokens, entry.predicted, entry.low, entry.high


def _track(track: Track | None, arrays: _Arrays) -> list[Any] | None:
    if track is None:
        return None
    return [arrays.add(values) for values in (track.tokens, track.step, track.value, track.sd) if values is not None]


def _read_track(places: list[Any] | None, take: Callable[[list[int]], Any]) -> Track | None:
    return None if places is None else Track(*map(take, places))


_TRACKS = ("smooth", "lr", "batch", "hours")


def _described(curve: Curve, arrays: _Arrays) -> dict[str, Any]:
    plain = {name: getattr(curve, name) for name in ("run", "loss_name", "attempt_starts", "last", "rows")}
    return plain | {name: _track(getattr(curve, name), arrays) for name in _TRACKS}


def _curve(known: dict[str, Any], take: Callable[[list[int]], Any]) -> Curve:
    tracks = {name: _read_track(known[name], take) for name in _TRACKS}
    plain = known | {"attempt_starts": tuple(known["attempt_starts"])}
    return Curve(**(plain | tracks), raw=None)
