"""Stage passports: everything known about a run, with the source of each number."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import tokenaxis
from tokenaxis import passport, store
from tokenaxis.pipeline.fingerprints import code_digest
from tokenaxis.stages.conventions import warm_up

if TYPE_CHECKING:
    from tokenaxis.pipeline.runner import Task
    from tokenaxis.pipeline.work import Work

__all__ = ["compute", "inputs", "warm_up"]


def inputs(run: dict[str, Any], work: Work) -> list[Any]:
    """The version that signs the passport, beside parameters, code and the other artifacts."""
    return [tokenaxis.__version__]


def compute(task: Task) -> str:
    """Write `<run>.md` and `<run>.json`. -> "ok" """
    meta = store.read_parquet_meta(task.path("parquet", "token_axis"))
    parts = {stage: store.read_json(task.path("json", stage)) for stage in ("fits", "stability", "conventions")}
    run = task.run | {"files": _files(task)}
    built = passport.build(run, meta, parts["fits"], parts["stability"], parts["conventions"], _lineage(task))
    document = built | {"fingerprint": task.fingerprint}
    digits = task.work.params["passports"]["significant_digits"]
    store.write_text(task.path("md"), passport.to_markdown(document, digits))
    store.write_json(task.path("json"), document)
    return "ok"


def _files(task: Task) -> list[dict[str, Any]]:
    """Path, bytes and sha256 of the run's logs; the same whether the record came from a manifest or from runs.json."""
    hashes, root = task.work.hashes, task.work.root
    return [
        {
            "path": file["path"],
            "bytes": hashes.bytes_of(root / file["path"]),
            "sha256": hashes.sha256(root / file["path"]),
        }
        for file in task.run["files"]
    ]


def _lineage(task: Task) -> dict[str, Any]:
    """What the passport was made from."""
    settings = {
        file["path"]: task.work.hashes.sha256(task.work.root / file["path"])
        for file in task.run.get("facts_from") or ()
    }
    return ({"settings": settings} if settings else {}) | {
        "tokenaxis": tokenaxis.__version__,
        "artifacts": task.upstream,
        "code": {stage: code_digest(stage) for stage in (*task.stage.upstream, task.stage.name)},
        "parameters": {name: task.work.params[name] for name in task.stage.sections},
    }
