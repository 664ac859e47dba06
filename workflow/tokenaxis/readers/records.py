"""Logs of records: one mapping per event, with keys that come and go (JSONL, trainer states)."""

from __future__ import annotations

import math
from array import array
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from tokenaxis.columns import LOSSES
from tokenaxis.errors import Notice
from tokenaxis.readers import cells, naming, remedies
from tokenaxis.readers.base import IntervalMean, RawLog
from tokenaxis.readers.table.finish import finish
from tokenaxis.readers.table.parsed import KIND_CODES, Parsed

if TYPE_CHECKING:
    import numpy as np

#: how deep mappings inside a record are followed
_DEPTH = 4
#: keys that mark the summary at the end of a run (HF Trainer), whose losses are means over the whole run
SUMMARY_KEYS = frozenset(("train_runtime",))
#: keys that only the HF Trainer writes beside an evaluation; the training losses of such a log are means
TRAINER_KEYS = frozenset(("eval_samples_per_second", "eval_steps_per_second"))
#: roles that make a record a row: a step must come with a value, a loss with a step
LOSS_ROLES = frozenset(LOSSES)
VALUE_ROLES = LOSS_ROLES | {"lr", "grad_norm", "tokens", "tokens_per_step"}


class Records:
    """Grows column by column as records come; `log` turns it into a RawLog."""

    def __init__(self, declared: Mapping[str, str] | None = None):
        self.declared = dict(declared or {})
        self.roles: dict[str, str | None] = {}
        self.rows: dict[str, array] = {}
        self.values: dict[str, array] = {}
        self.unusable: dict[str, dict[str, array]] = {}
        self.texts: dict[str, tuple[str, int]] = {}
        self.lines, self.kinds = array("q"), array("b")
        self.kind_name: str | None = None
        self.bad_lines: list[int] = []
        self.passed = self.summaries = 0

    def add(self, line: int, record: Mapping[str, Any]) -> None:
        """One record; without a step or without any value it is passed and counted."""
        if not SUMMARY_KEYS.isdisjoint(record):
            self.summaries += 1
            return
        flat = flatten(record)
        seen = set()
        found: list[tuple[str, str, float, str | None]] = []
        code = 0
        for key, value in flat:
            role = self.roles.get(key, "")
            if role == "":
                role = self.roles[key] = naming.role(key, self.declared)
            if role is None or value is None:
                continue
            if role == "kind":
                code = self._kind(key, value, code)
                continue
            number, kind = as_number(value, role)
            if number != number and kind is None:
                continue
            found.append((key, role, number, kind))
            seen.add(role)
        if ("step" not in seen and LOSS_ROLES.isdisjoint(seen)) or ("step" in seen and VALUE_ROLES.isdisjoint(seen)):
            self.passed += 1
            return
        row = len(self.lines)
        self.lines.append(line)
        self.kinds.append(code)
        for key, _, number, kind in found:
            if key not in self.rows:
                self.rows[key], self.values[key] = array("q"), array("d")
            self.rows[key].append(row)
            self.values[key].append(number)
            if kind is not None:
                self.unusable.setdefault(key, {}).setdefault(kind, array("q")).append(row)
                if kind == "text":
                    self.texts.setdefault(key, (str(dict(flat)[key])[:40], line))

    def _kind(self, key: str, value: Any, code: int) -> int:
        loss = naming.KINDS.get(value.strip().lower()) if isinstance(value, str) else None
        if loss is None:
            return code
        self.kind_name = self.kind_name or key
        return KIND_CODES[loss]

    def log(self, reader: str, notices: list[Notice], what: str = "record") -> RawLog:
        """The log of all records.

        Raises:
            TokenAxisError: no record with a step, none with a loss.
        """
        import numpy as np

        names = list(self.rows)
        found = naming.resolve(names, {k: v for k, v in self.declared.items() if v in self.rows or "." not in v})
        if not found.has_step():
            raise remedies.missing_column("step", list(self.roles), self.declared)
        if not found.has_loss():
            raise remedies.missing_column("train_loss", list(self.roles), self.declared)
        if found.kind is None and self.kind_name is not None and "val_loss" not in found.candidates:
            loss = found.candidates.get("train_loss", [[None]])[0][0]
            if loss is not None and "train" not in loss.name.lower():
                found.kind = naming.Source(-1, self.kind_name)
        parsed = Parsed({}, np.array(self.lines, np.int64), bad_lines=sorted(self.bad_lines))
        for source in found.sources:
            key = names[source.index]
            dense = np.full(len(self.lines), np.nan)
            dense[np.frombuffer(self.rows[key], np.int64)] = np.frombuffer(self.values[key], np.float64)
            parsed.values[source.index] = dense
            kinds = {kind: _indices(rows) for kind, rows in self.unusable.get(key, {}).items()}
            if kinds:
                parsed.unusable[source.index] = kinds
            if key in self.texts:
                text, line = self.texts[key]
                message = f"{key!r} holds text, no number, in some {what}s; the first is {text!r} in line {line}"
                parsed.notices.append(Notice("text_in_cells", message))
        if found.kind is not None:
            parsed.kind_codes = np.array(self.kinds, np.int8)
        passed = passed_notice(self.passed, self.summaries, what)
        parsed.notices += [] if passed is None else [passed]
        parsed.notices[:0] = notices
        log = finish(parsed, found, reader)
        if (self.summaries or not TRAINER_KEYS.isdisjoint(self.roles)) and "train_loss" in log.columns:
            log.means["train_loss"] = IntervalMean(None, counted_after=True)
        return log


def _indices(rows: array) -> np.ndarray:
    import numpy as np

    return np.array(rows, np.int64)


def passed_notice(passed: int, summaries: int, what: str) -> Notice | None:
    """What was passed over, in words; None when nothing was."""
    parts = [f"{passed} {what}s without a step and a value"] if passed else []
    parts += [f"{summaries} summary of the whole run"] if summaries else []
    return Notice("records_passed", "passed over: " + ", ".join(parts)) if parts else None


def flatten(record: Mapping[str, Any]) -> list[tuple[str, Any]]:
    """(key, value) of a record, keys of nested mappings joined by dots; lists are left out."""
    flat: list[tuple[str, Any]] = []
    _flatten(record, "", flat, 0)
    return flat


def _flatten(record: Mapping[str, Any], prefix: str, into: list[tuple[str, Any]], depth: int) -> None:
    for key, value in record.items():
        if isinstance(value, dict):
            if depth < _DEPTH:
                _flatten(value, f"{prefix}{key}.", into, depth + 1)
        elif not isinstance(value, list):
            into.append((prefix + key, value))


def as_number(value: Any, canonical: str) -> tuple[float, str | None]:
    """(number, None), (NaN, None) for what is no number at all, (NaN, kind) for a value that should have been one."""
    if isinstance(value, bool):
        return math.nan, None
    if isinstance(value, int | float):
        try:
            number = float(value)
        except OverflowError:
            return math.nan, "inf"
        return (number, None) if math.isfinite(number) else (math.nan, cells.kind_of(number))
    return cells.number(value, canonical) if isinstance(value, str) else (math.nan, None)


def is_number(value: Any, canonical: str) -> bool:
    """Whether a value is a number, nan and infinity included, or text that is one."""
    number, kind = as_number(value, canonical)
    return number == number or kind in ("nan", "inf")
