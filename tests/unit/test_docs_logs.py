"""docs/logs.md lists the readers that there are, in their own words."""

from __future__ import annotations

from pathlib import Path

from tokenaxis import readers
from tokenaxis.readers.extent import BEYOND_BEGINNING, GAP
from tokenaxis.sweep import names


def test_the_list_of_formats_is_that_of_the_readers(root: Path) -> None:
    text = (root / "docs" / "logs.md").read_text(encoding="utf-8")
    table = text.split("<!-- readers:", 1)[1].split("\n\n", 1)[0].splitlines()[3:]
    assert table == [f"| `{reader.name}` | {reader.about} |" for reader in readers.all()]


def test_the_numbers_in_the_rules_are_those_of_the_code(root: Path) -> None:
    text = (root / "docs" / "logs.md").read_text(encoding="utf-8")
    assert (BEYOND_BEGINNING, GAP) == (0.05, 10)
    assert "first 5 % of their steps, and at most ten logging intervals" in text


def test_the_names_in_the_table_of_groups_are_recognised() -> None:
    for path in ("log_attempt0.csv", "run_resumed.csv", "restart2/log.csv", "version_0/metrics.csv"):
        attempt = names.attempt_in(path)
        assert attempt is not None
        assert attempt.rule in names.ATTEMPTS
    for path in ("metrics_part1.csv", "m_0-500.csv", "log.1.csv"):
        piece = names.attempt_in(path)
        assert piece is not None
        assert piece.rule not in names.ATTEMPTS
