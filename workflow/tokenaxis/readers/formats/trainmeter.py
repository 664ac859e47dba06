"""events.jsonl of a trainmeter run directory (0.0.2 to 0.0.7).

emit() records no step, and one `step` record may stand for several optimizer steps, so losses are placed by counting:
what one emit() call or one loop pass emits is a group, and the n-th group is the n-th step of this process (0-based).
Metrics that another logger handed over ("tap") bear that logger's step. Only rank 0 counts.
"""

from __future__ import annotations

import io
import json
from collections import Counter
from dataclasses import dataclass, field
from typing import Any

from tokenaxis.declarations import Declaration
from tokenaxis.errors import Notice, TokenAxisError
from tokenaxis.readers import naming
from tokenaxis.readers.base import RawLog, Reader, Sample
from tokenaxis.readers.content import read_content
from tokenaxis.readers.headers import Fact
from tokenaxis.readers.records import Records

NAME = "trainmeter"
_KINDS = frozenset(("run.start", "run.end", "hello", "fact", "step", "metric", "phase", "alert"))
_SAMPLES = ("sample.gpu", "sample.host", "sample.node")
_SOURCES = frozenset(("declared", "emitted", "tapped", "detected", "measured", "assumed"))
#: the agent flushes its last step record at exit, so losses may be ahead of it by this many steps
_AHEAD = 2


@dataclass
class _Emitted:
    """One value that the training loop emitted."""

    line: int
    time: float
    key: str
    value: Any
    step: int | None
    done: int


@dataclass
class _Run:
    """What the records say, before losses are placed."""

    emitted: list[_Emitted] = field(default_factory=list)
    facts: list[Fact] = field(default_factory=list)
    bad_lines: list[int] = field(default_factory=list)
    start: float | None = None
    steps: int = 0
    dp: float = 1.0
    batches: list[tuple[int, float]] = field(default_factory=list)
    phases: list[tuple[str, float, float]] = field(default_factory=list)  # name, time at its end, seconds
    stepped: tuple[float, float] | None = None  # times of the first and of the last step record
    last: float = 0.0  # time of the latest record
    ended: bool = False


def sniff(sample: Sample) -> int:
    """Certain when the first lines are records of version 1 with kinds that only trainmeter writes."""
    head = sample.head[:600]
    marks = b'"kind":' in head and b'"src":' in head and b'"d":' in head and b'"v":' in head
    return 97 if marks else 0


def read(path: str, declaration: Declaration) -> RawLog:
    """Read a run's events.

    Raises:
        TokenAxisError: no loss was emitted.
    """
    content = read_content(path)
    run = _scan(content.data)
    groups = _groups([value for value in run.emitted if naming.role(value.key, {}) not in (None, "step", "kind")])
    records = Records({})
    records.bad_lines = run.bad_lines
    notices = list(content.notices)
    placed, how = _place(groups, run)
    for step, group in zip(placed, groups, strict=True):
        row: dict[str, Any] = {"step": step}
        for value in group:
            row[value.key] = value.value
        if run.start is not None:
            row["elapsed_s"] = max(0.0, group[0].time - run.start)
        if "tokens_per_step" not in row and (batch := _batch_at(run, step)) is not None:
            row["tokens_per_step"] = batch
        records.add(group[0].line, row)
    notices.append(Notice("losses_placed", how))
    if run.bad_lines:
        shown = ", ".join(str(line) for line in run.bad_lines[:5])
        notices.append(Notice("unreadable_records", f"{len(run.bad_lines)} records could not be read (lines {shown})"))
    if not run.ended:
        notices.append(Notice("no_run_end", "the run has no end record: it was killed, or is still running"))
    if not any(naming.role(value.key, {}) in ("train_loss", "val_loss") for value in run.emitted):
        raise TokenAxisError("has no emitted loss", remedy="emit train_loss or val_loss in the training loop")
    log = records.log(NAME, notices, what="group")
    log.facts += run.facts + _whole(run)
    return log


