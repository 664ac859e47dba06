"""Files beside a run's logs that state its settings: configurations, argument dumps, MLflow's parameters."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence

from tokenaxis.sweep.ids import without_ending
from tokenaxis.sweep.model import Group, LogFile

_SETTINGS = re.compile(
    r"(?:config|configs|hparams|hyper_?parameters|args|arguments|params|parameters|settings|flags|opt|options|"
    r"(?:train|training|model|run|experiment)_?(?:config|args|params)?)\.(?:json|ya?ml)",
    re.IGNORECASE,
)
_ENDING = re.compile(r"(?:[._-](?:config|args|hparams|params))?\.(?:json|ya?ml)$", re.IGNORECASE)
_MLFLOW_PARAMS = re.compile(r"(?:^|/)params/[^/]+$")


def states_settings(path: str) -> bool:
    """Whether a file that is no log may state settings, judged by its name."""
    return _ENDING.search(path) is not None or _MLFLOW_PARAMS.search(path) is not None


def settings_of(groups: Sequence[Group], files: Sequence[LogFile]) -> dict[int, list[LogFile]]:
    """Which files state the settings of which run.

    A file that is named like a log (run.json beside run.csv) is that run's. A file with a common name (config.yaml)
    is a run's if the file's folder, with all below it, holds logs of no other run: beside several it says nothing
    about any one of them.

    Args:
        groups: the runs.
        files: those for which `states_settings`.

    Returns:
        number of a group -> its files, sorted by path.
    """
    if not files:
        return {}
    owner: dict[str, int | None] = {}
    stems: dict[str, int | None] = {}
    for number, group in enumerate(groups):
        for log in group.files:
            stem = without_ending(log.path)
            stems[stem] = number if stems.get(stem, number) == number else None
            folder = os.path.dirname(log.path)
            while owner.get(folder, -1) is not None and owner.get(folder) != number:
                owner[folder] = number if folder not in owner else None
                if not folder:
                    break
                folder = os.path.dirname(folder)
    found: dict[int, list[LogFile]] = {}
    for file in sorted(files, key=lambda file: file.path):
        run = stems.get(_ENDING.sub("", file.path))
        if run is None and (_SETTINGS.fullmatch(os.path.basename(file.path)) or _MLFLOW_PARAMS.search(file.path)):
            run = _owner_of(os.path.dirname(file.path), owner)
        if run is not None:
            found.setdefault(run, []).append(file)
    return found


def _owner_of(folder: str, owner: Mapping[str, int | None]) -> int | None:
    """The run that a folder of settings speaks of; one without logs (params/, files/, configs/) of that above it."""
    return owner[folder] if folder in owner or not folder else owner.get(os.path.dirname(folder))
