"""The readers that there are: one per module in readers/formats, which bears its name with underscores."""

from __future__ import annotations

import hashlib
import os
from functools import cache
from importlib import import_module

from tokenaxis.errors import TokenAxisError
from tokenaxis.readers.base import Reader

_FOLDER = os.path.dirname(os.path.abspath(__file__))


@cache
def all_readers() -> tuple[Reader, ...]:
    """Every reader, in the order of its module's name."""
    modules = sorted(file[:-3] for file in os.listdir(os.path.join(_FOLDER, "formats")) if file.endswith(".py"))
    return tuple(
        import_module(f"tokenaxis.readers.formats.{module}").READER for module in modules if not module.startswith("_")
    )


def by_name(name: str) -> Reader:
    """The reader of that name.

    Raises:
        TokenAxisError: there is none; the remedy lists those that there are.
    """
    module = name.replace("-", "_")
    if module.isidentifier() and module[0] != "_" and os.path.exists(os.path.join(_FOLDER, "formats", f"{module}.py")):
        return import_module(f"tokenaxis.readers.formats.{module}").READER  # to load all of them takes 50 ms
    names = ", ".join(reader.name for reader in all_readers())
    raise TokenAxisError(f"no reader is called {name!r}", remedy=f"format takes one of: {names}")


@cache
def code_digest() -> str:
    """sha256 of everything that decides how a file is recognised and read, so that caches notice a changed reader."""
    digest = hashlib.sha256()
    above = os.path.dirname(_FOLDER)
    files = [os.path.join(above, name) for name in ("columns.py", "units.py", "declarations.py")]
    for folder, folders, names in os.walk(_FOLDER):
        folders[:] = sorted(name for name in folders if name != "__pycache__")
        files += [os.path.join(folder, name) for name in sorted(names) if name.endswith(".py")]
    for file in files:
        with open(file, "rb") as stream:
            content = stream.read()
        digest.update(f"{os.path.relpath(file, above)} {len(content)}\n".encode())
        digest.update(content)
    return digest.hexdigest()
