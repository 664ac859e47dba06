"""Stage conventions: facts and tokens -> FLOPs under every counting convention."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tokenaxis import conventions, store

if TYPE_CHECKING:
    from tokenaxis.pipeline.runner import Task
    from tokenaxis.pipeline.work import Work


def inputs(run: dict[str, Any], work: Work) -> list[Any]:
    """Nothing beside parameters, code, hardware data, token axis and fits."""
    return []


def compute(task: Task) -> str:
    """Write `<run>.json`. -> "ok" """
    meta = store.read_parquet_meta(task.path("parquet", "token_axis"))
    fits = store.read_json(task.path("json", "fits"))
    report = conventions.report(task.run, meta, fits, task.work.params["conventions"])
    store.write_json(task.path("json"), task.stamp("conventions") | report)
    return "ok"


def warm_up() -> None:
    """Import once what every run needs, before processes are forked."""
    import pyarrow._parquet  # noqa: F401
