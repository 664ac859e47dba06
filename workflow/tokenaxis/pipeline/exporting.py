"""What the export scripts share: which runs, from which artifacts, and one line for an expected failure."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from tokenaxis import params, passport, store
from tokenaxis.errors import TokenAxisError
from tokenaxis.export.run import ExportedRun, without_price

#: facts of a token axis that no export takes along
_PRICE = "price"


def parser(prog: str, about: str) -> argparse.ArgumentParser:
    """Options of an export script."""
    options = argparse.ArgumentParser(
        prog=f"scripts/{prog}.py", description=about, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    options.add_argument("runs", nargs="+", metavar="RUN|PASSPORT", help="a run's id, or its passport's path")
    options.add_argument("--params", type=Path, default=Path("params.yaml"), help="says which sweep RUN belongs to")
    return options


def main(work: Callable[[], Iterator[str]]) -> int:
    """Print each line that `work` yields. -> exit status: 0, or 2 for an expected failure."""
    try:
        for line in work():
            print(line)
    except TokenAxisError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    return 0


def passport_path(name: str, parameters: Path) -> Path:
    """results/<sweep>/passports/<run>.json of a run's id, or the path itself.

    Raises:
        TokenAxisError: there is no such passport.
    """
    if name.endswith(".json"):
        path = Path(name)
        if not path.is_file():
            raise TokenAxisError("there is no such passport", file=name)
        return path
    sweep = params.load(parameters, Path("results"))["sweep"]
    folder = Path("results") / sweep / "passports"
    path = folder / f"{name}.json"
    if not path.is_file():
        known = ", ".join(sorted(file.stem for file in folder.glob("*.json"))) or "none yet: run the pipeline first"
        raise TokenAxisError(f"the sweep {sweep} has no passport of a run {name!r}", remedy=f"its runs: {known}")
    return path


def read_passport(path: Path) -> dict[str, Any]:
    """A passport.

    Raises:
        TokenAxisError: the file is no passport of ours.
    """
    document = store.read_json(path)
    if not isinstance(document, dict) or document.get("schema") != passport.SCHEMA:
        raise TokenAxisError(f"is no passport ({passport.SCHEMA})", file=str(path))
    return document


def read_run(path: Path) -> tuple[ExportedRun, dict[str, Any]]:
    """(what may leave, metadata of its token axis) of the run with the passport at `path`.

    Raises:
        TokenAxisError: passport or token axis are missing or damaged.
    """
    document = without_price(read_passport(path))
    axis = path.parent.parent / "token_axis" / f"{path.stem}.parquet"
    if store.parquet_fingerprint(axis) is None:
        raise TokenAxisError("the token axis beside this passport is missing or damaged", file=str(axis))
    columns, meta = store.read_parquet(axis)
    digits = document["lineage"]["parameters"]["passports"]["significant_digits"]
    meta["facts"] = [fact for fact in meta["facts"] if not fact["key"].startswith(_PRICE)]
    return ExportedRun(document, passport.to_markdown(document, digits), columns, meta["columns"]), meta
