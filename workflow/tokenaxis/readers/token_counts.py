"""Columns that are called like a count of tokens and are none: never counted, or of each step."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from tokenaxis.errors import Notice
from tokenaxis.readers.base import RawLog
from tokenaxis.readers.remedies import FILE, quoted

if TYPE_CHECKING:
    import numpy as np

#: share of the pairs of rows between which a count may fall; attempts fall once each, tokens of a step half of the time
_FALLS = 0.1
#: rows below which a column of few values may be a count
_FEW = 20
#: share of the pairs of rows that must lie one step apart for each step to be logged
_EACH = 0.9


def counts_up(values: np.ndarray) -> bool:
    """Whether finite values grow from row to row, but for some falls where a run resumed."""
    import numpy as np

    known = values[np.isfinite(values)]
    if len(known) < 2:
        return len(known) == 1 and bool(known[0] > 0)
    change = np.diff(known)
    return bool((change > 0).any()) and int((change < 0).sum()) <= max(1, _FALLS * len(change))


def _of_batches(values: np.ndarray, steps: np.ndarray) -> bool:
    """Whether values that grow are sizes of batches: few different ones, far above their growth from step to step."""
    import numpy as np

    if len(values) < _FEW or len(np.unique(values)) > _FALLS * len(values):
        return False
    growth = (values[-1] - values[0]) / max(steps[-1] - steps[0], 1)
    return bool(values[0] > 10 * growth * (steps[0] + 1))


def check_tokens(log: RawLog, declared: Mapping[str, str]) -> RawLog:
    """The log without a tokens column that counts nothing; where each step is logged, one of each step is its batch.

    Trainers that cannot count write 0 (LLaMA-Factory's total_tokens); others call the tokens of one batch num_tokens or
    total_tokens, as others call their sum.

    Args:
        log: as read.
        declared: canonical name -> the log's own; a column that is declared is what it is declared to be.
    """
    import numpy as np

    values = log.columns.get("tokens")
    if values is None or "tokens" in declared:
        return log
    known = np.isfinite(values)
    if known.sum() < 2 or (counts_up(values[known]) and not _of_batches(values[known], log.columns["step"][known])):
        return log
    name, own = log.names["tokens"], quoted(log.names["tokens"])
    if not values[known].any():
        _without_tokens(log, f"{name!r} is 0 in every row: the trainer did not count; left out")
        return log
    steps = log.columns["step"][known]
    apart = np.diff(steps)
    each = len(apart) and float((apart == 1).mean()) >= _EACH
    if each and "tokens_per_step" not in log.columns:
        said = "does not grow with the steps, of which each is logged: it was taken as the tokens of each step"
        log.columns = {
            key: log.columns.get(key, values) for key in (*log.columns, "tokens_per_step") if key != "tokens"
        }
        log.names["tokens_per_step"] = log.names.pop("tokens")
        for key in [key for key in log.unusable if key[0] == "tokens"]:
            log.unusable["tokens_per_step", key[1]] = log.unusable.pop(key)
        sum_of = f"if it is their sum, declare `defaults: {{columns: {{tokens: {own}}}}}` in {FILE}"
        log.warnings.append(Notice("tokens_of_each_step", f"{name!r} {said}; {sum_of}"))
        return log
    batch = f"if it is the batch, declare `defaults: {{columns: {{tokens_per_step: {own}}}}}` in {FILE}"
    _without_tokens(log, f"{name!r} does not grow with the steps, so it is no count of tokens; left out; {batch}")
    return log


def _without_tokens(log: RawLog, message: str) -> None:
    del log.columns["tokens"], log.names["tokens"]
    log.unusable = {key: lines for key, lines in log.unusable.items() if key[0] != "tokens"}
    log.warnings.append(Notice("tokens_not_counted", message))
