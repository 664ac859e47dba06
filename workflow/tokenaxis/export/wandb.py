"""A run for Weights & Biases, in its own file format: offline unless asked otherwise.

The loop's own series keep their keys, derived ones go below `tokenaxis/`; charts are drawn over tokens. The passport is
the run's config (what it was), its summary (what came out), and two files. No price, no host, no user, no program.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tokenaxis.errors import TokenAxisError
from tokenaxis.export.run import PREFIX, ExportedRun, flat, library

CONFIG = ("run", "model", "hardware", "topology", "versions", "plan")
SUMMARY = ("training", "results", "fit", "targets", "flops", "efficiency", "time")
#: what a summary leaves to the passport's files: tables with a row a stage, attempt or log line
_TABLES = ("training.batch_schedule", "training.attempts", "training.unusable", "time.parts")


def export(
    run: ExportedRun, project: str, *, entity: str | None, name: str | None, folder: Path, online: bool, to_json: Any
) -> str:
    """Create one W&B run. -> where it is: a folder, or the address that W&B gave.

    Args:
        run: what to export.
        project, entity, name: as W&B knows them; `name` defaults to the run's id.
        folder: where W&B keeps its files; made if it is missing.
        online: send it to W&B's servers; otherwise it stays in `folder`, for `wandb sync`.
        to_json: writes the passport's JSON.

    Raises:
        TokenAxisError: wandb is not installed, or refuses.
    """
    wandb = library("wandb", "wandb")
    folder.mkdir(parents=True, exist_ok=True)
    target = None
    try:
        target = wandb.init(
            project=project,
            entity=entity,
            name=name or run.id,
            dir=str(folder),
            mode="online" if online else "offline",
            config=config(run.passport),
            job_type="import",
            tags=["tokenaxis"],
            reinit="create_new",
            settings=_settings(wandb),
        )
        target.define_metric("*", step_metric=f"{PREFIX}tokens")
        for step, cells in run.rows():
            target.log(cells, step=step)
        target.summary.update(summary(run.passport))
        for file, content in (("passport.json", to_json(run.passport)), ("passport.md", run.markdown)):
            path = Path(target.dir) / file
            path.write_text(content, encoding="utf-8")
            target.save(str(path), base_path=target.dir, policy="now")
        where = str(target.url) if online else str(Path(target.dir).parent)
        target.finish()
        target = None
    except wandb.Error as error:
        raise TokenAxisError(f"wandb refuses: {str(error).splitlines()[0]}") from error
    finally:
        if target is not None:  # something failed: the run must not look complete
            target.finish(exit_code=1)
    return where


def config(passport: Mapping[str, Any]) -> dict[str, Any]:
    """What the run was: dotted keys of the passport's sections."""
    return dict(flat({section: passport[section] for section in CONFIG}))


def summary(passport: Mapping[str, Any]) -> dict[str, Any]:
    """What came out: dotted keys below `tokenaxis/`, so that none hides the last value of a series."""
    found = flat({section: passport[section] for section in SUMMARY})
    return {f"{PREFIX}{key}": value for key, value in found if not key.startswith(_TABLES)}


def _settings(wandb: Any) -> Any:
    """Nothing about this machine: no host, user, program, git state, console output, package list or counters."""
    return wandb.Settings(
        host="",
        username="",
        email="",
        program="",
        program_relpath="",
        save_code=False,
        disable_code=True,
        disable_git=True,
        console="off",
        silent=True,
        x_disable_meta=True,
        x_disable_stats=True,
        x_disable_machine_info=True,
        x_save_requirements=False,
    )
