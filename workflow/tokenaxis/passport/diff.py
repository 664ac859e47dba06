"""What differs between two passports, number by number."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from tokenaxis.facts import same

#: sections that only repeat or sign what stands elsewhere
REPEATED = ("explain", "fingerprint", "lineage", "schema", "generated_by")
#: keys that name the entries of a list, in the order in which they are tried
_NAMES = ("target", "path", "name", "key", "code", "first_step")
ABSENT = "absent"
#: characters of a value that the table shows
WIDEST = 40


@dataclass(frozen=True)
class Difference:
    """One place where two passports differ.

    Attributes:
        place: dotted path, e.g. targets[3.5].tokens.
        one, other: the two values; ABSENT where a passport has none.
        ratio: other over one, where both are numbers and one is not 0.
    """

    place: str
    one: Any
    other: Any
    ratio: float | None = None


def diff(one: Mapping[str, Any], other: Mapping[str, Any], skip: Collection[str] = REPEATED) -> list[Difference]:
    """The places where two passports differ, in the order of the first; numbers within float noise are the same.

    Args:
        one, other: passports.
        skip: sections that are not compared.
    """
    left, right = (dict(_flat("", {k: v for k, v in passport.items() if k not in skip})) for passport in (one, other))
    places = [*left, *(place for place in right if place not in left)]
    return [
        Difference(place, left.get(place, ABSENT), right.get(place, ABSENT), _ratio(left.get(place), right.get(place)))
        for place in places
        if place not in left or place not in right or not same(left[place], right[place])
    ]


def as_text(differences: Sequence[Difference], names: tuple[str, str] = ("first", "second")) -> str:
    """A table for the terminal: place, both values, their ratio. Names and values of logs are escaped."""
    from tokenaxis.errors import printable

    if not differences:
        return "no difference\n"
    rows = [("", *names, "ratio")]
    rows += [
        (d.place, _shown(d.one), _shown(d.other), "" if d.ratio is None else f"{d.ratio:.4g}") for d in differences
    ]
    shown = [[printable(cell) for cell in row] for row in rows]
    widths = [max(len(row[column]) for row in shown) for column in range(4)]
    lines = ("  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in shown)
    return "\n".join(lines) + "\n"


def as_json(differences: Sequence[Difference], names: tuple[str, str]) -> dict[str, Any]:
    """JSON-ready: {first, second, differences: [{place, first, second[, ratio][, only: first | second]}]}."""
    return {"first": names[0], "second": names[1], "differences": [_entry(difference) for difference in differences]}


def _entry(difference: Difference) -> dict[str, Any]:
    entry = {"place": difference.place, "first": difference.one, "second": difference.other}
    for side, other in (("first", "second"), ("second", "first")):
        if entry[side] is ABSENT:
            entry |= {side: None, "only": other}
    return entry if difference.ratio is None else entry | {"ratio": difference.ratio}


def _flat(place: str, value: Any) -> Iterator[tuple[str, Any]]:
    """(dotted path, leaf) of everything below `value`."""
    if isinstance(value, Mapping) and value:
        for key, child in value.items():
            yield from _flat(f"{place}.{key}" if place else str(key), child)
    elif isinstance(value, list) and any(isinstance(item, Mapping | list) for item in value):
        for number, item in enumerate(value):
            yield from _flat(f"{place}[{_name(item, number)}]", item)
    elif value not in ({}, []):
        yield place, value


def _name(item: Any, number: int) -> Any:
    """What an entry of a list is called: by its own key, else by its number."""
    if isinstance(item, Mapping):
        return next((item[key] for key in _NAMES if isinstance(item.get(key), str | int | float)), number)
    return number


def _ratio(one: Any, other: Any) -> float | None:
    numbers = all(isinstance(value, int | float) and not isinstance(value, bool) for value in (one, other))
    return other / one if numbers and one != 0 else None


def _shown(value: Any) -> str:
    if isinstance(value, float) and not value.is_integer():
        return f"{value:.6g}"
    if isinstance(value, int | float) and not isinstance(value, bool):
        return f"{value:,.0f}"
    shown = str(value)
    return shown if len(shown) <= WIDEST else f"{shown[: WIDEST - 3]}..."
