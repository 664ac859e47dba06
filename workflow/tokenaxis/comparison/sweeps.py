"""Two comparisons of the same sweep, before and after a change: which answers moved beyond their intervals."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from typing import Any

from tokenaxis.comparison import quantities as q
from tokenaxis.errors import printable

#: kinds of change, the gravest first, and what each means
KINDS = {
    "moved": "the new tokens lie outside the old interval (or differ, where there was none)",
    "lost": "there was an answer, and there is none now",
    "gone": "the run or its target is not there any more",
    "incomparable": "the two refer to different losses",
    "found": "there was no answer, and there is one now",
    "new": "the run or its target was not there before",
    "status": "the reason for having no answer is another one",
    "confirmed": "a prediction has been reached, inside its old interval",
    "shifted": "the tokens changed inside the old interval",
    "same": "nothing changed",
}
#: kinds that make the two comparisons disagree
DISAGREE = ("moved", "lost", "gone", "incomparable")
#: two numbers of tokens nearer than this (relative) are the same: floats that went through other code
SAME = 1e-9
WIDTH = 100


@dataclass(frozen=True)
class Change:
    """One run and target: `kind` of KINDS, the tokens and the interval on either side, and their ratio."""

    run: str
    target: str
    kind: str
    status_before: str | None = None
    status_after: str | None = None
    tokens_before: float | None = None
    low_before: float | None = None
    high_before: float | None = None
    tokens_after: float | None = None
    low_after: float | None = None
    high_after: float | None = None
    ratio: float | None = None


@dataclass(frozen=True)
class Comparison:
    """All changes in the order of runs and targets; `best`: target -> first run (before, after) where that changed.

    Attributes:
        refused: names of files that are refused now and were not; accepted: the other way round.
    """

    changes: tuple[Change, ...]
    best: dict[str, tuple[str | None, str | None]]
    refused: tuple[str, ...]
    accepted: tuple[str, ...]

    @property
    def agree(self) -> bool:
        """Whether nothing moved beyond its interval and no answer, run or file was lost."""
        return not self.refused and all(change.kind not in DISAGREE for change in self.changes)


def compare(before: dict[str, Any], after: dict[str, Any]) -> Comparison:
    """Two contents of summary.json, cell by cell."""
    targets = {name: None for side in (before, after) for name in side["targets"]}
    ordered = sorted(targets, key=float, reverse=True)
    runs = sorted({*before["cells"], *after["cells"]}, key=q.natural)
    changes = [
        _change(run, target, before["cells"].get(run, {}).get(target), after["cells"].get(run, {}).get(target))
        for run in runs
        for target in ordered
        if target in before["cells"].get(run, {}) or target in after["cells"].get(run, {})
    ]
    firsts = {
        name: tuple(side["targets"].get(name, {}).get("best_run") for side in (before, after)) for name in ordered
    }
    names = [{entry["name"] for entry in side["refused"]} for side in (before, after)]
    return Comparison(
        tuple(changes),
        {name: pair for name, pair in firsts.items() if pair[0] != pair[1]},
        tuple(sorted(names[1] - names[0])),
        tuple(sorted(names[0] - names[1])),
    )


def _change(run: str, target: str, before: dict[str, Any] | None, after: dict[str, Any] | None) -> Change:
    if before is None or after is None:
        return Change(run, target, "new" if before is None else "gone", **_sides(before, after))
    answered = before["tokens"] is not None, after["tokens"] is not None
    if before["loss"] != after["loss"]:
        kind = "incomparable"
    elif answered == (True, True):
        kind = _moved(before, after)
    elif answered == (True, False):
        kind = "lost"
    elif answered == (False, True):
        kind = "found"
    else:
        kind = "same" if before["status"] == after["status"] else "status"
    return Change(run, target, kind, **_sides(before, after))


def _moved(before: dict[str, Any], after: dict[str, Any]) -> str:
    old, new = before["tokens"], after["tokens"]
    same = abs(new - old) <= SAME * abs(old)
    if before["low"] is None:
        inside = same
    else:
        inside = before["low"] <= new and (before["high"] is None or new <= before["high"])
    if not (inside or same):
        return "moved"
    if before["status"] == "predicted" and after["status"] == "reached":
        return "confirmed"
    return "same" if same and before["status"] == after["status"] else "shifted"


def _sides(before: dict[str, Any] | None, after: dict[str, Any] | None) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for side, cell in (("before", before), ("after", after)):
        for key in ("status", "tokens", "low", "high"):
            found[f"{key}_{side}"] = None if cell is None else cell[key]
    both = found["tokens_before"] and found["tokens_after"]
    return found | {"ratio": found["tokens_after"] / found["tokens_before"] if both else None}


def as_json(found: Comparison) -> dict[str, Any]:
    """JSON-ready, unchanged cells left out."""
    return {
        "schema": "tokenaxis/comparison-of-sweeps/1",
        "agree": found.agree,
        "counts": dict(Counter(change.kind for change in found.changes)),
        "changes": [asdict(change) for change in found.changes if change.kind != "same"],
        "best_run": {name: {"before": pair[0], "after": pair[1]} for name, pair in found.best.items()},
        "newly_refused": list(found.refused),
        "no_longer_refused": list(found.accepted),
    }


def as_text(found: Comparison, everything: bool = False) -> str:
    """Lines of at most about WIDTH columns, gravest first; `everything`: also what stayed inside its interval."""
    shown = [kind for kind in KINDS if kind != "same" and (everything or kind not in ("shifted", "confirmed"))]
    lines = [line for kind in shown for line in _lines_of(found, kind)]
    lines += [
        f"first at {target}: {_name(pair[0])} before, {_name(pair[1])} after" for target, pair in found.best.items()
    ]
    lines += [f"refused now: {q.elided(printable(name), WIDTH - 14)}" for name in found.refused]
    lines += [f"no longer refused: {q.elided(printable(name), WIDTH - 20)}" for name in found.accepted]
    counts = Counter(change.kind for change in found.changes)
    total = q.plural(len(found.changes), "answer")
    lines.append(f"{total}: " + (", ".join(f"{counts[kind]} {kind}" for kind in KINDS if counts[kind]) or "none"))
    return "\n".join(lines) + "\n"


def _lines_of(found: Comparison, kind: str) -> Iterator[str]:
    changes = [change for change in found.changes if change.kind == kind]
    if changes:
        yield f"{kind}: {KINDS[kind]}"
    for change in changes:
        ratio = f"  {q.times(change.ratio)}" if change.ratio is not None else ""
        yield (
            f"  {q.elided(printable(change.run), 28):28} {change.target:>7}  "
            f"{_side(change, 'before')} -> {_side(change, 'after')}{ratio}"
        )


def _side(change: Change, side: str) -> str:
    status, tokens = getattr(change, f"status_{side}"), getattr(change, f"tokens_{side}")
    if tokens is None:
        return (status or "absent").replace("_", " ")
    interval = q.interval(getattr(change, f"low_{side}"), getattr(change, f"high_{side}"))
    return f"{'~' if status == 'predicted' else ''}{q.short(tokens)} {interval}".rstrip()


def _name(run: str | None) -> str:
    return "none" if run is None else q.elided(printable(run), 32)
