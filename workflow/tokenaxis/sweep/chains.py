"""Runs of one file, of a part of one, or of several that go on from one another."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace

from tokenaxis.readers.extent import Extent, goes_on
from tokenaxis.sweep import names
from tokenaxis.sweep.ids import without_ending
from tokenaxis.sweep.model import Group, LogFile, Seen

ExtentOf = Callable[[LogFile, str], Extent | None]


def alone(file: Seen, because: str | None = None) -> list[Group]:
    """A file as a run, or as several where it holds several."""
    if len(file.parts) < 2:
        return [Group(file.log.path, file.log.path, file.format, (file.log,), None, because)]
    return [of_part([file], part, because) for part in file.parts]


def of_part(files: Sequence[Seen], part: str, because: str | None = None) -> Group:
    first = files[0].log.path
    logs = tuple(replace(file.log, part=part) for file in files)
    join = "columns" if len(files) > 1 else None
    name, key = f"{first}:{part}", f"{without_ending(first)}/{part}"
    return Group(name, key, files[0].format, logs, join, because, part)


def chains(shown: Sequence[tuple[Seen, Extent | None]], rule: str) -> Iterable[Group]:
    """Runs among files that may be attempts of one: a file joins the one run that it goes on from."""
    unknown = [file for file, steps in shown if steps is None]
    known = [(file, steps) for file, steps in shown if steps is not None]
    known.sort(key=lambda member: _in_order(member[0].log.path, member[1], rule))
    chains: list[list[tuple[Seen, Extent]]] = []
    doubtful: list[Seen] = []
    for file, steps in known:
        before = [chain for chain in chains if goes_on([found for _, found in chain], steps)]
        if len(before) > 1:
            doubtful.append(file)
        elif before:
            before[0].append((file, steps))
        else:
            chains.append([(file, steps)])
    for chain in chains:
        logs = tuple(file.log for file, _ in chain)
        if len(logs) == 1:
            because = f"{rule}, but no other goes on from it or leads to it: a run of its own"
            yield from alone(chain[0][0], because)
            continue
        ranges = ", ".join(f"{steps.first}-{steps.last}" for _, steps in chain)
        path = logs[0].path
        join = "attempts" if rule in names.ATTEMPTS else "exports"
        yield Group(path, path, chain[0][0].format, logs, join, f"{rule}, and their steps go on: {ranges}")
    for file in doubtful:
        yield from alone(file, f"{rule}, but it goes on from more than one of them: a run of its own unless declared")
    for file in unknown:
        yield from alone(file, f"{rule}, but its first look shows no steps: a run of its own unless declared")


def _in_order(path: str, steps: Extent, rule: str) -> tuple[object, ...]:
    """A key that sorts stretches of a run by age: names that count them do, other names leave it to the steps."""
    counted = rule in names.CHRONOLOGICAL
    attempt = names.attempt_in(path)
    by_name = (attempt is not None, attempt.number if attempt is not None else 0, names.natural(path))
    return (*by_name, steps.first) if counted else (steps.first, steps.last, *by_name)


def reach(one: Group, extent_of: ExtentOf) -> Extent | None:
    """The steps of all files of a run; None where a first look at one shows none."""
    extents = [extent_of(log, one.format) for log in one.files]
    known = [steps for steps in extents if steps is not None]
    if not known or len(known) < len(extents):
        return None
    first, last = min(steps.first for steps in known), max(steps.last for steps in known)
    return Extent(first, last, max(steps.interval for steps in known))
