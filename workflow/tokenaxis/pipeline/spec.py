"""The stages of the pipeline: what each reads and writes, which parameters and which code decide its numbers."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Stage:
    """One stage = one script = one rule = one DVC stage = one section of params.yaml = one folder of results.

    Attributes:
        name: its one name.
        upstream: stages whose artifacts of the same run it reads.
        sections: sections of params.yaml that it uses.
        suffixes: endings of a run's artifacts; the last one is written last and carries the fingerprint.
        code: modules and packages below tokenaxis that decide its numbers (a test compares them with the imports).
        data: files of the checkout that decide its numbers.
        per_run: False for stages that look at the whole sweep.
    """

    name: str
    upstream: tuple[str, ...] = ()
    sections: tuple[str, ...] = ()
    suffixes: tuple[str, ...] = ()
    code: tuple[str, ...] = ()
    data: tuple[str, ...] = ()
    per_run: bool = True


_STORE = ("arrow.py", "store.py", "memory.py")
_BASE = ("errors.py", "columns.py", "declarations.py", "units.py")
_LAWS = (*_BASE, "series.py", "targets.py", "smoothing.py", "crossing.py", "laws", "windows.py")
_FACTS = (*_BASE, "facts", "redaction.py", "shapes", "hardware.py", "conventions")

STAGES: dict[str, Stage] = {
    stage.name: stage
    for stage in (
        Stage(
            "runs",
            sections=("runs",),
            per_run=False,
            code=(*_BASE, *_STORE, "readers", "redaction.py", "shapes", "sweep", "stages/runs.py"),
        ),
        Stage(
            "token_axis",
            sections=("token_axis",),
            suffixes=("parquet",),
            code=(*_BASE, "readers", "axis", "facts", "redaction.py", *_STORE, "stages/token_axis.py"),
        ),
        Stage("fits", ("token_axis",), ("fits",), ("json",), code=(*_LAWS, *_STORE, "stages/fits.py")),
        Stage(
            "stability",
            ("token_axis", "fits"),
            ("stability", "fits"),
            ("parquet", "json"),
            code=(*_LAWS, "stability.py", *_STORE, "stages/stability.py"),
        ),
        Stage(
            "conventions",
            ("token_axis", "fits"),
            ("conventions",),
            ("json",),
            code=(*_FACTS, *_STORE, "stages/conventions.py"),
            data=("configs/hardware",),
        ),
        Stage(
            "passports",
            ("token_axis", "fits", "stability", "conventions"),
            ("passports",),
            ("md", "json"),
            code=(*_FACTS, "passport", *_STORE, "stages/passports.py"),
        ),
        Stage(
            "comparison",
            ("token_axis", "fits", "stability", "conventions", "passports"),
            ("token_axis", "fits", "stability", "conventions", "passports", "comparison"),  # the page shows them all
            per_run=False,
            code=(*_BASE, "comparison", *_STORE, "stages/comparison.py"),
        ),
    )
}
PER_RUN: tuple[str, ...] = tuple(stage.name for stage in STAGES.values() if stage.per_run)
