"""Records that a Hugging Face Trainer leaves of one training in several formats: one run, not one a format.

trainer_state.json (and its checkpoints), LLaMA-Factory's trainer_log.jsonl beside it and the event files in runs/ below
hold the same losses. Of those that begin with the same losses at the same steps the one that holds all steps is the
run; folders are used again for other trainings, so that a name alone decides nothing.
"""

from __future__ import annotations

import json
import math
import os
import re
from collections.abc import Callable, Iterator, Sequence

from tokenaxis.errors import printable
from tokenaxis.readers import events, naming
from tokenaxis.readers.base import Sample
from tokenaxis.readers.extent import Extent
from tokenaxis.readers.records import flatten
from tokenaxis.sweep.chains import ExtentOf, reach
from tokenaxis.sweep.declared import SweepDeclaration
from tokenaxis.sweep.model import Discovery, Group, LogFile

_CHECKPOINT = re.compile(r"(?:(?<=/)|^)checkpoint-\d{1,12}/(?=[^/]+$)")
_RUNS = re.compile(r"(?:(?<=/)|^)runs/[^/]+/[^/]+$")
_RECORD = re.compile(r"\{[^{}]{1,2000}\}")
#: losses that must be equal at the same steps, and how nearly: trainer_state.json has four decimals
_ENOUGH, _NEAR = 3, 1e-3

SampleOf = Callable[[LogFile, str], Sample | None]


def without_twins(
    groups: Sequence[Group], declared: SweepDeclaration, extent_of: ExtentOf, sample_of: SampleOf, found: Discovery
) -> list[Group]:
    """Runs without those that are another's under a second format; what was left out goes to `found.passed_over`.

    Args:
        groups: the runs.
        declared: the sweep's declarations; what is declared to be a run stays one.
        extent_of: (file, reader's name) -> the steps that a first look shows.
        sample_of: (file, reader's name) -> a first look at it.
        found: gets the names and reasons.
    """
    places: dict[str, list[tuple[int, int]]] = {}
    for number, one in enumerate(groups):
        place = _place(one)
        if place is not None and not any(_is_declared(file.path, declared) for file in one.files):
            folder, rank = place
            places.setdefault(folder, []).append((rank, number))
    dropped: dict[int, int] = {}
    for members in places.values():
        if len({rank for rank, _ in members}) > 1:
            _compare([number for _, number in sorted(members)], groups, extent_of, sample_of, dropped)
    for number, kept in dropped.items():
        while kept in dropped:
            kept = dropped[kept]
        reason = f"of the same training as run {printable(groups[kept].name)}, which holds all its steps"
        found.passed_over += [{"name": printable(file.path), "reason": reason} for file in groups[number].files]
    return [one for number, one in enumerate(groups) if number not in dropped]


def _is_declared(path: str, declared: SweepDeclaration) -> bool:
    return declared.is_separate(path) or declared.group_of(path) is not None


def _place(one: Group) -> tuple[str, int] | None:
    """(the Trainer's output folder, rank: what holds more beside the losses comes first); None for other logs."""
    path = one.files[0].path
    if one.format == "jsonl" and os.path.basename(path) == "trainer_log.jsonl" and len(one.files) == 1:
        return os.path.dirname(path), 0
    if one.format == "hf-trainer-state":
        return os.path.dirname(_CHECKPOINT.sub("", path)), 1
    if one.format == "tensorboard" and _RUNS.search(path) is not None:
        return _RUNS.sub("", path).rstrip("/"), 2
    return None


def _compare(
    numbers: Sequence[int],
    groups: Sequence[Group],
    extent_of: ExtentOf,
    sample_of: SampleOf,
    dropped: dict[int, int],
) -> None:
    """Put those that another of them holds whole to `dropped`: number -> number of the one that holds it."""
    reaches = {number: reach(groups[number], extent_of) for number in numbers}
    for kept in numbers:
        for other in numbers:
            if other == kept or {kept, other} & dropped.keys() or groups[kept].format == groups[other].format:
                continue
            steps, less = reaches[kept], reaches[other]
            if steps is not None and less is not None and _holds(steps, less):
                ours, theirs = (_first_losses(groups[number], sample_of) for number in (kept, other))
                if _agree(ours, theirs):
                    dropped[other] = kept


def _holds(steps: Extent, less: Extent) -> bool:
    """Whether steps reach as far as others, but for one logging interval: a summary at the end has no loss."""
    return steps.first <= less.first + less.interval and steps.last + steps.interval >= less.last


def _first_losses(one: Group, sample_of: SampleOf) -> dict[int, float]:
    """Step -> training loss at the beginning of a run's first file."""
    sample = sample_of(one.files[0], one.format)
    if sample is None:
        return {}
    found: dict[int, float] = {}
    for step, value in _FINDERS[one.format](sample):
        found.setdefault(step, value)
    return found


def _in_records(sample: Sample) -> Iterator[tuple[int, float]]:
    for text in _RECORD.findall(sample.head.decode("utf-8", "replace")):
        try:
            record = dict(flatten(json.loads(text)))
        except (ValueError, RecursionError):
            continue
        step = next((value for key, value in record.items() if naming.role(key, {}) == "step"), None)
        if isinstance(step, int) and isinstance(record.get("loss"), int | float):
            yield step, float(record["loss"])


def _in_events(sample: Sample) -> Iterator[tuple[int, float]]:
    return ((scalar.step, scalar.value) for scalar in events.scalars(sample.head) if scalar.tag == "train/loss")


def _agree(ours: dict[int, float], theirs: dict[int, float]) -> bool:
    common = ours.keys() & theirs.keys()
    few = min(len(ours), len(theirs), _ENOUGH)
    return 0 < few <= len(common) and all(
        math.isclose(ours[step], theirs[step], rel_tol=_NEAR, abs_tol=_NEAR) for step in common
    )


_FINDERS: dict[str, Callable[[Sample], Iterator[tuple[int, float]]]] = {
    "jsonl": _in_records,
    "hf-trainer-state": _in_records,
    "tensorboard": _in_events,
}
