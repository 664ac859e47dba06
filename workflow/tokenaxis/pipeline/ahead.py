"""Going on: a job does the stages after its own as well, where the engine will ask for all of them anyway.

A process costs as much to start as the fits of twenty runs. Each stage keeps its own rule and its own job, so that
`--until`, the rule graph and a change of one stage's parameters are as ever; but the first job of a shard goes on with
the later stages while it is at it, and their jobs then find their index made from the very files that are there
(`made_of`) and end before they load anything.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

from tokenaxis import store
from tokenaxis.pipeline import made_of
from tokenaxis.pipeline.ledger import is_touched
from tokenaxis.pipeline.spec import PER_RUN, STAGES
from tokenaxis.pipeline.work import ENGINE, index_path


def allow(results: Path, stages: tuple[str, ...]) -> None:
    """Note which stages the engine will ask for: none where it was given targets of its own (`--until fits`)."""
    store.write_text_if_changed(_note(results), " ".join(stages))


def stages_after(stage: str, results: Path, label: str) -> Iterator[tuple[str, str]]:
    """(stage, digest of what it will be made from) of the later stages that may be done now, one by one.

    Each is looked at only when the one before it was done.
    """
    try:
        allowed = _note(results).read_text(encoding="ascii").split()
    except OSError:
        return
    for later in PER_RUN[PER_RUN.index(stage) + 1 :]:
        ready = all(made_of.fits(results, up, label) for up in STAGES[later].upstream)
        inputs = made_of.digest(results, later, label)
        if later in allowed and ready and not is_done(later, results, label, inputs):
            yield later, inputs


def is_done(stage: str, results: Path, label: str, inputs: str) -> bool:
    """Whether a stage is current: its index made from `inputs`, its artifacts as they were left.

    The index then counts as made now.
    """
    index = index_path(results, stage, label)
    if not (index.exists() and made_of.is_noted(results, stage, label, inputs)) or is_touched(index, results / stage):
        return False
    os.utime(index)
    return True


def _note(results: Path) -> Path:
    return results / ENGINE / "ahead.txt"
