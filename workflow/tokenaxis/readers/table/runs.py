"""Tables that hold several runs, or one whose id changed at a resume: told apart by the column that names them."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence

from tokenaxis.columns import normalise
from tokenaxis.errors import Notice, TokenAxisError
from tokenaxis.readers import naming
from tokenaxis.readers.extent import Extent, goes_on, step_of
from tokenaxis.readers.table.dialect import Dialect, split

#: columns that say which run a row is of
_RUN_COLUMN = re.compile(
    r"run(?:_?(?:id|name|nr|number))?|(?:experiment|exp|trial|model|config|job)(?:_?(?:id|name))?|seed|name|method|variant"
    r"|arm|condition|fold|optimizer|algo(?:rithm)?"
)
#: parts of such names, without one of which no header has such a column
_MAY_NAME = (
    *(b"run", b"exp", b"trial", b"model", b"config", b"job", b"seed", b"name", b"method", b"variant", b"arm"),
    *(b"condition", b"fold", b"optim", b"algo"),
)
#: W&B's table of runs, a row a run: some of these stand beside Name
_OF_RUNS_TABLE = frozenset(("State", "Notes", "User", "Tags", "Created", "Runtime", "Sweep", "Hostname", "End Time"))
#: those of them that can be nothing but a run
_RUN = re.compile(r"run|exp|trial|seed|job")
_SHOWN = 3


def is_table_of_runs(names: Sequence[str]) -> bool:
    """Whether a header is that of W&B's table of runs, which holds the last values of each and no steps."""
    return bool(names) and names[0] == "Name" and len(_OF_RUNS_TABLE.intersection(names)) > 1


def table_of_runs() -> TokenAxisError:
    """Its refusal."""
    return TokenAxisError(
        "is W&B's table of runs: a row a run, with its last values, and no history",
        remedy="export the data of a chart of the loss (its menu, CSV), or each run's history: "
        "wandb.Api().run(PATH).scan_history()",
    )


def may_name_runs(head: bytes) -> bool:
    """Whether a file's first line that is no comment may name a column of runs; a look that costs next to nothing."""
    if head.startswith((b"\x1f\x8b", b"\xff\xfe", b"\xfe\xff")):
        return True  # compressed, UTF-16
    header = next((line for line in head.split(b"\n", 20) if line.strip() and not line.startswith(b"#")), b"").lower()
    return any(part in header for part in _MAY_NAME)


def run_column(dialect: Dialect, declared: Mapping[str, str]) -> int | None:
    """Position of the column that says which run a row is of; None where none does."""
    for index, name in enumerate(dialect.names):
        if _RUN_COLUMN.fullmatch(normalise(name)) is not None and name not in declared.values():
            return index
    return None


def runs_seen(rows: Iterable[Sequence[str]], dialect: Dialect, column: int) -> list[str]:
    """What the column holds in these rows, each once; nothing where it tells training from validation."""
    found = dict.fromkeys(row[column].strip() for row in rows if len(row) == len(dialect.names))
    return [] if _are_kinds(found) else list(found)


def _are_kinds(runs: Iterable[str]) -> bool:
    """Whether these are no names of runs but say whether a row is of training or validation."""
    return all(run.lower() in naming.KINDS for run in runs)


def is_constant(content: bytes, dialect: Dialect, column: int) -> bool:
    """Whether a column holds the same text in each row, told by counting it; False where that does not tell."""
    rows = [row for row in dialect.rows if len(row) == len(dialect.names)]
    if not rows or dialect.delimiter == " ":
        return False
    text = rows[0][column]
    if any(row.count(text) > 1 for row in rows):
        return False  # another column holds it too
    run, mark, last = text.encode(), dialect.delimiter.encode(), column == len(dialect.names) - 1
    before, ends = b"\n" if column == 0 else mark, (b"\n", b"\r\n") if last else (mark,)
    start = dialect.body_start - 1
    lines = content.count(b"\n", start) - content.endswith(b"\n")
    spellings = (before + quote + run + quote + end for quote in (b"", b'"') for end in ends)
    return any(content.count(spelling, start) == lines for spelling in spellings)


def several(name: str, runs: Sequence[str]) -> TokenAxisError:
    """The refusal of a table of several runs."""
    return TokenAxisError(
        f"holds several runs, which its column {name!r} tells apart ({runs[0]!r}, {runs[1]!r}, ...)",
        remedy="write each run to a file of its own",
    )


def joined(lines: Iterable[bytes], dialect: Dialect, step: int, column: int) -> Notice | None:
    """One run whose id changed: what is said of it. None where its id did not change.

    Args:
        lines: all lines below the header.
        dialect: how the table is written.
        step: position of the step column.
        column: position of the column that names the run.

    Raises:
        TokenAxisError: several runs: an id comes back, or does not go on from where the ones before it ended.
    """
    name = dialect.names[column]
    stretches: dict[str, Extent] = {}
    current = None
    for run, at in _steps(lines, dialect, step, column):
        before = stretches.get(run)
        if before is None:
            stretches[run] = Extent(at, at, 1)
        elif run != current and not _are_kinds(stretches):
            raise several(name, [str(current), run])
        else:
            interval = before.interval if before.last > before.first else max(1, at - before.first)
            stretches[run] = Extent(before.first, max(before.last, at), interval)
        current = run
    runs = list(stretches)
    if len(runs) < 2 or _are_kinds(runs):
        return None
    extents = list(stretches.values())
    if _RUN.match(normalise(name)) is None and all(steps.first == steps.last for steps in extents):
        firsts = [steps.first for steps in extents]
        if firsts == sorted(set(firsts)):
            return None  # a name of its own for each row, such as a checkpoint's
    for number in range(1, len(runs)):
        if not goes_on(extents[:number], extents[number]):
            raise several(name, [runs[0], runs[number]])
    changes = [f"{run!r} from step {steps.first:,}" for run, steps in stretches.items()]
    shown = ", ".join(changes[:_SHOWN]) + (", ..." if len(changes) > _SHOWN else "")
    message = (
        f"column {name!r} names {len(runs)} runs one after the other, each going on where the one before ended "
        f"({shown}): they were taken as attempts of one run"
    )
    return Notice("run_id_changes", message)


def _steps(lines: Iterable[bytes], dialect: Dialect, step: int, column: int) -> Iterator[tuple[str, int]]:
    """(run, step) of each row that has both."""
    for line in lines:
        row = split(line.decode("utf-8", "replace").strip("\r\n\0"), dialect.delimiter)
        if len(row) == len(dialect.names):
            at = step_of(row[step])
            if at is not None:
                yield row[column].strip(), at
