"""The comparison's tables as Markdown and LaTeX, to paste into notes and papers."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from tokenaxis.comparison import quantities as q
from tokenaxis.comparison.answers import Answer, Answers
from tokenaxis.comparison.tables import Field, Table
from tokenaxis.errors import printable

#: (run, (answer, its text) per target)
Matrix = list[tuple[str, list[tuple[Answer | None, str]]]]
_WORDS = {"unreachable": "unreachable", "not_available": "no answer"}
_READ_BY_MARKDOWN = re.compile(r"([\\`*_{}\[\]<>|#~])")
_LATEX = {
    "\\": r"\textbackslash{}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    # in LaTeX's oldest font encoding these three print as other characters
    "<": r"\textless{}",
    ">": r"\textgreater{}",
    "|": r"\textbar{}",
    **{character: "\\" + character for character in "&%$#_{}"},
}
_LATEX_TABLE = str.maketrans(_LATEX)


def matrix(answers: Answers) -> Matrix:
    """What `markdown` and `latex` both write."""
    rows = []
    for run in answers.runs:
        cells = [answers.cells.get((run, target)) for target in answers.targets]
        rows.append((run, [(cell, _cell(cell)) for cell in cells]))
    return rows


def markdown(answers: Answers, rows: Matrix | None = None) -> bytes:
    """A pipe table: tokens and interval per cell, predictions marked with a tilde. `rows`: `matrix`, if at hand."""
    header = ["run", *(f"{q.target(target)} nats/token" for target in answers.targets)]
    lines = [_pipes(header), _pipes(["---", *("---:" for _ in answers.targets)])]
    for run, cells in matrix(answers) if rows is None else rows:
        lines.append(_pipes([_markdown_text(run), *("~" * _is_predicted(cell) + text for cell, text in cells)]))
    return ("\n".join([*lines, "", _note(answers, "~ predicted")]) + "\n").encode("utf-8")


def latex(answers: Answers, rows: Matrix | None = None) -> bytes:
    """A tabular in the style of the package booktabs; every character that LaTeX reads is escaped."""
    columns = "l" + "r" * len(answers.targets)
    header = " & ".join(["run", *(q.target(target) for target in answers.targets)])
    lines = [
        f"% {_note(answers, 'a star marks a prediction')}",
        f"\\begin{{tabular}}{{{columns}}}",
        "\\toprule",
        header + r" \\",
    ]
    lines.append(r"\midrule")
    for run, cells in matrix(answers) if rows is None else rows:
        texts = [text.replace(q.MISSING, "--") + "$^*$" * _is_predicted(cell) for cell, text in cells]
        lines.append(" & ".join([latex_text(run), *texts]) + r" \\")
    return ("\n".join([*lines, r"\bottomrule", r"\end{tabular}"]) + "\n").encode("utf-8")


#: (field, its values, their texts) of each column that holds anything
Shown = list[tuple[Field, list[Any], list[str]]]


def shown(table: Table, columns: Sequence[list[Any]] | None = None) -> Shown:
    """The columns that hold anything, as values and as text: what `table_markdown` and `table_latex` both write."""
    pairs = zip(table.fields, table.columns() if columns is None else columns, strict=True)
    return [
        (field, column, [_value(value) for value in column])
        for field, column in pairs
        if any(value is not None and value != "" for value in column)
    ]


def table_markdown(table: Table, found: Shown | None = None) -> bytes:
    """A pipe table of the columns that hold anything, then what each column is. `found`: `shown`, if at hand."""
    found = shown(table) if found is None else found
    fields = [field for field, _, _ in found]
    lines = [_pipes([_markdown_text(field.name) for field in fields] or ["nothing"])]
    lines.append(_pipes(["---" if field.kind == "text" else "---:" for field in fields] or ["---"]))
    texts = [_each(_markdown_text, values, texts) for _, values, texts in found]
    lines += [_pipes(row) for row in zip(*texts, strict=True)] if found else [_pipes([]) for _ in table.rows]
    lines += ["", *(f"- {_markdown_text(field.name)}: {_markdown_text(field.about)}" for field in fields)]
    return ("\n".join(lines) + "\n").encode("utf-8")


def table_latex(table: Table, found: Shown | None = None) -> bytes:
    """A booktabs tabular of the columns that hold anything; what each is stands in comments above it."""
    found = shown(table) if found is None else found
    fields = [field for field, _, _ in found]
    columns = "".join("l" if field.kind == "text" else "r" for field in fields) or "l"
    lines = [f"% {printable(field.name)}: {printable(field.about)}" for field in fields]
    lines += [f"\\begin{{tabular}}{{{columns}}}", "\\toprule"]
    lines.append(" & ".join(latex_text(field.name) for field in fields) + r" \\")
    lines.append(r"\midrule")
    texts = [_each(latex_text, values, map(_latex_number, values, texts)) for _, values, texts in found]
    lines += [" & ".join(row) + r" \\" for row in zip(*texts, strict=True)] if found else [r" \\" for _ in table.rows]
    return ("\n".join([*lines, r"\bottomrule", r"\end{tabular}"]) + "\n").encode("utf-8")


def _each(escape: Callable[[str], str], values: list[Any], texts: Iterable[str]) -> list[str]:
    """`texts`, those of text escaped; a text that occurs again is not escaped again."""
    known: dict[str, str] = {}
    found = []
    for value, text in zip(values, texts, strict=True):
        if type(value) is not str:
            found.append(text)
            continue
        if value not in known:
            known[value] = escape(text)
        found.append(known[value])
    return found


def _value(value: Any) -> str:
    """Four significant digits, counts whole, nothing for null."""
    if type(value) is str:
        return value
    if value is None or (isinstance(value, float) and not math.isfinite(value)):
        return ""
    if isinstance(value, float):
        return q.exact(value) if value == int(value) and abs(value) < 1e6 else f"{value:.4g}"
    if isinstance(value, bool):
        return "yes" if value else "no"
    return q.exact(value) if isinstance(value, int) else str(value)


def _latex_number(value: Any, text: str) -> str:
    """Powers of ten and minus signs as LaTeX sets them; other texts stay."""
    if type(value) is float and "e" in text:
        digits, _, power = text.partition("e")
        return f"${digits}\\times 10^{{{int(power)}}}$"
    return f"${text}$" if type(value) in (float, int) and text.startswith("-") else text


def latex_text(text: str) -> str:
    """`text` as LaTeX prints it, on one line. A bracket or star at its beginning is no argument of the line before."""
    shown = printable(text).translate(_LATEX_TABLE)
    return "{}" + shown if shown.startswith(("[", "*")) else shown


def _markdown_text(text: str) -> str:
    escaped = _READ_BY_MARKDOWN.sub(r"\\\1", printable(text))
    return escaped.replace("&", "&amp;")  # &lt; would be read as a character


def _pipes(cells: Sequence[str]) -> str:
    return "| " + " | ".join(cells) + " |"


def _cell(cell: Answer | None) -> str:
    if cell is None:
        return q.MISSING
    if not cell.answered:
        return _WORDS.get(cell.status, q.MISSING)
    return f"{q.short(cell.tokens)} {q.interval(cell.low, cell.high)}".rstrip()


def _is_predicted(cell: Answer | None) -> bool:
    return cell is not None and cell.answered and cell.status == "predicted"


def _note(answers: Answers, mark: str) -> str:
    return f"Tokens to each target loss (nats per token) with the {q.percent(answers.level)} interval; {mark}."
