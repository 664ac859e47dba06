"""Which files make one run, by their paths, their formats, and the steps that a first look shows.

Two independent runs must never become one: rules that go by names alone also ask whether one file goes on where another
ends. Whatever they decide is said in runs.json (`grouped_because`), and `groups:` and `separate:` of
configs/sweeps/<sweep>.yaml win over all of it.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace

from tokenaxis.readers.extent import Extent
from tokenaxis.readers.writers import folder_role
from tokenaxis.sweep import names
from tokenaxis.sweep.declared import SweepDeclaration
from tokenaxis.sweep.ids import without_ending
from tokenaxis.sweep.model import Group, LogFile, Seen

_CHECKPOINT = re.compile(r"(?:(?<=/)|^)checkpoint-(\d{1,12})/(?=[^/]+$)")
_METRICS = re.compile(r"(?:(?<=/)|^)metrics/.*$")
#: a later file goes on where an earlier one ends if it begins at most this many logging intervals after it ...
_GAP = 10
#: ... and beyond this share of the earlier one's steps: two runs whose warm-up was cut off begin alike, not equal
_BEYOND_BEGINNING = 0.05

ExtentOf = Callable[[LogFile, str], Extent | None]


def group(seen: Sequence[Seen], declared: SweepDeclaration, extent_of: ExtentOf) -> list[Group]:
    """The runs that these files make, in the order of their names.

    Args:
        seen: files that are logs, in the order of their paths.
        declared: the sweep's declarations.
        extent_of: (file, reader's name) -> the steps that a first look shows.
    """
    groups, rest = _declared(seen, declared)
    by_format: dict[str, list[Seen]] = {}
    for file in rest:
        if declared.is_separate(file.log.path):
            groups += _alone(file, "declared to be separate")
        elif file.format in _BY_FORMAT:
            by_format.setdefault(file.format, []).append(file)
        elif file.parts:
            by_format.setdefault("parts", []).append(file)
        else:
            by_format.setdefault("", []).append(file)
    for name, files in by_format.items():
        groups += _by_attempt(files, extent_of) if name == "" else _BY_FORMAT.get(name, _by_part)(files)
    return _with_own_names(sorted(groups, key=lambda group: (group.key, group.format)))


def _with_own_names(groups: list[Group]) -> list[Group]:
    """Runs of one name (a file and a folder's run that is called like it) told apart by their formats, or by number."""
    taken: set[str] = set()
    for number, one in enumerate(groups):
        if one.key in taken:
            own = f"{one.key}/{one.format}"
            own = own if own not in taken else f"{own}/{number}"
            groups[number] = one = replace(one, key=own, name=f"{one.name} ({one.format})")
        taken.add(one.key)
    return groups


def _alone(file: Seen, because: str | None = None) -> list[Group]:
    """A file as a run, or as several where it holds several."""
    if len(file.parts) < 2:
        return [Group(file.log.path, file.log.path, file.format, (file.log,), None, because)]
    return [_of_part([file], part, because) for part in file.parts]


def _of_part(files: Sequence[Seen], part: str, because: str | None = None) -> Group:
    first = files[0].log.path
    logs = tuple(replace(file.log, part=part) for file in files)
    join = "columns" if len(files) > 1 else None
    name, key = f"{first}:{part}", f"{without_ending(first)}/{part}"
    return Group(name, key, files[0].format, logs, join, because, part)


def _declared(seen: Sequence[Seen], declared: SweepDeclaration) -> tuple[list[Group], list[Seen]]:
    """Runs that `groups:` makes, and the files that it says nothing about."""
    if not declared.groups:
        return [], list(seen)
    found: dict[str, list[tuple[int, Seen, int | None]]] = {}
    rest = []
    for file in seen:
        place = declared.group_of(file.log.path)
        if place is None:
            rest.append(file)
        else:
            found.setdefault(place.run, []).append((place.order, file, place.first_step))
    groups = []
    for run, members in found.items():
        members.sort(key=lambda member: (member[0], names.natural(member[1].log.path)))
        main = members[0][1].format
        logs = tuple(
            replace(file.log, format=None if file.format == main else file.format, first_step=first)
            for _, file, first in members
        )
        because = (
            f"declared to be one run (groups: in configs/sweeps): {len(logs)} {'file' if len(logs) == 1 else 'files'}"
        )
        join = None if len(logs) == 1 else "exports"
        if any(log.first_step is not None for log in logs):
            join = "attempts"
        groups.append(Group(run, run, main, logs, join, because))
    return groups, rest


def _event_folders(files: Sequence[Seen]) -> list[Group]:
    """Event files: those of a folder are one run, and folders of its training and validation writers too."""
    folders: dict[str, list[Seen]] = {}
    for file in files:
        folders.setdefault(os.path.dirname(file.log.path), []).append(file)
    roles: dict[str, set[str]] = {}
    for folder in folders:
        role = folder_role(folder)
        if role is not None and "/" in folder:
            roles.setdefault(os.path.dirname(folder), set()).add(role)
    both = {parent for parent, found in roles.items() if found == {"train", "val"}}
    runs: dict[str, list[Seen]] = {}
    for folder, members in folders.items():
        parent = os.path.dirname(folder)
        home = parent if parent in both and folder_role(folder) is not None else folder
        runs.setdefault(home, []).extend(members)
    groups = []
    for home, members in runs.items():
        members.sort(key=lambda file: names.natural(os.path.basename(file.log.path)))
        logs = tuple(file.log for file in members)
        name = home or "events"
        because = None
        if home in both:
            because = f"event files of the training and validation writers of one folder: {len(logs)} files"
        elif len(logs) > 1:
            because = f"event files of one folder: {len(logs)} files, in the order in which they were begun"
        join = "columns" if home in both else "writers" if len(logs) > 1 else None
        groups.append(Group(name, name, members[0].format, logs, join, because))
    return groups


def _snapshots(files: Sequence[Seen]) -> list[Group]:
    """trainer_state.json of a folder and of its checkpoint-N: the newest holds what the others hold."""
    runs: dict[str, list[tuple[float, Seen]]] = {}
    for file in files:
        match = _CHECKPOINT.search(file.log.path)
        home = _CHECKPOINT.sub("", file.log.path)
        runs.setdefault(home, []).append((float("inf") if match is None else int(match.group(1)), file))
    groups = []
    for home, members in runs.items():
        members.sort(key=lambda member: member[0])
        logs = tuple(file.log for _, file in members)
        several = len(logs) > 1
        because = f"snapshots of one history at {len(logs)} checkpoints: the newest holds all" if several else None
        groups.append(Group(home, home, members[0][1].format, logs, "snapshots" if several else None, because))
    return groups


def _metric_folders(files: Sequence[Seen]) -> list[Group]:
    """MLflow: one file a metric, mlruns/<experiment>/<run>/metrics/<name>."""
    runs: dict[str, list[Seen]] = {}
    for file in files:
        home = _METRICS.sub("", file.log.path).rstrip("/")
        runs.setdefault(home if home != file.log.path else os.path.dirname(file.log.path), []).append(file)
    groups = []
    for home, members in runs.items():
        logs = tuple(file.log for file in members)
        several = len(logs) > 1
        because = f"metrics of one MLflow run: {len(logs)} files" if several else None
        name = home or logs[0].path
        groups.append(Group(name, name, "mlflow", logs, "columns" if several else None, because))
    return groups


def _by_part(files: Sequence[Seen]) -> list[Group]:
    """W&B exports: each run of a chart; charts of one folder that show the same run are one run's."""
    runs: dict[tuple[str, str], list[Seen]] = {}
    for file in files:
        for part in file.parts:
            runs.setdefault((os.path.dirname(file.log.path), part), []).append(file)
    groups = []
    for (_, part), members in runs.items():
        if len(members) > 1:
            groups.append(_of_part(members, part, f"the run {part!r} in {len(members)} exports of one folder"))
        elif len(members[0].parts) == 1:
            groups += _alone(members[0])
        else:
            number = len(members[0].parts)
            groups.append(_of_part(members, part, f"one of {number} runs side by side in one file"))
    return groups


def _by_attempt(files: Sequence[Seen], extent_of: ExtentOf) -> list[Group]:
    """Files that are named as stretches of a run and go on where one another ends."""
    keys: dict[tuple[str, str], list[Seen]] = {}
    rules: dict[tuple[str, str], str] = {}
    plain: list[Seen] = []
    for file in files:
        attempt = names.attempt_in(file.log.path)
        if attempt is None:
            plain.append(file)
        else:
            keys.setdefault((attempt.key, file.format), []).append(file)
            rules.setdefault((attempt.key, file.format), attempt.rule)
    groups = []
    for file in plain:
        key = (file.log.path, file.format)
        if key in keys:
            keys[key].append(file)
        else:
            groups += _alone(file)
    for key, members in keys.items():
        groups += _alone(members[0]) if len(members) == 1 else _chains(members, rules[key], extent_of)
    return groups


def _chains(files: Sequence[Seen], rule: str, extent_of: ExtentOf) -> Iterable[Group]:
    """Runs among files that may be attempts of one: a file joins the one run that it goes on from."""
    shown = [(file, extent_of(file.log, file.format)) for file in files]
    unknown = [file for file, steps in shown if steps is None]
    known = [(file, steps) for file, steps in shown if steps is not None]
    known.sort(key=lambda member: _in_order(member[0].log.path, member[1], rule))
    chains: list[list[tuple[Seen, Extent]]] = []
    doubtful: list[Seen] = []
    for file, steps in known:
        before = [chain for chain in chains if _goes_on([found for _, found in chain], steps)]
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
            yield from _alone(chain[0][0], because)
            continue
        ranges = ", ".join(f"{steps.first}-{steps.last}" for _, steps in chain)
        path = logs[0].path
        join = "attempts" if rule in names.ATTEMPTS else "exports"
        yield Group(path, path, chain[0][0].format, logs, join, f"{rule}, and their steps go on: {ranges}")
    for file in doubtful:
        yield from _alone(file, f"{rule}, but it goes on from more than one of them: a run of its own unless declared")
    for file in unknown:
        yield from _alone(file, f"{rule}, but its first look shows no steps: a run of its own unless declared")


def _in_order(path: str, steps: Extent, rule: str) -> tuple[object, ...]:
    """A key that sorts stretches of a run by age: names that count them do, other names leave it to the steps."""
    counted = rule in names.CHRONOLOGICAL
    attempt = names.attempt_in(path)
    by_name = (attempt is not None, attempt.number if attempt is not None else 0, names.natural(path))
    return (*by_name, steps.first) if counted else (steps.first, steps.last, *by_name)


def _goes_on(chain: Sequence[Extent], steps: Extent) -> bool:
    """Whether a log begins inside the steps of a run so far, or right after them, and not where that began.

    It may end before the run did: the later attempt counts also where it is shorter.
    """
    first, last = chain[0].first, max(before.last for before in chain)
    interval = max(steps.interval, *(before.interval for before in chain))
    beginning = first + max(interval, _BEYOND_BEGINNING * (last - first))
    return beginning <= steps.first <= last + _GAP * interval


_BY_FORMAT: dict[str, Callable[[Sequence[Seen]], list[Group]]] = {
    "tensorboard": _event_folders,
    "hf-trainer-state": _snapshots,
    "mlflow": _metric_folders,
}
