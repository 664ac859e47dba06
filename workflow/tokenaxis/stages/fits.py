"""Stage fits: token axis -> crossings, laws and predictions for each target."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tokenaxis import store, targets

if TYPE_CHECKING:
    from tokenaxis.pipeline.runner import Task
    from tokenaxis.pipeline.work import Work
    from tokenaxis.series import LossSeries


def inputs(run: dict[str, Any], work: Work) -> list[Any]:
    """What decides the fits beside parameters, code and token axis: the targets that the sweep declares."""
    return [work.targets if work.params["fits"]["targets"] == "auto" else None]


def compute(task: Task) -> str:
    """Write `<run>.json`. -> "ok" """
    params = fit_params(task.work)
    series, reason = load_series(task, params)
    report = targets.answer(series, params, reason)
    store.write_json(task.path("json"), task.stamp("fits") | report.as_dict())
    return "ok"


def fit_params(work: Work) -> dict[str, Any]:
    """The section `fits`, with the sweep's declared targets in place of `auto`."""
    params = work.params["fits"]
    if params["targets"] == "auto" and work.targets is not None:
        return params | {"targets": work.targets}
    return params


def load_series(task: Task, params: dict[str, Any]) -> tuple[LossSeries, str]:
    """(the loss series of a run that the parameters choose, why this loss)."""
    columns, meta = store.read_parquet(task.path("parquet", "token_axis"))
    loss, reason = targets.choose_loss(columns, params)
    return targets.series_from(columns, meta, task.run["declared"], loss), reason


def warm_up() -> None:
    """Import once what every run needs, before processes are forked."""
    import pyarrow._parquet  # noqa: F401

    from tokenaxis import arrow  # noqa: F401
