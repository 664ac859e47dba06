"""Whatever YAML a refusal or a notice shows works as it stands, pasted into an empty configs/sweeps/<sweep>.yaml."""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path

import pytest

from tokenaxis import params
from tokenaxis.errors import TokenAxisError
from tokenaxis.stages.token_axis import axis_of
from tokenaxis.sweep import declared
from tokenaxis.sweep.discover import discover

PACKAGE = Path(__file__).resolve().parents[2] / "workflow" / "tokenaxis"
SNIPPET = re.compile(r"`([a-z_]+: [^`]*)`")


def table(header: str, *columns: str, rows: int = 30) -> str:
    """`columns` are expressions in `n`, the number of a row."""
    cells = [compile(column, "column", "eval") for column in columns]
    return "\n".join([header, *(",".join(str(eval(cell, {"n": n})) for cell in cells) for n in range(rows))]) + "\n"


#: what is refused, or said, and what comes after the remedy was pasted: None = a token axis
LOGS: dict[str, tuple[dict[str, str], str | None]] = {
    "no batch": ({"run.csv": table("step,train_loss", "n", "4 - n / 100")}, None),
    "no batch, but a folder's": ({"exp_2Kbs/run.csv": table("step,train_loss", "n", "4 - n / 100")}, None),
    "malformed batch": ({"run_1.2.3Mbs.csv": table("step,train_loss", "n", "4 - n / 100")}, None),
    "two batches": ({"run_1Mbs_2Mbs.csv": table("step,train_loss", "n", "4 - n / 100")}, None),
    "no loss": ({"run_1Kbs.csv": table("step,my loss", "n", "4 - n / 100")}, None),
    "no step": ({"run_1Kbs.csv": table("my iteration,train_loss", "n", "4 - n / 100")}, None),
    "a loss called no": ({"run_1Kbs.csv": table("step,'no' loss: x", "n", "4 - n / 100")}, None),
    "fractional steps": (
        {"run_1Kbs.csv": table("step,train_loss", "n / 7 + .01", "4.0")},
        "has no column 'global_step'",
    ),
    "huge steps": ({"run_1Kbs.csv": table("step,train_loss", "10**17 + n", "4.0")}, "has no column 'global_step'"),
    "negative tokens": (
        {"run_1Kbs.csv": table("step,tokens,train_loss", "n", "n * 9 - 50", "4.0")},
        "has no column 'consumed_tokens'",
    ),
    "two writers": (
        {"run_1Kbs.csv": table("step,train_loss", "n // 2 + 500 * (n % 2)", "4.0", rows=200)},
        "has no column 'global_step'",
    ),
    "batch column with holes": (
        {"run.csv": table("step,global_batch,train_loss", "n", "'' if n < 9 else 100 + n // 20", "4.0")},
        None,
    ),
    "an unknown log": ({"deep/my [1].log": "then we saw loss 3.25 in it\n" * 20}, "names a step and a loss"),
    "steps that may be tokens": ({"run_1Kbs.csv": table("step,train_loss", "(n + 1) * 65536", "4.0")}, None),
    "two validation losses": (
        {"run_1Kbs.csv": table("step,eval/a/loss,eval/b/loss", "n", "4 - n / 100", "4.1 - n / 100")},
        None,
    ),
    "a chosen loss": (
        {"run_1Kbs.csv": table("step,train_loss,loss", "n", "'' if n % 9 else 4.0", "4 - n / 100")},
        None,
    ),
}


@pytest.mark.parametrize("case", LOGS)
def test_the_yaml_of_a_remedy_can_be_pasted(case: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    files, after = LOGS[case]
    for name, text in files.items():
        (tmp_path / "logs" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "logs" / name).write_text(text, encoding="utf-8")
    snippets = SNIPPET.findall("\n".join(said_about(tmp_path / "logs")))
    assert snippets
    file = tmp_path / "configs" / "sweeps" / "mine.yaml"
    file.parent.mkdir(parents=True)
    for snippet in snippets:
        file.write_text(snippet + "\n", encoding="utf-8")
        found = discover(tmp_path / "logs", declared.load("mine"), [])
        assert len(found.runs) + len(found.refused) == 1
        if after is None:
            assert found.refused == []
            assert len(axis_of(tmp_path / "logs", record(found.runs[0]), "auto").columns["step"]) >= 20
        else:
            with pytest.raises(TokenAxisError, match=re.escape(after)):
                raise_refusal(tmp_path / "logs", found)


def record(run: object) -> dict:
    return json.loads(json.dumps(asdict(run)))  # type: ignore[call-overload]


def raise_refusal(logs: Path, found: object) -> None:
    for entry in found.refused:  # type: ignore[attr-defined]
        raise TokenAxisError(entry["reason"])
    axis_of(logs, record(found.runs[0]), "auto")  # type: ignore[attr-defined]


def said_about(logs: Path) -> list[str]:
    """Every remedy and warning about the logs of a folder."""
    found = discover(logs, declared.SweepDeclaration(), [])
    said = [entry["remedy"] or "" for entry in found.refused]
    for run in found.runs:
        try:
            said += [notice["message"] for notice in axis_of(logs, record(run), "auto").meta["warnings"]]
        except TokenAxisError as error:
            said.append(error.remedy or "")
    return said


def texts(path: Path) -> Iterator[str]:
    """String literals of a module but docstrings, those of f-strings with x in place of what is put in."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    documentation = {
        id(node.body[0].value)
        for node in ast.walk(tree)
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef)
        and node.body
        and isinstance(node.body[0], ast.Expr)
    }
    for node in ast.walk(tree):
        if isinstance(node, ast.JoinedStr):
            yield "".join(part.value if isinstance(part, ast.Constant) else "x" for part in node.values)
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in documentation:
            yield node.value


@pytest.mark.parametrize("part", ["readers", "axis", "sweep"])
def test_every_yaml_in_a_message_begins_with_a_key_of_the_top_of_a_sweeps_file(part: str) -> None:
    schema = json.loads((params.SCHEMAS / "sweep.schema.json").read_text(encoding="utf-8"))
    wrong = [
        f"{path.relative_to(PACKAGE)}: {snippet}"
        for path in sorted((PACKAGE / part).rglob("*.py"))
        for text in texts(path)
        for snippet in re.findall(r"`([a-z_]+):(?: |`|$)", text)
        if snippet not in schema["properties"] and snippet != "step"  # `step: N`, a line of a log
    ]
    assert wrong == []
