"""The table of runs and targets as Markdown and LaTeX, to paste into notes and papers."""

from __future__ import annotations

import re

from tokenaxis.comparison import quantities as q
from tokenaxis.comparison.answers import Answer, Answers
from tokenaxis.errors import printable

_WORDS = {"unreachable": "unreachable", "not_available": "no answer"}
_LATEX = {
    "\\": r"\textbackslash{}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
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


def latex_text(text: str) -> str:
    """`text` as LaTeX prints it, on one line."""
    return "".join(_LATEX.get(character, character) for character in printable(text))


def _markdown_text(text: str) -> str:
    return re.sub(r"([\\`*_{}\[\]<>|#~])", r"\\\1", printable(text))


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
