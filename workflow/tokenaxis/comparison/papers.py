"""The comparison's tables as Markdown and LaTeX, to paste into notes and papers."""

from __future__ import annotations

import math
import re
from typing import Any

from tokenaxis.comparison import quantities as q
from tokenaxis.comparison.answers import Answer, Answers
from tokenaxis.comparison.tables import Table
from tokenaxis.errors import printable

_WORDS = {"unreachable": "unreachable", "not_available": "no answer"}
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


def markdown(answers: Answers) -> bytes:
    """A pipe table: tokens and interval per cell, predictions marked with a tilde."""
    header = ["run", *(f"{q.target(target)} nats/token" for target in answers.targets)]
    lines = [_pipes(header), _pipes(["---", *("---:" for _ in answers.targets)])]
    for run in answers.runs:
        cells = (answers.cells.get((run, target)) for target in answers.targets)
        lines.append(_pipes([_markdown_text(run), *(_cell(cell, "~") for cell in cells)]))
    return ("\n".join([*lines, "", _note(answers, "~ predicted")]) + "\n").encode("utf-8")


def latex(answers: Answers) -> bytes:
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
    for run in answers.runs:
        cells = (answers.cells.get((run, target)) for target in answers.targets)
        lines.append(" & ".join([latex_text(run), *(_latex_cell(cell) for cell in cells)]) + r" \\")
    return ("\n".join([*lines, r"\bottomrule", r"\end{tabular}"]) + "\n").encode("utf-8")


def table_markdown(table: Table) -> bytes:
    """A pipe table of the columns that hold anything, then what each column is."""
    fields = _filled(table)
    lines = [_pipes([_markdown_text(field.name) for field in fields] or ["nothing"])]
    lines.append(_pipes(["---" if field.kind == "text" else "---:" for field in fields] or ["---"]))
    lines += [_pipes([_markdown_text(_value(row[field.name])) for field in fields]) for row in table.rows]
    lines += ["", *(f"- {_markdown_text(field.name)}: {_markdown_text(field.about)}" for field in fields)]
    return ("\n".join(lines) + "\n").encode("utf-8")


def table_latex(table: Table) -> bytes:
    """A booktabs tabular of the columns that hold anything; what each is stands in comments above it."""
    fields = _filled(table)
    columns = "".join("l" if field.kind == "text" else "r" for field in fields) or "l"
    lines = [f"% {printable(field.name)}: {printable(field.about)}" for field in fields]
    lines += [f"\\begin{{tabular}}{{{columns}}}", "\\toprule"]
    lines.append(" & ".join(latex_text(field.name) for field in fields) + r" \\")
    lines.append(r"\midrule")
    lines += [" & ".join(_latex_value(row[field.name]) for field in fields) + r" \\" for row in table.rows]
    return ("\n".join([*lines, r"\bottomrule", r"\end{tabular}"]) + "\n").encode("utf-8")


def _filled(table: Table) -> list[Any]:
    return [field for field in table.fields if any(row[field.name] not in (None, "") for row in table.rows)]


def _value(value: Any) -> str:
    """Four significant digits, counts whole, nothing for null."""
    if value is None or (isinstance(value, float) and not math.isfinite(value)):
        return ""
    if isinstance(value, float):
        return q.exact(value) if value == int(value) and abs(value) < 1e6 else f"{value:.4g}"
    if isinstance(value, bool):
        return "yes" if value else "no"
    return q.exact(value) if isinstance(value, int) else str(value)


def _latex_value(value: Any) -> str:
    text = _value(value)
    if isinstance(value, float) and "e" in text:
        digits, _, power = text.partition("e")
        return f"${digits}\\times 10^{{{int(power)}}}$"
    if isinstance(value, int | float) and text.startswith("-"):
        return f"${text}$"
    return latex_text(text)


def latex_text(text: str) -> str:
    """`text` as LaTeX prints it, on one line. A bracket or star at its beginning is no argument of the line before."""
    shown = "".join(_LATEX.get(character, character) for character in printable(text))
    return "{}" + shown if shown.startswith(("[", "*")) else shown


def _markdown_text(text: str) -> str:
    escaped = re.sub(r"([\\`*_{}\[\]<>|#~])", r"\\\1", printable(text))
    return escaped.replace("&", "&amp;")  # &lt; would be read as a character


def _pipes(cells: list[str]) -> str:
    return "| " + " | ".join(cells) + " |"


def _cell(cell: Answer | None, mark: str) -> str:
    if cell is None:
        return q.MISSING
    if not cell.answered:
        return _WORDS.get(cell.status, q.MISSING)
    shown = (mark if cell.status == "predicted" else "") + q.short(cell.tokens)
    return f"{shown} {q.interval(cell.low, cell.high)}".rstrip()


def _latex_cell(cell: Answer | None) -> str:
    text = _cell(cell, "").replace(q.MISSING, "--")
    return text + "$^*$" if cell is not None and cell.answered and cell.status == "predicted" else text


def _note(answers: Answers, mark: str) -> str:
    return f"Tokens to each target loss (nats per token) with the {q.percent(answers.level)} interval; {mark}."
