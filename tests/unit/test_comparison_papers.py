"""Tables for notes and papers: every character of a name is text."""

from __future__ import annotations

import pytest

from tests.unit.test_comparison_fake_sweep import make_run, make_sweep, with_id
from tokenaxis.comparison.answers import collect
from tokenaxis.comparison.model import Sweep
from tokenaxis.comparison.papers import latex, latex_text, markdown


def test_markdown_has_a_row_per_run_and_marks_predictions() -> None:
    lines = markdown(collect(make_sweep(), None)).decode().splitlines()
    assert lines[0] == "| run | 2.00 nats/token | 1.80 nats/token | 1.60 nats/token | 1.40 nats/token |"
    assert lines[2].startswith("| gpt\\_2Kbs | 689K [675K, 703K] | ")
    assert "| ~6.37M [6.06M, 6.70M] |" in lines[2]
    assert len(lines) == 2 + 8 + 2


def test_latex_is_a_booktabs_tabular() -> None:
    lines = latex(collect(make_sweep(), None)).decode().splitlines()
    assert lines[1:4] == ["\\begin{tabular}{lrrrr}", "\\toprule", "run & 2.00 & 1.80 & 1.60 & 1.40 \\\\"]
    assert lines[5].startswith("gpt\\_2Kbs & 689K [675K, 703K] & ")
    assert lines[5].endswith("6.37M [6.06M, 6.70M]$^*$ \\\\")
    assert lines[-1] == "\\end{tabular}"


@pytest.mark.parametrize(
    ("text", "shown"),
    [("a_b%", "a\\_b\\%"), ("\\input{x}", "\\textbackslash{}input\\{x\\}"), ("~$#&^", None), ("a\nb", None)],
)
def test_what_latex_would_read_is_escaped(text: str, shown: str | None) -> None:
    found = latex_text(text)
    assert found == shown or shown is None
    assert "\n" not in found
    stripped = found
    for escape in ("\\textbackslash{}", "\\textasciitilde{}", "\\textasciicircum{}", *(f"\\{c}" for c in "&%$#_{}")):
        stripped = stripped.replace(escape, "")
    assert not set(stripped) & set("\\~^&%$#_{}")


def test_a_pipe_in_a_name_does_not_end_its_cell() -> None:
    text = markdown(collect(Sweep("s", [with_id(make_run("a"), "x|y")]), None)).decode()
    assert "| x\\|y |" in text


def test_unreachable_targets_are_words() -> None:
    text = markdown(collect(Sweep("s", [make_run("a", targets=(1.6, 1.0))]), None)).decode()
    assert "| unreachable |" in text
