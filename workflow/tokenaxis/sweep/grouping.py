"""Which files make one run, by their paths, their formats, and the steps that a first look shows.

Two independent runs must never become one: rules that go by names alone also ask whether one file goes on where another
ends. Whatever they decide is said in runs.json (`grouped_because`), and `groups:` and `separate:` of
configs/sweeps/<sweep>.yaml win over all of it.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Sequence
from dataclasses import replace

from tokenaxis.readers.formats.tensorboard_export import run_and_tag
from tokenaxis.sweep import names
from tokenaxis.sweep.chains import ExtentOf, alone, chains, of_part
from tokenaxis.sweep.declared import SweepDeclaration
from tokenaxis.sweep.event_folders import event_folders, event_versions
from tokenaxis.sweep.model import Group, Seen

_CHECKPOINT = re.compile(r"(?:(?<=/)|^)checkpoint-(\d{1,12})/(?=[^/]+$)")
#: formats of which files of one folder may show different values of the same runs
_CHARTS = frozenset(("wandb-export",))
_METRICS = re.compile(r"(?:(?<=/)|^)metrics/.*$")


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
            groups += alone(file, "declared to be separate")
        elif file.format in _BY_FORMAT or file.format == "tensorboard":
            by_format.setdefault(file.format, []).append(file)
        elif file.parts:
            by_format.setdefault("parts", []).append(file)
        else:
            by_format.setdefault("", []).append(file)
    for name, files in by_format.items():
        if name == "":
            groups += _by_attempt(files, extent_of)
        elif name == "tensorboard":
            groups += event_versions(event_folders(files), extent_of)
        else:
            groups += _BY_FORMAT.get(name, _by_part)(files)
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


def _tag_files(files: Sequence[Seen]) -> list[Group]:
    """TensorBoard's downloads: one file a tag, those of one folder with one run in their names are one run."""
    runs: dict[tuple[str, str], list[Seen]] = {}
    for file in files:
        runs.setdefault((os.path.dirname(file.log.path), run_and_tag(file.log.path)[0]), []).append(file)
    groups = []
    for (folder, run), members in runs.items():
        if len(members) == 1:
            groups += alone(members[0])
            continue
        name = os.path.join(folder, run) if run not in ("", ".") else folder or members[0].log.path
        logs = tuple(file.log for file in members)
        because = f"scalars of one run that TensorBoard's page downloaded: {len(logs)} files"
        groups.append(Group(name, name, "tensorboard-export", logs, "columns", because))
    return groups


def _by_part(files: Sequence[Seen]) -> list[Group]:
    """W&B exports: each run of a chart; charts of one folder that show the same run are one run's.

    Databases (trackio, MLflow): each run of one; two of a folder are two projects, whatever their runs are called.
    """
    runs: dict[tuple[str, str], list[Seen]] = {}
    for file in files:
        place = os.path.dirname(file.log.path) if file.format in _CHARTS else file.log.path
        for part in file.parts:
            runs.setdefault((place, part), []).append(file)
    groups = []
    for (_, part), members in runs.items():
        if len(members) > 1:
            groups.append(of_part(members, part, f"the run {part!r} in {len(members)} exports of one folder"))
        elif len(members[0].parts) == 1:
            groups += alone(members[0])
        else:
            number = len(members[0].parts)
            groups.append(of_part(members, part, f"one of {number} runs side by side in one file"))
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
            groups += alone(file)
    for key, members in keys.items():
        if len(members) == 1:
            groups += alone(members[0])
        else:
            groups += chains([(file, extent_of(file.log, file.format)) for file in members], rules[key])
    return groups


_BY_FORMAT: dict[str, Callable[[Sequence[Seen]], list[Group]]] = {
    "hf-trainer-state": _snapshots,
    "mlflow": _metric_folders,
    "tensorboard-export": _tag_files,
}
