"""Patterns of `groups:` in configs/sweeps/<sweep>.yaml: which files are declared to be one run."""

from __future__ import annotations

import fnmatch
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from tokenaxis.errors import TokenAxisError

_WILDCARD = re.compile(r"\*|\?|\[!?[^\]]+\]")
_PLACE = re.compile(r"\{(\d{1,3})\}")


@dataclass(frozen=True)
class GroupRule:
    """One entry of `groups:`.

    Attributes:
        pattern: of paths; each wildcard of the declared glob is a group.
        run: name of the run, with {1}, {2}, ... for what the wildcards stand for.
        first_step: step at which such a file begins, if it counts from 0 again.
        glob: the pattern as it was declared.
    """

    pattern: re.Pattern[str]
    run: str
    first_step: int | None = None
    glob: str = ""

    @classmethod
    def parsed(cls, entry: Mapping[str, Any], file: str) -> GroupRule:
        """From an entry that fits the schema.

        Raises:
            TokenAxisError: `run` has a number for which `match` has no wildcard.
        """
        glob = entry["match"]
        pieces, end = [], 0
        for match in _WILDCARD.finditer(glob):
            pieces += [re.escape(glob[end : match.start()]), f"({_one(match.group())})"]
            end = match.end()
        pattern = re.compile("".join([*pieces, re.escape(glob[end:])]), re.DOTALL)
        most = max((int(number) for number in _PLACE.findall(entry["run"])), default=0)
        if most > pattern.groups:
            raise TokenAxisError(
                f"groups: {entry['run']!r} names wildcard {{{most}}}, and {glob!r} has {pattern.groups}", file=file
            )
        return cls(pattern, entry["run"], entry.get("first_step"), glob)


@dataclass(frozen=True)
class Place:
    """Where a file belongs: the run's name, the rule's number (files of earlier ones come first), its first step."""

    run: str
    order: int
    first_step: int | None


def place_of(path: str, rules: Iterable[GroupRule]) -> Place | None:
    """The place that the first fitting rule gives a path, or None."""
    for order, rule in enumerate(rules):
        match = rule.pattern.fullmatch(path)
        if match is not None:
            run = _PLACE.sub(lambda place, found=match: found.group(int(place.group(1))), rule.run)  # type: ignore[misc]
            return Place(run, order, rule.first_step)
    return None


def _one(wildcard: str) -> str:
    """A wildcard of fnmatch as a regular expression."""
    translated = fnmatch.translate(wildcard)
    return {"*": ".*", "?": "."}.get(wildcard) or translated[translated.index(":") + 1 : translated.rindex(")")]
