"""How every figure looks: fixed fonts and colours, no global state left behind, the same bytes every time."""

from __future__ import annotations

import io
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from tokenaxis.comparison.png import png_bytes
from tokenaxis.comparison.quantities import elided, natural, short
from tokenaxis.errors import printable

if TYPE_CHECKING:
    import numpy as np
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

#: colour of light mode -> CSS variable of the page, so that one drawing serves light and dark
INK, MUTED, GRID, PAPER = "#1f2328", "#656d76", "#d8dee4", "#ffffff"
#: told apart by readers with any common colour vision, and on white as well as on near-black (their dark twins)
SERIES = (
    "#0b62b8", "#d1500a", "#0a8a5f", "#a03a92", "#b88a00", "#2aa5d6", "#7a4b1e", "#d6457a", "#6b7f00", "#5b4fd6",
)  # fmt: skip
OTHERS = "#9aa4ae"
MARKERS = ("o", "s", "D", "^", "v", "p", "h", "<", "d", "P")
CSS_VARIABLES = {INK: "ink", MUTED: "muted", GRID: "grid", PAPER: "paper", OTHERS: "others"} | {
    colour: f"series-{index}" for index, colour in enumerate(SERIES)
}
#: figures are drawn this wide (inches) at 100 dots per inch on screen, and at PNG_DPI in the png files
WIDTH, PNG_DPI = 9.0, 160
NAME_LENGTH = 30
#: more grey lines than this only blacken a figure
MOST_GREY = 200

_RC: dict[str, Any] = {
    "font.family": ["DejaVu Sans"],  # ships with matplotlib: the same shapes on every machine
    "font.size": 9.0,
    "axes.titlesize": 9.5,
    "axes.titleweight": "bold",
    "axes.titlelocation": "left",
    "axes.labelsize": 9.0,
    "axes.labelcolor": INK,
    "axes.edgecolor": MUTED,
    "axes.linewidth": 0.7,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "axes.axisbelow": True,
    "axes.titlecolor": INK,
    "grid.color": GRID,
    "grid.linewidth": 0.6,
    "text.color": INK,
    "xtick.color": MUTED,
    "ytick.color": MUTED,
    "xtick.labelcolor": INK,
    "ytick.labelcolor": INK,
    "xtick.labelsize": 8.5,
    "ytick.labelsize": 8.5,
    "legend.frameon": False,
    "legend.fontsize": 8.5,
    "lines.linewidth": 1.6,
    "figure.facecolor": PAPER,
    "axes.facecolor": "none",
    "savefig.facecolor": PAPER,
    "svg.fonttype": "none",  # text stays text: searchable, read aloud, small
    "svg.hashsalt": "tokenaxis",
    "text.parse_math": False,  # a run may be called lr_$x^2$
    "text.usetex": False,
    "path.simplify": True,
    "path.simplify_threshold": 0.25,
}


@dataclass(frozen=True)
class Drawing:
    """A finished figure: file name without extension, heading, caption in words, text for who cannot see it.

    `figure` until it is written, then its `svg`.
    """

    name: str
    title: str
    caption: str
    alt: str
    figure: Figure | None
    svg: bytes = b""


@contextmanager
def drawing_style() -> Iterator[None]:
    """matplotlib's defaults with this module's changes, whatever the user's own matplotlibrc says."""
    import matplotlib

    with warnings.catch_warnings():
        # names in scripts that DejaVu lacks: the svg's viewer has its own fonts, the png shows boxes
        warnings.filterwarnings("ignore", message="Glyph .* missing from")
        with matplotlib.rc_context():
            matplotlib.rcdefaults()
            matplotlib.rcParams.update(_RC)  # type: ignore[arg-type]
            yield


def new_figure(height: float, width: float = WIDTH) -> Figure:
    """An empty figure (inches) without pyplot and its global list of figures."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(width, height), dpi=PNG_DPI, layout="constrained")
    FigureCanvasAgg(figure)
    return figure


def rendered(figure: Figure, kind: str) -> bytes:
    """The figure as "svg", "png" or "pdf" without date, program or host in it.

    It is laid out the first time only: every format has the same places.
    """
    engine = figure.get_layout_engine()
    if engine is not None:
        engine.execute(figure)
        figure.set_layout_engine(None)  # not "none": with that engine a figure is drawn twice to be saved once
    if kind == "png":
        return _png(figure)
    metadata: dict[str, dict[str, Any]] = {
        "svg": {"Date": None, "Creator": None, "Format": None, "Type": None},
        "pdf": {"Creator": None, "Producer": None, "CreationDate": None},
    }
    out = io.StringIO() if kind == "svg" else io.BytesIO()  # svg is written in many small pieces of text
    figure.savefig(out, format=kind, dpi=100, metadata=metadata[kind])
    content = out.getvalue()
    return content.encode("utf-8") if isinstance(content, str) else content


def _png(figure: Figure) -> bytes:
    import numpy as np
    from matplotlib.backends.backend_agg import FigureCanvasAgg

    canvas = figure.canvas
    assert isinstance(canvas, FigureCanvasAgg)
    canvas.draw()
    return png_bytes(np.asarray(canvas.buffer_rgba())[:, :, :3], PNG_DPI)  # on paper, which nothing shines through


def shown_name(run: str) -> str:
    """A run's name for a label: one line, not too long."""
    return elided(printable(run), NAME_LENGTH)


