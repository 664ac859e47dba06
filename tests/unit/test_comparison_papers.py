"""Tables for notes and papers: every character of a name is text."""

from __future__ import annotations

import re

import pytest

from tests.unit.test_comparison_fake_sweep import make_run, make_sweep, with_id
from tokenaxis.comparison.answers import collect
from tokenaxis.comparison.model import Sweep
from tokenaxis.comparison.papers import latex, latex_text, markdown, table_latex, table_markdown
from tokenaxis.comparison.tables import Field, Table


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


#: what LaTeX or Markdown reads as more than text
NASTY = ["<script>alert(1)</script>", "a|b", "\\input{/etc/passwd}", "$x$ & 100% #1_2~^", "[x](javascript:alert(1))",
         "*star", "[bracket", "&lt;b&gt;", "line\nbreak", "実験 é", "=1+1", "`code`"]  # fmt: skip
FIELDS = (Field("run", "text", "run id"), Field("tokens", "number", "tokens, a_b"), Field("rows", "integer", "rows"),
          Field("blank", "text", "never filled"), Field("chosen", "flag", "whether"))  # fmt: skip


def nasty_table() -> Table:
    rows = [
        {"run": name, "tokens": 1.5e9 * n, "rows": n, "blank": None, "chosen": n == 1} for n, name in enumerate(NASTY)
    ]
    return Table("nasty", FIELDS, rows)


def test_a_generic_markdown_table_has_a_line_per_row_and_the_meaning_of_its_columns() -> None:
    lines = table_markdown(nasty_table()).decode().splitlines()
    assert lines[0] == "| run | tokens | rows | chosen |"  # the empty column is left out
    assert lines[1] == "| --- | ---: | ---: | ---: |"
    assert len(lines) == 2 + len(NASTY) + 1 + 4
    for line in lines[2 : 2 + len(NASTY)]:
        assert len(re.findall(r"(?<!\\)\|", line)) == 5, line
    text = "\n".join(lines)
    assert "<script" not in text.replace("\\<", "") and "&lt;" not in text and "](" not in text.replace("\\](", "")
    assert "- tokens: tokens, a\\_b" in lines


def test_a_generic_latex_table_has_a_line_per_row_and_nothing_that_latex_runs() -> None:
    lines = table_latex(nasty_table()).decode().splitlines()
    first = lines.index("\\midrule") + 1
    body = lines[first : first + len(NASTY)]
    assert lines[first + len(NASTY)] == "\\bottomrule"
    for line in body:
        assert line.endswith(" \\\\") and len(re.findall(r"(?<!\\)&", line)) == 3, line
        assert not line.lstrip().startswith(("[", "*")), "an argument of the line break before it"
        assert "\\input" not in line
    assert "$1.5\\times 10^{9}$" in body[1]


def test_a_table_without_rows_is_still_a_table() -> None:
    empty = Table("empty", FIELDS, [])
    assert table_markdown(empty).decode().startswith("| nothing |\n| --- |")
    assert "\\begin{tabular}{l}" in table_latex(empty).decode()


def test_negative_numbers_have_a_minus_in_latex() -> None:
    table = Table("t", (Field("difference", "number", "nats"),), [{"difference": -0.03125}])
    assert "$-0.03125$ \\\\" in table_latex(table).decode()
    assert "| -0.03125 |" in table_markdown(table).decode()
