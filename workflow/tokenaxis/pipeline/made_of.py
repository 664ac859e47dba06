"""What an index was made from, by content: the proof that a job need not run again.

Snakemake compares mtimes. They fail it where a clock is wrong, where a tool restored them, and where a manifest was
written anew while the job that had read the old one was still running. So a job notes the sha256 of its input files as
it read them, and an index whose note does not fit the present files is dropped when the Snakefile is parsed.
"""

from __future__ import annotations

import hashlib
from pathlib import Path

from tokenaxis import store
from tokenaxis.pipeline.spec import STAGES
from tokenaxis.pipeline.work import ENGINE, code_path, index_path, listing_path, manifest_path, params_path


def digest(results: Path, stage: str, label: str) -> str:
    """sha256 over the input files of a job, as they are now.

    The comparison's inputs are the indexes of all shards, whatever they are called: Snakemake alone looks at those.
    """
    per_run = STAGES[stage].per_run
    files = [manifest_path(results, label) if per_run else listing_path(results)]
    files += [params_path(results, stage), code_path(results, stage)]
    files += [index_path(results, up, label) for up in STAGES[stage].upstream if per_run]
    total = hashlib.sha256()
    for file in files:
        try:
            content = file.read_bytes()
        except OSError:
            content = b""
        total.update(hashlib.sha256(content).digest())
    return total.hexdigest()


def forget(results: Path, stage: str, label: str) -> None:
    """From now on nothing is known of the index: its stage is at work."""
    _note(results, stage, label).unlink(missing_ok=True)


def remember(results: Path, stage: str, label: str, made_of: str) -> None:
    """Note that the index was made from `made_of`."""
    store.write_text(_note(results, stage, label), made_of)


def fits(results: Path, stage: str, label: str) -> bool:
    """Whether the index was made from the files that are there now."""
    return is_noted(results, stage, label, digest(results, stage, label))


def is_noted(results: Path, stage: str, label: str, made_of: str) -> bool:
    """Whether the index was made from `made_of`."""
    try:
        return _note(results, stage, label).read_text(encoding="ascii") == made_of
    except (OSError, ValueError):
        return False


def _note(results: Path, stage: str, label: str) -> Path:
    return results / ENGINE / "made_of" / stage / f"{label}.sha256"
