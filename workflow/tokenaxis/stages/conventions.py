"""Stage conventions: facts and tokens -> FLOPs under every counting convention."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any

from tokenaxis import conventions, hardware, params, store
from tokenaxis.facts import gather

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
    facts = gather(task.run["declared"], meta["facts"])
    report = conventions.report(facts, meta, fits, task.work.params["conventions"]["convention"], devices())
    store.write_json(task.path("json"), task.stamp("conventions") | report)
    return "ok"


@functools.cache
def devices() -> tuple[hardware.Device, ...]:
    """The accelerators of configs/hardware."""
    files = sorted((params.HOME / "configs" / "hardware").glob("*.yaml"))
    return hardware.catalogue({path.name: params.load_yaml(path) for path in files})


def warm_up() -> None:
    """Import and read once what every run needs, before processes are forked."""
    import pyarrow._parquet  # noqa: F401

    devices()
