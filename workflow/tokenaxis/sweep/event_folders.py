"""Folders of event files: a folder is a run; versions of one, and the writers of one, are one run."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import replace

from tokenaxis.readers.writers import folder_role
from tokenaxis.sweep import names
from tokenaxis.sweep.chains import ExtentOf, chains, reach
from tokenaxis.sweep.model import Group, Seen


def event_folders(files: Sequence[Seen]) -> list[Group]:
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


def event_versions(folders: Sequence[Group], extent_of: ExtentOf) -> list[Group]:
    """Folders of event files that are named as attempts (Lightning's version_0, version_1) and go on one another."""
    versions: dict[tuple[str, str], dict[str, Group]] = {}
    groups = []
    for folder in folders:
        attempt = names.attempt_in(f"{folder.key}/") if folder.join != "columns" else None
        if attempt is None or attempt.rule not in names.ATTEMPTS:
            groups.append(folder)
        else:
            versions.setdefault((attempt.key, attempt.rule), {})[folder.files[0].path] = folder
    for (_, rule), members in versions.items():
        if len(members) == 1:
            groups += members.values()
            continue
        shown = [(Seen(one.files[0], one.format), reach(one, extent_of)) for one in members.values()]
        for chain in chains(shown, rule):
            joined = [members[log.path] for log in chain.files]
            logs = tuple(log for one in joined for log in one.files)
            join = chain.join if len(logs) == len(joined) else "writers"
            groups.append(replace(joined[0], files=logs, join=join, because=chain.because))
    return groups
