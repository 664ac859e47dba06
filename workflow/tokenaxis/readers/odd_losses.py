"""Losses that are numbers and say that something is wrong: 0 instead of nan, 0 or -1 for none, exactly 0, below 0."""

from __future__ import annotations

from tokenaxis.columns import LOSSES
from tokenaxis.errors import Notice
from tokenaxis.readers.base import RawLog

_SHOWN = 5
#: what loops write where they computed no loss
_PLACEHOLDERS = (0.0, -1.0)
#: losses below which 0 is a loss like others
_NEAR_ZERO = 0.01


def flag_filtered(log: RawLog) -> RawLog:
    """The log of a Hugging Face Trainer in which a loss of 0 beside a gradient norm of nan is nan.

    With logging_nan_inf_filter, the default, the Trainer adds nothing for a step whose loss is nan, so that an interval
    of such steps has a mean of 0 (transformers/trainer.py, _inner_training_loop). The norm is not filtered.
    """
    import numpy as np

    mean, loss = log.means.get("train_loss"), log.columns.get("train_loss")
    norms = log.unusable.get(("grad_norm", "nan"))
    if mean is None or not mean.counted_after or loss is None or norms is None:
        return log
    filtered = (loss == 0) & np.isin(log.lines, norms)
    if filtered.any():
        lines = log.lines[filtered]
        log.columns["train_loss"] = np.where(filtered, np.nan, loss)
        before = log.unusable.get(("train_loss", "nan"), np.empty(0, np.int64))
        log.unusable["train_loss", "nan"] = np.sort(np.concatenate([before, lines]))
        message = (
            f"a training loss of 0 stands beside a gradient norm of nan in {len(lines):,} rows ({_lines(lines)}): the "
            "Trainer writes 0 where every loss was nan (logging_nan_inf_filter); taken as nan"
        )
        log.warnings.append(Notice("nan_logged_as_zero", message))
    return log


def blank_placeholders(log: RawLog) -> RawLog:
    """The log without the 0 or -1 that loops write into the cell of a loss that they did not compute in a step.

    They are told by standing between other values: no loss falls to exactly 0 and comes back.
    """
    import numpy as np

    for name in LOSSES:
        values = log.columns.get(name)
        if values is None:
            continue
        for placeholder in _PLACEHOLDERS:
            known = np.isfinite(values)
            stands = known & (values == placeholder)
            if not stands.any():
                continue
            positive = known & (values > 0)
            first, end = int(positive.argmax()), len(positive) - int(positive[::-1].argmax())
            if positive.sum() < 2 or not stands[first:end].any():
                continue
            if placeholder == 0 and (values[positive].min() < _NEAR_ZERO or (values[known] < 0).any()):
                continue  # a loss that comes near 0 may be 0
            lines = log.lines[stands]
            values = log.columns[name] = np.where(stands, np.nan, values)
            what = "between other values, so it stands for none; left out"
            log.warnings.append(Notice(f"{name}_placeholder", _said(name, f"exactly {placeholder:g}", lines, what)))
    return log


def note_odd(log: RawLog) -> RawLog:
    """The log, with a notice for each loss that is below 0 or exactly 0 in some rows: cross-entropies are not."""
    import numpy as np

    for name in LOSSES:
        values = log.columns.get(name)
        if values is None:
            continue
        with np.errstate(invalid="ignore"):
            below, zero = values < 0, values == 0
        if below.any():
            what = "no cross-entropy is (a loss of reinforcement learning, or a sum with other terms?)"
            log.warnings.append(Notice(f"{name}_below_zero", _said(name, "below 0", log.lines[below], what)))
        if zero.any():
            what = "what some trainers write where there is none, or where it was nan"
            log.warnings.append(Notice(f"{name}_is_zero", _said(name, "exactly 0", log.lines[zero], what)))
    return log


def _said(name: str, how: str, lines: object, what: str) -> str:
    count = len(lines)  # type: ignore[arg-type]
    return f"{name} is {how} in {count:,} {'row' if count == 1 else 'rows'} ({_lines(lines)}): {what}"


def _lines(lines: object) -> str:
    shown = [int(line) for line in lines[:_SHOWN]]  # type: ignore[index]
    more = ", ..." if len(lines) > _SHOWN else ""  # type: ignore[arg-type]
    return f"line{'' if len(shown) == 1 else 's'} {', '.join(map(str, shown))}{more}"
