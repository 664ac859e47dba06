"""What a killed Snakemake or script leaves behind, so that the same command again is all that a user has to do.

Without this the next start ends with "Directory cannot be locked", and after --unlock with "Incomplete files".
"""

from __future__ import annotations

import base64
import binascii
import contextlib
import time
from pathlib import Path

from tokenaxis import store
from tokenaxis.pipeline.runner import LONGEST_WRITE_S
from tokenaxis.pipeline.work import ENGINE

STATE = Path(".snakemake")


def drop(results: Path) -> None:
    """Remove locks on, and marks of incomplete, files of this sweep.

    The caller holds `locks.engine`, so whoever took the lock is dead. The marks are about files that are complete
    whenever they are there: scripts put them in place in one step, and `made_of` says whether they are current.
    """
    ours = f"{results}/"
    for lock in (STATE / "locks").glob("*.lock"):
        with contextlib.suppress(OSError):
            if any(line.startswith(ours) for line in lock.read_text(encoding="utf-8").splitlines()):
                lock.unlink()
    marks = STATE / "incomplete"
    for mark in [path for path in marks.rglob("*") if path.is_file()]:
        with contextlib.suppress(OSError):
            if _marked(mark.relative_to(marks)).startswith(ours):
                mark.unlink()
    _drop_temporaries(results)


def _drop_temporaries(results: Path) -> None:
    """Remove half-written files outside the folders of per-run stages, which tidy up after themselves."""
    found = list(results.glob(f"*{store.TEMPORARY}*"))
    for folder in (results / ENGINE, results / "comparison"):
        found += folder.rglob(f"*{store.TEMPORARY}*")
    for temporary in found:
        with contextlib.suppress(OSError):
            if abs(time.time() - temporary.stat().st_mtime) > LONGEST_WRITE_S:
                temporary.unlink()


def _marked(name: Path) -> str:
    """The file that a mark is about: Snakemake names it by base64, long ones in parts that start with @."""
    try:
        return base64.urlsafe_b64decode("".join(part.lstrip("@") for part in name.parts)).decode("utf-8")
    except (binascii.Error, ValueError):
        return ""
