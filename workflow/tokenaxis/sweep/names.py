"""What the paths of logs say about which of them are attempts of one run."""

from __future__ import annotations

import re
from dataclasses import dataclass

#: words that call a file or folder a stretch of a run: run_attempt2.jsonl, resumed/log.csv, part-0003.csv
_WORD = re.compile(
    r"(?:(?<=/)|^|[._-])(?:attempt|restart(?:ed)?|resumed?|requeued?|retry|cont|continued)[._-]?(\d{0,6})(?=[._/-]|$)",
    re.IGNORECASE,
)
#: words for a piece of a log, whose rows others may hold too
_PIECE = re.compile(r"(?:(?<=/)|^|[._-])(?:part|segment|chunk|split)[._-]?(\d{1,6})(?=[._/-]|$)", re.IGNORECASE)
#: Lightning's CSVLogger and TensorBoardLogger: version_0/metrics.csv
_VERSION = re.compile(r"(?:(?<=/)|^)version_(\d{1,6})(?=/)")
#: log.1.csv and log.csv.1 beside log.csv
_NUMBERED = re.compile(r"\.(\d{1,3})(?=\.[A-Za-z][\w.]*$|$)")
#: metrics_0-5000.csv beside metrics_4000-9000.csv
_RANGE = re.compile(r"(?:(?<=/)|^|[._-])(?:steps?[._-]?)?(\d{1,12})(?:-|_|-to-|_to_)(\d{1,12})(?=\.[A-Za-z]|$)")
_ANY = re.compile(
    r"attempt|restart|resum|requeue|retry|part|segment|chunk|split|cont|version_\d|\.\d|\d(?:-|_)(?:to[-_])?\d", re.I
)
_RULES = (
    (_VERSION, "versions of one Lightning logger"),
    (_WORD, "named as attempts of one run"),
    (_PIECE, "named as pieces of one log"),
    (_RANGE, "named after ranges of steps"),
    (_NUMBERED, "numbered beside a file of the same name"),
)
#: rules whose numbers count the stretches from the oldest on (log.csv.1 may be older or newer than log.csv)
CHRONOLOGICAL = frozenset(rule for _, rule in _RULES[:3])
#: rules for attempts, which did each step again that another has too; other pieces of a log may just repeat its rows
ATTEMPTS = frozenset(rule for _, rule in _RULES[:2])


@dataclass(frozen=True)
class Attempt:
    """What a path says.

    Attributes:
        key: files of one key may be stretches of one run.
        rule: in words, by what sign.
        number: that the path counts it by; 0 where it bears none.
    """

    key: str
    rule: str
    number: int


def attempt_in(path: str) -> Attempt | None:
    """Whether a path calls its file a stretch of a run; None for a plain name."""
    if _ANY.search(path) is None:
        return None
    for pattern, rule in _RULES:
        match = pattern.search(path)
        if match is not None:
            return Attempt(plain(path[: match.start()] + path[match.end() :]), rule, int(match.group(1) or 0))
    return None


def plain(path: str) -> str:
    """A path without what taking out a part of it left behind."""
    return re.sub(r"/[._-]+(?=[^/])", "/", re.sub(r"/{2,}", "/", path)).strip("/")


def natural(path: str) -> tuple[tuple[int, int | str], ...]:
    """A key that sorts version_10 after version_9."""
    return tuple((0, int(part)) if part.isdigit() else (1, part) for part in re.split(r"(\d{1,18})", path) if part)
