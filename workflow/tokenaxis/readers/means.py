"""Losses that are known to be means over a logging interval by what their log calls its steps."""

from __future__ import annotations

from tokenaxis.readers.base import IntervalMean, RawLog

#: train/global_step is what transformers' WandbCallback writes, current_steps what LLaMA-Factory's LogCallback writes:
#: both hand on the Trainer's log, whose `loss` is the mean over the steps since the record before it
_TRAINER_STEPS = frozenset(("train/global_step", "current_steps"))


def mark_means(log: RawLog) -> RawLog:
    """The log, with the mean of its training loss stated where its names tell of one."""
    if "train_loss" in log.columns and not log.means and log.names.get("step") in _TRAINER_STEPS:
        log.means["train_loss"] = IntervalMean(None, counted_after=True)
    return log
