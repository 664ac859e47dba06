"""Which files of the same bytes are copies of one log, and which are runs of their own that happen to be equal.

The bytes are not all that a log means: its name may state the batch size, and declarations go by paths. So files are
one run only if all of that is equal too and their names do not call them different runs.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from tokenaxis.errors import TokenAxisError, printable
from tokenaxis.readers import sqlite
from tokenaxis.readers.batch_name import batch_in_name
from tokenaxis.sweep.declared import SweepDeclaration
from tokenaxis.sweep.ids import without_ending
from tokenaxis.sweep.known import Known
from tokenaxis.sweep.model import Discovery, Seen
from tokenaxis.sweep.names import attempt_in

#: words by which a file or folder calls itself a copy: "copy of a.csv", "a copy 2.csv", "a.csv.bak", "backup/a.csv"
_COPY = re.compile(r"(?:^|(?<=[/ ._(-]))(?:copy|copies|kopie|backups?|bak|old)(?=\d{0,4}(?:$|[/ ._)-]))", re.I)
#: "a (1).csv", as browsers name a second download
_NUMBERED = re.compile(r" ?\(\d{1,3}\)$")
#: folders of the Hugging Face Trainer, whose states are snapshots of one run
_CHECKPOINT = re.compile(r"(?:(?<=/)|^)checkpoint-\d{1,12}/(?=[^/]+$)")
#: formats of which all files of a folder are one run, or show the same runs
_ONE_RUN_A_FOLDER = frozenset(("tensorboard", "wandb-export"))


def without_copies(
    logs: Sequence[Seen], declared: SweepDeclaration, known: Known, found: Discovery
) -> tuple[list[Seen], dict[str, str]]:
    """Logs without copies of others; what was left out goes to `found.passed_over`.

    Only files of one size that are alike at both ends are hashed.

    Returns:
        the logs that are left, and path -> path of the first log with the same bytes, of those that are runs all the
        same.
    """
    alike: dict[tuple[int, int], list[Seen]] = {}
    for seen in logs:
        whole = not any(ending in seen.log.stamp for ending in sqlite.BESIDE)  # a database whose bytes are all it is
        if whole and not declared.is_separate(seen.log.path):
            alike.setdefault((seen.log.bytes, known.checksum(seen.log)), []).append(seen)
    copies: dict[str, str] = {}
    equal: dict[str, str] = {}
    for members in alike.values():
        if len(members) > 1:
            for same in _by_digest(members, known):
                _tell_apart(same, declared, copies, equal)
    trees = _copied_folders(logs, equal, declared)
    for path, folder in trees.items():
        copies[path] = equal.pop(path)
        reason = f"same bytes as {printable(copies[path])}; the folder {printable(folder)} is a copy"
        found.passed_over.append({"name": printable(path), "reason": reason})
    for path, original in copies.items():
        if path not in trees:
            found.passed_over.append({"name": printable(path), "reason": f"same bytes as {printable(original)}"})
    return [seen for seen in logs if seen.log.path not in copies], equal


def _by_digest(members: Sequence[Seen], known: Known) -> Iterator[list[Seen]]:
    """Files of the same bytes, those first that are no copies by their names."""
    digests: dict[str, list[Seen]] = {}
    for seen in members:
        digest = known.sha256(seen.log)
        if digest is not None:
            digests.setdefault(digest, []).append(seen)
    yield from (sorted(same, key=_originality) for same in digests.values() if len(same) > 1)


def _originality(seen: Seen) -> tuple[object, ...]:
    """A key that sorts copies last, and first what belongs to attempts, from which a copy must not take a file away."""
    path = seen.log.path
    stem = without_ending(path)
    marked = _COPY.search(stem) is not None or _NUMBERED.search(stem) is not None
    return marked, attempt_in(path) is None, path.count("/"), path


@dataclass
class _Originals:
    """Logs of the same bytes and meaning so far, by what a copy of them is told by."""

    first: str
    places: dict[tuple[str, str], str] = field(default_factory=dict)


def _tell_apart(
    same: Sequence[Seen], declared: SweepDeclaration, copies: dict[str, str], equal: dict[str, str]
) -> None:
    """Put each file of the same bytes but the first to `copies` or to `equal`."""
    meanings: dict[tuple[object, ...], _Originals] = {}
    for seen in same:
        path = seen.log.path
        originals = meanings.setdefault(_meaning(seen, declared), _Originals(path))
        if originals.first != path and (original := _original_of(seen, originals)) is not None:
            copies[path] = original
            continue
        for place in _places(seen):
            originals.places.setdefault(place, path)
        if path != same[0].log.path:
            equal[path] = same[0].log.path


def _meaning(seen: Seen, declared: SweepDeclaration) -> tuple[object, ...]:
    """What decides a log's meaning beside its bytes: its reader, what is declared for it, the batch in its name."""
    path = seen.log.path
    try:
        named = batch_in_name(os.path.basename(path))
        batch: object = None if named is None else named.tokens_per_step
    except TokenAxisError as error:
        batch = error.reason
    entries = [declared.entries[number][1] for number in declared.fitting(path)]
    place = declared.group_of(path)
    return seen.format, repr(entries), batch, None if place is None else (place.run, place.first_step)


def _original_of(seen: Seen, originals: _Originals) -> str | None:
    """The log that a file is a copy of, by its name; None where its name makes it a run of its own."""
    stem = without_ending(seen.log.path)
    if _COPY.search(stem) is not None:
        return originals.first
    return next((originals.places[place] for place in _places(seen) if place in originals.places), None)


def _places(seen: Seen) -> Iterator[tuple[str, str]]:
    """By what a copy beside a log is told: the same path but for its ending, a (1), or the checkpoint it was saved at;
    or the same folder, where all files of one are one run anyway."""
    stem = without_ending(_CHECKPOINT.sub("", seen.log.path))
    yield "stem", _NUMBERED.sub("", stem)
    if seen.format in _ONE_RUN_A_FOLDER:
        yield "folder", os.path.dirname(seen.log.path)


def _copied_folders(logs: Sequence[Seen], equal: Mapping[str, str], declared: SweepDeclaration) -> dict[str, str]:
    """Path -> folder, of logs in a folder all of whose logs, two or more, stand in another under the same names.

    One log of a name that others bear too (run.csv in each run's folder) is no sign of a copied folder.
    """
    if not equal:
        return {}
    asked = {*equal, *equal.values()}
    meanings = {seen.log.path: _meaning(seen, declared) for seen in logs if seen.log.path in asked}
    pairs: dict[tuple[str, str], list[str]] = {}
    for path, original in equal.items():
        if meanings[path] == meanings[original] and (tops := _tops(path, original)) is not None:
            pairs.setdefault(tops, []).append(path)
    found = {}
    for (folder, _), members in pairs.items():
        if len(members) > 1 and len(members) == sum(seen.log.path.startswith(f"{folder}/") for seen in logs):
            found.update(dict.fromkeys(members, folder))
    return found


def _tops(path: str, original: str) -> tuple[str, str] | None:
    """The folders below which two paths are the same; None where there are none."""
    parts, others = path.split("/"), original.split("/")
    if parts[-1] != others[-1]:
        return None
    while parts and others and parts[-1] == others[-1]:
        parts.pop()
        others.pop()
    return ("/".join(parts), "/".join(others)) if parts else None
