"""Figures that need not be drawn again: their data, the code, matplotlib and the files are what they were."""

from __future__ import annotations

import contextlib
import dataclasses
import hashlib
import importlib.util
import json
import marshal
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tokenaxis.comparison import files
from tokenaxis.comparison.answers import Answer, Answers
from tokenaxis.comparison.figures.style import Drawing, Palette, drawing_style, rendered

if TYPE_CHECKING:
    from tokenaxis.comparison.files import Folder

#: the fields of an answer that any figure shows
_DRAWN = ("run", "target", "status", "loss", "tokens", "low", "high", "level", "horizon")


class Keeper:
    """What is known of the figures that were written last.

    Args:
        path: where it is kept; None: every figure is drawn.
        code: digest of the code that draws.
        kinds: formats that are written.
    """

    def __init__(self, path: Path | None, code: str, kinds: tuple[str, ...]):
        self.path, self.code, self.kinds = path, code, kinds
        self.known = {} if path is None else _load(path)
        self.noted: dict[str, Any] = {}
        self._style = contextlib.ExitStack()
        self._styled = False

    def __enter__(self) -> Keeper:
        return self

    def __exit__(self, *error: object) -> None:
        self._style.close()

    def figure(self, name: str, data: Any, draw: Callable[[], Drawing | None], folder: Folder) -> Drawing | None:
        """Write the figure `name` of `data` into `folder`, or leave it there. -> it; None where there is none."""
        key = None if self.path is None else self._key(name, data)
        former = self.known.get(name)
        if former is not None and former["key"] == key and (kept := self._kept(name, former, folder)) is not None:
            self.noted[name] = former
            return kept
        if not self._styled:  # matplotlib is imported for the first figure that is drawn
            self._style.enter_context(drawing_style())
            self._styled = True
        drawing = draw()
        if drawing is None:
            return None
        drawing = _written(drawing, folder, self.kinds)
        hashes = {kind: folder.hashes[f"figures/{name}.{kind}"] for kind in self.kinds}
        texts = {"title": drawing.title, "caption": drawing.caption, "alt": drawing.alt}
        self.noted[name] = {"key": key, "files": hashes} | texts
        return drawing

    def save(self) -> None:
        """Note what was written."""
        if self.path is not None:
            content = json.dumps(self.noted, sort_keys=True).encode("ascii")
            files.write(self.path, hashlib.sha256(content).hexdigest().encode() + b"\n" + content)

    def _kept(self, name: str, former: dict[str, Any], folder: Folder) -> Drawing | None:
        if set(former["files"]) != set(self.kinds) or "svg" not in self.kinds:
            return None  # the page needs the svg
        contents = {kind: folder.keep(f"figures/{name}.{kind}", former["files"][kind]) for kind in self.kinds}
        if any(content is None for content in contents.values()):
            return None
        return Drawing(name, former["title"], former["caption"], former["alt"], None, contents["svg"] or b"")

    def _key(self, name: str, data: Any) -> str:
        # version 2 of the format has no references: equal data are equal bytes
        content = marshal.dumps([name, self.code, matplotlib_version(), self.kinds, plain(data)], 2)
        return hashlib.sha256(content).hexdigest()


def _written(drawing: Drawing, folder: Folder, kinds: tuple[str, ...]) -> Drawing:
    figure = drawing.figure
    assert figure is not None
    svg = rendered(figure, "svg")
    for kind in kinds:
        folder.write(f"figures/{drawing.name}.{kind}", svg if kind == "svg" else rendered(figure, kind))
    return dataclasses.replace(drawing, figure=None, svg=svg)


def _load(path: Path) -> dict[str, Any]:
    try:
        expected, _, content = path.read_bytes().partition(b"\n")
    except OSError:
        return {}
    return json.loads(content) if hashlib.sha256(content).hexdigest().encode() == expected else {}


def matplotlib_version() -> str:
    """The version that would be imported, without importing it."""
    spec = importlib.util.find_spec("matplotlib")
    if spec is None or spec.origin is None:
        return ""
    file = Path(spec.origin).with_name("_version.py")
    return hashlib.sha256(file.read_bytes()).hexdigest() if file.is_file() else spec.origin


def plain(data: Any) -> Any:
    """Nested tuples of numbers, texts and bytes that stand for `data`; of an answer only what figures show."""
    if isinstance(data, float):
        return float(data)  # not numpy's own kind of it
    if data is None or isinstance(data, str | int | bytes):
        return data
    if isinstance(data, Answer):
        return tuple(getattr(data, name) for name in _DRAWN)
    if isinstance(data, Answers):
        return plain((data.runs, data.targets, list(data.cells.values())))
    if isinstance(data, Palette):
        return plain(data.runs)
    if isinstance(data, dict):
        return tuple((plain(key), plain(value)) for key, value in data.items())
    if isinstance(data, list | tuple):
        return tuple(map(plain, data))
    if dataclasses.is_dataclass(data):
        return tuple(plain(getattr(data, field.name)) for field in dataclasses.fields(data))
    return data.dtype.str, data.shape, data.tobytes()  # an array
