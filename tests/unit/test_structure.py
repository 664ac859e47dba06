"""The structure of the library: which way imports point, what they may weigh, and that fingerprints see all code."""

from __future__ import annotations

import ast
import functools
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tokenaxis.pipeline import fingerprints
from tokenaxis.pipeline.spec import PER_RUN, STAGES

PACKAGE = Path(__file__).resolve().parents[2] / "workflow" / "tokenaxis"
HEAVY = ("pandas", "scipy", "matplotlib", "torch", "plotly")

#: lower layers never import higher ones (design: errors, columns <- readers, numeric <- facts, passport, report <-
#: store <- stages and the pipeline)
LAYERS = [
    ["errors", "columns", "units", "memory"],
    ["declarations", "series"],
    ["readers", "axis", "laws", "smoothing", "crossing", "targets", "stability", "windows", "backtest"],
    ["facts", "shapes", "hardware", "conventions", "redaction", "passport", "export", "comparison"],
    ["arrow", "store", "params"],
    ["sweep", "stages", "pipeline"],
]
#: arithmetic: arrays in, dataclasses out
NUMERIC = ("axis", "laws", "smoothing", "crossing", "targets", "stability", "windows", "backtest", "series")


def modules() -> list[Path]:
    return sorted(PACKAGE.rglob("*.py"))


@functools.cache
def imports_of(path: Path) -> list[tuple[str, bool]]:
    """(dotted name, whether at module level) of everything that a module imports at run time."""
    found: list[tuple[str, bool]] = []

    def visit(node: ast.AST, top: bool) -> None:
        for child in ast.iter_child_nodes(node):
            if isinstance(child, ast.If) and "TYPE_CHECKING" in ast.dump(child.test):
                continue
            if isinstance(child, ast.Import):
                found.extend((alias.name, top) for alias in child.names)
            elif isinstance(child, ast.ImportFrom) and child.module and child.level == 0:
                found.append((child.module, top))
                found.extend((f"{child.module}.{alias.name}", top) for alias in child.names)
            visit(child, top and not isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda))

    visit(ast.parse(path.read_text(encoding="utf-8")), True)
    return found


def part_of(dotted: str) -> str | None:
    """The first name below tokenaxis, or None for other packages."""
    parts = dotted.split(".")
    return parts[1] if parts[0] == "tokenaxis" and len(parts) > 1 else None


def own_part(path: Path) -> str:
    return path.relative_to(PACKAGE).parts[0].removesuffix(".py")


def test_every_part_of_the_library_has_a_layer() -> None:
    known = {name for layer in LAYERS for name in layer}
    parts = {own_part(path) for path in modules() if path != PACKAGE / "__init__.py"}
    assert parts <= known, f"say in LAYERS where these belong: {sorted(parts - known)}"


@pytest.mark.parametrize("path", modules(), ids=lambda path: str(path.relative_to(PACKAGE)))
def test_imports_point_down_the_layers(path: Path) -> None:
    rank = {name: number for number, layer in enumerate(LAYERS) for name in layer}
    if own_part(path) not in rank:
        return
    for dotted, _ in imports_of(path):
        part = part_of(dotted)
        if part in rank:
            assert rank[part] <= rank[own_part(path)], f"{own_part(path)} must not import tokenaxis.{part}"


@pytest.mark.parametrize("path", modules(), ids=lambda path: str(path.relative_to(PACKAGE)))
def test_no_module_imports_a_heavy_library_when_it_is_imported(path: Path) -> None:
    heavy = [dotted for dotted, top in imports_of(path) if top and dotted.split(".")[0] in HEAVY]
    assert not heavy, "import it inside the function that needs it"


@pytest.mark.parametrize("name", NUMERIC)
def test_numeric_modules_know_no_files_and_no_command_line(name: str) -> None:
    for path in modules():
        if own_part(path) == name:
            outside = {dotted for dotted, _ in imports_of(path)} & {"argparse", "yaml", "tokenaxis.store"}
            assert not outside, f"{path.relative_to(PACKAGE)} imports {outside}"


def reachable(start: Path) -> Iterator[Path]:
    """Modules of the library that a module imports, directly or not."""
    seen, todo = set(), [start]
    while todo:
        path = todo.pop()
        if path in seen:
            continue
        seen.add(path)
        yield path
        if path.relative_to(PACKAGE).parts[0] in ("pipeline", "params.py"):
            continue  # it decides what is computed; what it imports for that decides no number
        for dotted, _ in imports_of(path):
            parts = dotted.split(".")
            if parts[0] != "tokenaxis" or len(parts) < 2:
                continue
            target = PACKAGE.joinpath(*parts[1:])
            candidates = (target.with_suffix(".py"), target / "__init__.py")
            todo += [candidate for candidate in candidates if candidate.exists()]


#: bookkeeping that decides what is computed, not which numbers come out
BOOKKEEPING = {"pipeline", "sweep", "params.py", "__init__.py"}


@pytest.mark.parametrize("stage", sorted(STAGES))
def test_a_stage_fingerprint_covers_every_module_that_it_imports(stage: str) -> None:
    covered = set(fingerprints.code_files(STAGES[stage]))
    missing = {
        str(path.relative_to(PACKAGE))
        for path in reachable(PACKAGE / "stages" / f"{stage}.py")
        if path not in covered and path.relative_to(PACKAGE).parts[0] not in BOOKKEEPING
        and not (path.parent == PACKAGE / "stages" and path.name in ("__init__.py", "fits.py", "conventions.py"))
    }  # fmt: skip
    assert not missing, f"add to `code` of {stage} in pipeline/spec.py: {sorted(missing)}"


@pytest.mark.parametrize("stage", sorted(STAGES))
def test_every_name_in_a_stage_fingerprint_exists(stage: str) -> None:
    gone = [name for name in STAGES[stage].code if not (PACKAGE / name).exists()]
    assert not gone, f"{gone} in pipeline/spec.py"


@pytest.mark.parametrize("stage", PER_RUN)
def test_a_per_run_script_starts_without_heavy_imports(stage: str, root: Path) -> None:
    code = (
        f"import sys; sys.path.insert(0, 'workflow'); import tokenaxis.pipeline.cli, tokenaxis.stages.{stage}; "
        f"print([name for name in {HEAVY!r} if name in sys.modules])"
    )
    run = subprocess.run([sys.executable, "-c", code], cwd=root, capture_output=True, text=True, check=True)
    assert run.stdout.strip() == "[]"


def test_parsing_the_snakefile_needs_neither_numpy_nor_pyarrow(root: Path) -> None:
    code = (
        "import sys; sys.path.insert(0, 'workflow'); import tokenaxis.pipeline.engine; from tokenaxis import readers; "
        "readers.all(); print([name for name in ('numpy', 'pyarrow', 'pandas', 'yaml') if name in sys.modules])"
    )
    run = subprocess.run([sys.executable, "-c", code], cwd=root, capture_output=True, text=True, check=True)
    assert run.stdout.strip() == "[]"
