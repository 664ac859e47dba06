"""Stage stability: the prediction on growing windows of the run, and whether it has settled."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tokenaxis import stability, store
from tokenaxis.stages.fits import fit_params, load_series, warm_up

if TYPE_CHECKING:
    from tokenaxis.pipeline.runner import Task
    from tokenaxis.pipeline.work import Work

__all__ = ["compute", "inputs", "warm_up"]


def inputs(run: dict[str, Any], work: Work) -> list[Any]:
    """Nothing beside parameters, code, token axis and fits."""
    return []


def compute(task: Task) -> str:
    """Write `<run>.parquet` and `<run>.json`. -> "ok" """
    params = fit_params(task.work)
    fits = store.read_json(task.path("json", "fits"))
    if fits["rows"]:
        series = load_series(task, params)
        report = stability.sweep(series, task.work.params["stability"], params, fits)
    else:
        report = stability.without_rows(fits)
    meta = {"schema": "tokenaxis/stability/1", "run": task.run["id"]}
    store.write_parquet(task.path("parquet"), report.table, meta, task.fingerprint)
    store.write_json(task.path("json"), task.stamp("stability") | report.as_dict())
    return "ok"
