"""From parsed columns to a RawLog: canonical columns are chosen, duplicates compared, rows without a step dropped."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tokenaxis.columns import LOSSES, NAMES, normalise
from tokenaxis.errors import Notice, TokenAxisError
from tokenaxis.readers import steps as steps_are
from tokenaxis.readers.base import RawLog
from tokenaxis.readers.naming import Naming, Source, choose
from tokenaxis.readers.remedies import FILE, quoted
from tokenaxis.readers.table.parsed import KIND_CODES, Parsed
from tokenaxis.readers.token_counts import counts_up

if TYPE_CHECKING:
    import numpy as np

#: what the step of a whole run is called beside that of an epoch
_GLOBAL = "global_step"
#: the count over all ranks beside that of one
_TOTAL = "total_tokens"


def finish(
    parsed: Parsed, naming: Naming, reader: str, tokens_per_step: float | None = None, needs_loss: bool = True
) -> RawLog:
    """The log of a parsed table.

    Args:
        parsed: what was parsed.
        naming: what the columns may stand for.
        reader: name of the format.
        tokens_per_step: declared fixed batch; gives steps to a table that counts only tokens.
        needs_loss: False for one of several files of a run.

    Raises:
        TokenAxisError: no row is left, no loss has a value, or two columns of one name contradict each other.
    """
    import numpy as np

    log = RawLog(reader, {}, parsed.lines, {}, 0, [], warnings=[*naming.notices, *parsed.notices])
    several = {s.index for groups in naming.candidates.values() if len(groups) > 1 for group in groups for s in group}
    counts = {index: int(np.isfinite(parsed.values[index]).sum()) for index in several}
    chosen: dict[str, Source] = {}
    for canonical in NAMES:
        if canonical in naming.candidates:
            group = choose(naming.candidates[canonical], counts)
            if canonical == "step" and len(naming.candidates[canonical]) > 1:
                group = _global(naming.candidates[canonical], group, parsed, log)
            if canonical == "tokens" and len(naming.candidates[canonical]) > 1:
                group = _counting(naming.candidates[canonical], group, parsed, log)
            chosen[canonical] = _one_of(canonical, group, parsed, log)
            _note_unused(canonical, naming.candidates[canonical], group, counts, log)
    if "step" not in chosen:
        chosen["step"] = _step_from_tokens(parsed, chosen["tokens"], tokens_per_step or 1.0, log)
    steps = parsed.values[chosen["step"].index]
    steps_are.refuse_beyond(steps, parsed.lines)
    keep = _usable_steps(steps, chosen["step"].index in parsed.whole)
    steps_are.refuse_mostly_bad(steps, keep, parsed.lines)
    bad = parsed.lines[~keep]
    log.rows_read = len(steps) + len(parsed.bad_lines)
    log.bad_lines = sorted([*parsed.bad_lines, *(int(line) for line in bad)])
    if len(bad):
        log.warnings += steps_are.notices(steps[~keep], bad)
    if not keep.any():
        raise TokenAxisError("has no usable row: no cell of its step column is a number", remedy=steps_are.REMEDY)
    everything = bool(keep.all())
    log.lines = parsed.lines if everything else parsed.lines[keep]
    for canonical in NAMES:
        if canonical not in chosen:
            continue
        source = chosen[canonical]
        values = parsed.values[source.index]
        values = values if everything else values[keep]
        log.columns[canonical] = values if source.per_unit == 1.0 else values / source.per_unit
        log.names[canonical] = source.name
        for kind, rows in parsed.unusable.get(source.index, {}).items():
            rows = rows if everything else rows[keep[rows]]
            if canonical != "step" and len(rows):
                log.unusable[canonical, kind] = parsed.lines[rows]
    if parsed.kind_codes is not None:
        _split_by_kind(log, parsed.kind_codes if everything else parsed.kind_codes[keep], naming)
    _drop_blank_columns(log)
    if needs_loss and not any(loss in log.columns for loss in LOSSES):
        raise TokenAxisError("has no loss value: every cell of its loss columns is blank")
    return log


def _step_from_tokens(parsed: Parsed, tokens: Source, tokens_per_step: float, log: RawLog) -> Source:
    """Steps of a table that counts only tokens, as a further source of it."""
    import numpy as np

    index = -2
    parsed.values[index] = np.round(parsed.values[tokens.index] / tokens_per_step)
    message = f"steps are {tokens.name!r} divided by the declared {tokens_per_step:,.0f} tokens per step"
    log.warnings.append(Notice("step_from_tokens", message))
    return Source(index, tokens.name)


def _global(groups: list[list[Source]], taken: list[Source], parsed: Parsed, log: RawLog) -> list[Source]:
    """The step of the whole run beside one that begins anew with each epoch."""
    import numpy as np

    def falls(group: list[Source]) -> int:
        known = parsed.values[group[0].index]
        return int((np.diff(known[np.isfinite(known)]) < 0).sum())

    for group in groups:
        if group is not taken and _GLOBAL in normalise(group[0].name) and falls(group) < falls(taken):
            values = (np.isfinite(parsed.values[one[0].index]).sum() for one in (group, taken))
            if next(values) >= next(values):
                message = f"{group[0].name!r} was taken as step, not {taken[0].name!r}, which begins anew"
                log.warnings.append(Notice("step_chosen", message))
                return group
    return taken


def _counting(groups: list[list[Source]], taken: list[Source], parsed: Parsed, log: RawLog) -> list[Source]:
    """Of columns that are called like tokens the one that counts up; of two that do, that of all ranks (litgpt)."""
    import numpy as np

    counting = [group for group in groups if counts_up(parsed.values[group[0].index])]
    best = taken if taken in counting or not counting else counting[0]
    for group in counting:
        if normalise(group[0].name).endswith(_TOTAL) and group is not best:
            ours, theirs = (parsed.values[one[0].index] for one in (best, group))
            both = np.isfinite(ours) & np.isfinite(theirs)
            if both.any() and (theirs[both] >= ours[both]).all():
                best = group
    if best is not taken:
        message = f"{best[0].name!r} was taken as the count of tokens, not {taken[0].name!r}"
        log.warnings.append(Notice("tokens_chosen", message))
    return best


def _usable_steps(steps: np.ndarray, integers: bool) -> np.ndarray:
    """Whole numbers from 0 on; `integers`: they are whole, if not blank."""
    import numpy as np

    with np.errstate(invalid="ignore"):
        if len(steps) and steps.min() >= 0 and steps.max() <= steps_are.LARGEST_STEP:
            # the ordinary case; a NaN makes both comparisons false
            return np.ones(len(steps), bool) if integers else steps.astype(np.int64) == steps
        return (steps >= 0) & (steps <= steps_are.LARGEST_STEP) & (steps == np.floor(steps))


def _one_of(canonical: str, group: list[Source], parsed: Parsed, log: RawLog) -> Source:
    """The column to take of those that stand for the same thing.

    Columns of one name must agree where both hold a value. Of columns whose names merely mean the same (train/loss and
    train_loss) the one with the most values is taken.
    """
    import numpy as np

    if len(group) == 1:
        return group[0]
    counts = [int(np.isfinite(parsed.values[source.index]).sum()) for source in group]
    best = group[counts.index(max(counts))]
    taken = parsed.values[best.index]
    for other, count in zip(group, counts, strict=True):
        if other is best or count == 0:
            continue
        values = parsed.values[other.index]
        differs = np.isfinite(taken) & np.isfinite(values) & (taken != values)
        both = f"({best.name!r} and {other.name!r})"
        if differs.any() and best.name == other.name:
            raise TokenAxisError(
                f"has duplicate columns for {canonical} {both} with different values",
                line=int(parsed.lines[int(np.argmax(differs))]),
                remedy="remove or rename one of them",
            )
        end = f"differ; {best.name!r} was taken" if differs.any() else "hold the same values"
        log.warnings.append(Notice("duplicate_column", f"duplicate columns for {canonical} {both} {end}"))
    return best


def _note_unused(
    canonical: str, groups: list[list[Source]], chosen: list[Source], counts: dict[int, int], log: RawLog
) -> None:
    """A loss that stands beside the chosen one under another name is worth a word."""
    if canonical not in LOSSES or len(groups) == 1:
        return
    for group in groups:
        if group is not chosen and counts[group[0].index]:
            message = (
                f"{chosen[0].name!r} ({counts[chosen[0].index]:,} values) was taken as {canonical}, "
                f"not {group[0].name!r} ({counts[group[0].index]:,} values); "
                f"choose in {FILE}: `defaults: {{columns: {{{canonical}: {quoted(group[0].name)}}}}}`"
            )
            log.warnings.append(Notice(f"{canonical}_chosen", message))


def _split_by_kind(log: RawLog, codes: np.ndarray, naming: Naming) -> None:
    """A table of the layout step, type, loss: each row's loss goes to the column of its type."""
    import numpy as np

    if naming.kind is None or not codes.any():
        return
    loss, name = log.columns.pop("train_loss"), log.names.pop("train_loss")
    flagged = {kind: log.unusable.pop((column, kind)) for column, kind in list(log.unusable) if column == "train_loss"}
    for canonical, code in KIND_CODES.items():
        mine = codes == code
        if mine.any():
            log.columns[canonical] = np.where(mine, loss, np.nan)
            log.names[canonical] = name
            for kind, lines in flagged.items():
                here = lines[np.isin(lines, log.lines[mine])]
                if len(here):
                    log.unusable[canonical, kind] = here
    log.columns = {canonical: log.columns[canonical] for canonical in NAMES if canonical in log.columns}


def _drop_blank_columns(log: RawLog) -> None:
    """A column without any value or flagged cell is not a column that the log has."""
    import numpy as np

    flagged = {canonical for canonical, _ in log.unusable}
    for canonical in list(log.columns):
        if canonical == "step" or canonical in flagged or not np.isnan(log.columns[canonical][0]):
            continue
        if np.isnan(log.columns[canonical]).all():
            del log.columns[canonical], log.names[canonical]