def shown_runs(runs: Sequence[str], palette: Palette) -> set[str]:
    """The runs of a static figure: every coloured one, and of the grey ones at most MOST_GREY, evenly spaced."""
    grey = [run for run in runs if run not in palette]
    return {run for run in runs if run in palette} | set(grey[:: max(1, -(-len(grey) // MOST_GREY))])


class Palette:
    """A colour and a marker for the runs that matter most; every other run is grey.

    Attributes:
        runs: the runs that have a colour: the first ten of `highlighted`, most important first.
    """

    def __init__(self, highlighted: Sequence[str]):
        self.runs = list(highlighted[: len(SERIES)])
        self._index = {run: index for index, run in enumerate(sorted(self.runs, key=natural))}

    def __contains__(self, run: str) -> bool:
        return run in self._index

    def colour(self, run: str) -> str:
        return SERIES[self._index[run]] if run in self._index else OTHERS

    def marker(self, run: str) -> str:
        return MARKERS[self._index[run]] if run in self._index else "o"


def lines(axes: Axes, series: Sequence[tuple[np.ndarray, np.ndarray]], limits: bool = False, **look: Any) -> None:
    """Many lines of one look as one artist: a line of its own costs matplotlib more than its points do.

    Args:
        series: (x, y) of each, float64 (points,).
        limits: whether the axes widen to hold them.
        look: of a LineCollection: color, linewidth, alpha, zorder.
    """
    import numpy as np
    from matplotlib.collections import LineCollection

    if series:
        # round joins and butt caps, as those of single lines
        found = LineCollection([np.column_stack(pair) for pair in series], joinstyle="round", capstyle="butt", **look)
        axes.add_collection(found, autolim=limits)


def token_axis(axis: Any, low: float, high: float, label: str | None = "tokens", most: int = 9) -> None:
    """Make `axis` (a matplotlib Axis) logarithmic from `low` to `high` with at most `most` ticks: 2M, 5M, 10M."""
    from matplotlib.ticker import FixedLocator, FuncFormatter, NullLocator

    set_scale, set_limits = (
        (axis.axes.set_xscale, axis.axes.set_xlim)
        if axis.axis_name == "x"
        else (axis.axes.set_yscale, axis.axes.set_ylim)
    )
    set_scale("log")
    set_limits(low, high)
    axis.set_major_locator(FixedLocator(log_ticks(low, high, most)))
    axis.set_minor_locator(NullLocator())
    axis.set_major_formatter(FuncFormatter(lambda value, _: tick_text(value)))
    if label:
        axis.set_label_text(label)


def tick_text(value: float) -> str:
    """A tick's number without trailing zeros: 2M, 1.5M, 500K."""
    text = short(value)
    digits = text.rstrip("KMBTQ")
    prefix = text[len(digits) :]
    return (digits.rstrip("0").rstrip(".") if "." in digits else digits) + prefix


def log_ticks(low: float, high: float, most: int = 9) -> list[float]:
    """Round numbers between two positive ends, evenly enough spaced on a logarithmic axis, at most `most` + 1."""
    import math

    if not 0 < low < high:
        return [low]
    decades = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
    fine = (1, 1.2, 1.4, 1.6, 1.8, 2, 2.2, 2.5, 3, 3.5, 4, 4.5, 5, 6, 7, 8, 9)
    for steps in (fine, (1, 1.5, 2, 3, 4, 5, 6, 8), (1, 2, 3, 5), (1, 3), (1,)):
        ticks = [step * 10.0**power for power in decades for step in steps if low <= step * 10.0**power <= high]
        if len(ticks) <= most:
            return ticks
    return ticks[:: -(-len(ticks) // most)]


def legend(figure: Figure, handles: Sequence[Any], labels: Sequence[str], columns: int = 1) -> None:
    """A legend at the right of the axes; labels are set afterwards, as matplotlib hides those that begin with "_"."""
    if not handles:
        return
    box = figure.legend(handles, [str(index) for index in range(len(labels))], loc="outside right upper", ncols=columns)
    for text, label in zip(box.get_texts(), labels, strict=True):
        text.set_text(label)
