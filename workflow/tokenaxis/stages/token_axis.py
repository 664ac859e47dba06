"""Stage token_axis: raw files of a run -> one row a step on a token axis."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tokenaxis import readers, store
from tokenaxis.axis import build_axis, losses, pace
from tokenaxis.declarations import Declaration
from tokenaxis.errors import TokenAxisError, printable

if TYPE_CHECKING:
    from tokenaxis.pipeline.runner import Task
    from tokenaxis.pipeline.work import Work


def inputs(run: dict[str, Any], work: Work) -> list[Any]:
    """What decides the table beside parameters and code: the logs' bytes, their names, and what is declared."""
    hashes = []
    for file in run["files"]:
        try:
            hashes.append([printable(file["path"]), work.hashes.sha256(work.root / file["path"])])
        except TokenAxisError as error:  # gone or unreadable since it was found: `compute` will refuse it by name
            hashes.append([printable(file["path"]), error.reason])
    return [hashes, run["format"], run["declared"]]


def compute(task: Task) -> str:
    """Write `<run>.parquet`. -> "ok"

    Raises:
        TokenAxisError: the log cannot be used; the reason and the remedy.
    """
    run, declaration = task.run, Declaration.from_dict(task.run["declared"])
    raw = readers.read(str(task.work.root / run["files"][0]["path"]), declaration, readers.by_name(run["format"]))
    axis = build_axis(raw, declaration, run["name"], task.work.params["token_axis"]["tokens_convention"])
    meta = axis.meta | {
        "schema": "tokenaxis/token_axis/1",
        "run": run["id"],
        "losses": losses.summarise(axis.columns),
        "facts": axis.meta["facts"] + pace.facts(axis.columns),
    }
    store.write_parquet(task.path("parquet"), axis.columns, meta, task.fingerprint)
    return "ok"


def warm_up() -> None:
    """Import once what every run needs, before processes are forked."""
    import pyarrow._parquet
    import pyarrow.csv  # noqa: F401

    from tokenaxis import arrow  # noqa: F401
