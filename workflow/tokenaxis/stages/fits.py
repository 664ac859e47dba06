"""Stage fits: token axis -> crossings, laws and predictions for each target."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tokenaxis import store, targets
from tokenaxis.laws import no_loss

if TYPE_CHECKING:
    import numpy as np

    from tokenaxis.pipeline.runner import Task
    from tokenaxis.pipeline.work import Work
    from tokenaxis.series import LossSeries


def inputs(run: dict[str, Any], work: Work) -> list[Any]:
    """What decides the fits beside parameters, code and token axis: what the sweep declares in place of `auto`."""
    return [_declared(work)]


def compute(task: Task) -> str:
    """Write `<run>.json`. -> "ok" """
    params = fit_params(task.work)
    columns, meta = store.read_parquet(task.path("parquet", "token_axis"))
    report = no_loss.report(columns, meta, params)
    if report is None:
        series, reason = _series(columns, meta, task, params)
        report = targets.answer(series, params, reason)
    store.write_json(task.path("json"), task.stamp("fits") | report.as_dict())
    return "ok"


def fit_params(work: Work) -> dict[str, Any]:
    """The section `fits`, with what the sweep declares (targets, loss) in place of `auto`."""
    return work.params["fits"] | _declared(work)


def _declared(work: Work) -> dict[str, Any]:
    return {key: value for key, value in work.fits.items() if work.params["fits"][key] == "auto"}


def load_series(task: Task, params: dict[str, Any]) -> LossSeries:
    """The loss series of a run that the parameters choose.

    Raises:
        TokenAxisError: there is none.
    """
    return _series(*store.read_parquet(task.path("parquet", "token_axis")), task, params)[0]


def _series(
    columns: dict[str, np.ndarray], meta: dict[str, Any], task: Task, params: dict[str, Any]
) -> tuple[LossSeries, str]:
    """(the loss series of a run that the parameters choose, why this loss)."""
    loss, reason = targets.choose_loss(columns, params)
    return targets.series_from(columns, meta, task.run["declared"], loss), reason


def warm_up() -> None:
    """Import once what every run needs, before processes are forked."""
    import pyarrow._parquet  # noqa: F401

    from tokenaxis import arrow  # noqa: F401