def _whole(run: _Run) -> list[Fact]:
    """Facts about the whole run: wall time, whether it ended, and where the time went, as trainmeter's passport has it.

    Time before the first step record is start-up, after the last one it is "after"; phases are taken out of the stretch
    in which they ended; what is left between the records is computing. Goodput is computing and waiting for data.
    """
    if run.start is None:
        return []
    elapsed = run.last - run.start
    note = "trainmeter, run.start to " + ("run.end" if run.ended else "the last record: there is no run.end")
    found: list[Fact] = [
        ("elapsed_s", elapsed, "measured", note),
        ("finished", run.ended, "detected", "trainmeter, whether there is a run.end"),
    ]
    if run.stepped is None or elapsed <= 0:
        return found
    first, last = run.stepped[0], run.stepped[1] if run.ended else run.last
    seconds: dict[str, float] = {}
    left = {"startup": first - run.start, "compute": last - first, "after": run.last - last}
    data = 0.0
    for name, time, spent in run.phases:
        seconds[name] = seconds.get(name, 0.0) + spent
        stretch = "startup" if time < first else "compute" if time <= last else "after"
        left[stretch] = max(0.0, left[stretch] - spent)
        data += spent if name == "data" and stretch == "compute" else 0.0
    parts = [_part("startup", "Start-up", left["startup"])]
    parts += [_part(name, name.capitalize(), spent) for name, spent in sorted(seconds.items())]
    parts.append(_part("compute", "Between step records, less the phases", left["compute"]))
    if run.ended:
        parts.append(_part("after", "After the last step record", left["after"]))
    found.append(("time_parts", parts, "measured", "trainmeter, phases and step records"))
    goodput = (left["compute"] + data) / elapsed
    if goodput > 0:
        found.append(("goodput", goodput, "measured", "trainmeter, computing and data wait over wall time"))
    return found


def _part(name: str, label: str, seconds: float) -> dict[str, Any]:
    return {"name": name, "label": label, "s": seconds, "measured": True}


def _scan(data: bytes) -> _Run:
    run = _Run()
    for line, raw in enumerate(io.BytesIO(data), 1):
        text = raw.strip(b" \t\r\n\0")
        if not text or any(b'"' + kind.encode() + b'"' in text for kind in _SAMPLES):
            continue
        try:
            record = json.loads(text.decode("utf-8", "replace"))
            if record["v"] != 1 or record["kind"] not in _KINDS or not isinstance(record["d"], dict):
                raise ValueError("no record of version 1")
            _take(run, line, record, record["d"])
        except (ValueError, TypeError, KeyError, AttributeError, OverflowError, RecursionError):
            run.bad_lines.append(line)
    return run


def _take(run: _Run, line: int, record: dict[str, Any], data: dict[str, Any]) -> None:
    kind, rank = record["kind"], record.get("rank") or 0
    time = float(record.get("t") or 0.0)
    run.last = max(run.last, time)
    if kind == "run.start":
        run.start = time
        if isinstance(argv := data.get("argv"), list) and all(isinstance(part, str) for part in argv) and argv:
            run.facts.append(("command", argv, "detected", f"trainmeter, line {line}"))
    elif kind == "run.end":
        run.ended = True
        _fact(run, line, "exit_status", data.get("exit_status"), "measured", "run.end")
    elif rank != 0:
        return
    elif kind == "hello":
        for key in ("python", "torch", "cuda", "world_size", "trainmeter"):
            _fact(run, line, key, data.get(key), "detected", "hello")
        if isinstance(data.get("world_size"), int) and run.dp == 1.0:
            run.dp = float(max(1, data["world_size"]))
    elif kind == "step":
        updates = max(1, min(int(data.get("k", 1)), 10**9))
        if data.get("tokens") is not None:
            run.batches.append((run.steps, float(data["tokens"]) / updates))
        run.steps += updates
        run.stepped = (time if run.stepped is None else run.stepped[0], time)
    elif kind == "phase":
        run.phases.append((str(data["name"]), time, max(0.0, float(data["s"]))))
    elif kind == "metric":
        step = data.get("step")
        step = int(step) if isinstance(step, int | float) and not isinstance(step, bool) else None
        run.emitted.append(_Emitted(line, time, str(data["key"]), data["value"], step, run.steps))
    elif kind == "fact":
        key, source = str(data["key"]), str(data.get("source"))
        if key == "tokens_per_step" and source == "emitted":
            run.emitted.append(_Emitted(line, time, key, data["value"], None, run.steps))
            return
        if key == "dp" and isinstance(data["value"], int | float):
            run.dp = max(1.0, float(data["value"]))
        _fact(run, line, key, data["value"], source, data.get("note"))


