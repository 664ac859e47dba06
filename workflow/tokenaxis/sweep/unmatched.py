"""Patterns of configs/sweeps/<sweep>.yaml that are for nothing in the sweep directory: most are misspelt."""

from __future__ import annotations

import fnmatch
from collections.abc import Iterable, Sequence

from tokenaxis.errors import Notice
from tokenaxis.sweep.declared import SweepDeclaration


def unmatched(declared: SweepDeclaration, paths: Sequence[str], runs: Sequence[str]) -> list[dict[str, str]]:
    """A notice for each pattern that fits no file, nor, where it may name one, a run.

    Args:
        declared: the sweep's declarations.
        paths: of all files of the sweep directory but those that runs.ignore passes over.
        runs: names of the runs.
    """
    found: list[tuple[str, str, str]] = []
    for pattern, _ in declared.entries[declared.defaults :]:
        if not _fits_one(pattern, paths) and not _fits_one(pattern, runs):
            found.append(("runs", pattern, "no file and no run: what it declares is for nothing"))
    groups = (rule for rule in declared.groups if not any(rule.pattern.fullmatch(path) for path in paths))
    found += [("groups", rule.glob, "no file") for rule in groups]
    for key, patterns in (("separate", declared.separate), ("ignore", declared.ignore)):
        found += [(key, pattern, "no file") for pattern in patterns if not _fits_one(pattern, paths)]
    return [
        Notice("pattern_fits_nothing", f"configs/sweeps: {key}: {pattern!r} fits {what}").as_dict()
        for key, pattern, what in dict.fromkeys(found)
    ]


def _fits_one(pattern: str, names: Iterable[str]) -> bool:
    return any(fnmatch.fnmatchcase(name, pattern) for name in names)
