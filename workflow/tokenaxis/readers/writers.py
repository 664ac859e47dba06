"""Folders of a run's writers: Keras' train/ and validation/, add_scalars' loss_train/ and loss_val/."""

from __future__ import annotations

import re
from dataclasses import replace

from tokenaxis.readers.base import RawLog

_TRAIN = re.compile(r"(?:^|.*[_-])(?:train|training)$", re.IGNORECASE)
_VAL = re.compile(r"(?:^|.*[_-])(?:val|valid|validation|eval|evaluation|test|dev)$", re.IGNORECASE)


def folder_role(folder: str) -> str | None:
    """ "train" or "val" where a folder's name says whose scalars it holds."""
    name = folder.rsplit("/", 1)[-1]
    if _TRAIN.fullmatch(name):
        return "train"
    return "val" if _VAL.fullmatch(name) else None


def as_validation(log: RawLog) -> RawLog:
    """A log of a validation writer: a loss that is called neither is of validation; its training rate is no column."""
    if "train_loss" not in log.columns or "val_loss" in log.columns or "train" in log.names["train_loss"].lower():
        return log
    renamed = {"train_loss": "val_loss"}
    return replace(
        log,
        columns={renamed.get(name, name): values for name, values in log.columns.items() if name != "elapsed_s"},
        names={renamed.get(name, name): own for name, own in log.names.items() if name != "elapsed_s"},
        unusable={(renamed.get(name, name), kind): lines for (name, kind), lines in log.unusable.items()},
    )