def _fact(run: _Run, line: int, key: str, value: Any, source: str, note: Any) -> None:
    plain = isinstance(value, str | bool | int) or (isinstance(value, float) and abs(value) < float("inf"))
    if plain and source in _SOURCES:
        where = f"trainmeter, line {line}" + (f": {note}" if isinstance(note, str) else "")
        run.facts.append((key, value, source, where))


def _groups(emitted: list[_Emitted]) -> list[list[_Emitted]]:
    """Values that were emitted together: a key that comes again begins the next group.

    Keys that come rarely (val_loss) may be emitted before or after the others; they join whichever is nearer in time.
    """
    counts = Counter(value.key for value in emitted)
    most = max(counts.values(), default=0)
    often = {key for key, count in counts.items() if count * 2 > most}
    groups: list[list[_Emitted]] = []
    seen: set[str] = set()
    waiting: list[_Emitted] = []
    for value in emitted:
        if value.key not in often:
            waiting.append(value)
            continue
        step_changed = bool(groups) and value.step is not None and value.step != groups[-1][0].step
        if value.key in seen or not groups or step_changed:
            groups.append([])
            seen = set()
            _attach(groups, waiting, value.time)
            waiting = []
        groups[-1].append(value)
        seen.add(value.key)
    if groups:
        groups[-1] += waiting
    return [group for group in groups if group]


def _attach(groups: list[list[_Emitted]], waiting: list[_Emitted], time: float) -> None:
    """Give values that wait between two groups to the nearer one; the last of `groups` is the new one."""
    for value in waiting:
        before = groups[-2][-1] if len(groups) > 1 else None
        same_step = value.step is not None and before is not None and value.step == before.step
        if before is not None and (same_step or value.time - before.time < time - value.time):
            groups[-2].append(value)
        else:
            groups[-1].append(value)


def _place(groups: list[list[_Emitted]], run: _Run) -> tuple[list[int], str]:
    """A step for each group, and in words where it came from."""
    steps = [next((value.step for value in group if value.step is not None), None) for group in groups]
    if groups and all(step is not None for step in steps):
        return [step or 0 for step in steps], "steps are those of the logger that handed the losses over"
    if run.steps == 0:
        return list(range(len(groups))), "there are no step records: the n-th emitted loss was taken as the n-th step"
    if abs(len(groups) - run.steps) <= _AHEAD or len(groups) > run.steps:
        return list(range(len(groups))), "the n-th emitted loss was placed on the n-th step of this process, from 0"
    placed, last = [], -1
    for group, step in zip(groups, steps, strict=True):
        last = max(last + 1, max(0, group[0].done - 1)) if step is None else step
        placed.append(last)
    return placed, "losses come more rarely than steps: each was placed on the last step recorded before it"


def _batch_at(run: _Run, step: int) -> float | None:
    """Tokens of all ranks in a step, from the agent's own count."""
    import bisect

    index = bisect.bisect_right(run.batches, step, key=lambda item: item[0]) - 1
    return run.batches[index][1] * run.dp if index >= 0 else None


READER = Reader(NAME, "events.jsonl of a trainmeter run directory", sniff, read)
