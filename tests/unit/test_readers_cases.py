"""The reader's part of the logs with a known answer: rows read, bad rows and their lines, names, refusals."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tokenaxis import readers
from tokenaxis.errors import TokenAxisError

#: refused only when there is a token axis, or a fit
LATER = {"negative_tokens", "decreasing_tokens", "batch_malformed", "batch_unknown"}
#: the generator's names of columns -> ours
CANONICAL = {"global_batch": "tokens_per_step"}


def _logs(folder: Path, case: dict[str, Any]) -> list[str]:
    return [str(folder / file["path"]) for file in case["files"] if not file["path"].endswith(".json")]


def _problems(log: readers.RawLog, expect: dict[str, Any]) -> list[str]:
    found = []
    if "rows_read" in expect and log.rows_read != expect["rows_read"]:
        found.append(f"rows_read {log.rows_read}, not {expect['rows_read']}")
    if "rows_bad" in expect and len(log.bad_lines) != expect["rows_bad"]:
        found.append(f"bad lines {log.bad_lines[:5]}, not {expect['rows_bad']}")
    if "bad_lines" in expect:
        flagged = {int(line) for lines in log.unusable.values() for line in lines}
        if sorted(flagged | set(log.bad_lines)) != expect["bad_lines"]:
            found.append(f"flagged {sorted(flagged | set(log.bad_lines))[:5]}, not {expect['bad_lines'][:5]}")
    for canonical, name in expect.get("columns", {}).items():
        if log.names.get(CANONICAL.get(canonical, canonical)) != name:
            found.append(f"{canonical} is {log.names.get(canonical)!r}, not {name!r}")
    return found


def test_every_case_is_read_as_its_truth_says(cases: tuple[Path, dict[str, Any]]) -> None:
    folder, truth = cases
    wrong, read = {}, 0
    for name, case in truth.items():
        expect = case["expect"]
        for path in _logs(folder, case):
            try:
                log = readers.read(path)
            except TokenAxisError as error:
                if expect["outcome"] in ("ok", "fit_refused"):
                    wrong[name] = [f"refused: {error}"]
                continue
            read += 1
            problems = _problems(log, expect)
            if expect["outcome"] == "refused" and name not in LATER:
                problems.append("should be refused")
            if problems:
                wrong[name] = problems
    assert wrong == {}
    assert read > 90


@pytest.mark.parametrize("name", ["header_only", "zero_bytes", "binary", "duplicate_conflict"])
def test_a_refusal_says_why(cases: tuple[Path, dict[str, Any]], name: str) -> None:
    folder, truth = cases
    (path,) = _logs(folder, truth[name])
    with pytest.raises(TokenAxisError) as caught:
        readers.read(path)
    assert any(word in caught.value.reason.lower() for word in truth[name]["expect"]["reason_any"])
    assert caught.value.file == path


@pytest.mark.parametrize("name", ["text_in_loss", "blank_step", "truncated", "gz_cut", "duplicate_same"])
def test_an_oddity_of_the_file_is_noted_in_words(cases: tuple[Path, dict[str, Any]], name: str) -> None:
    folder, truth = cases
    (path,) = _logs(folder, truth[name])
    said = " ".join(notice.message.lower() for notice in readers.read(path).warnings)
    expect = truth[name]["expect"]
    for words in expect.get("warn_any", [expect.get("reason_any")]):
        assert any(word in said for word in words), said


def test_no_case_is_changed_by_reading(cases: tuple[Path, dict[str, Any]]) -> None:
    import hashlib

    folder, truth = cases
    for case in truth.values():
        for file in case["files"]:
            assert hashlib.sha256((folder / file["path"]).read_bytes()).hexdigest() == file["sha256"]
