"""The quick ways to write numbers, markup, pictures and JSON: the same bytes as the plain ways."""

from __future__ import annotations

import io
import json
import math

import numpy as np
import pytest

from tests.stages.test_page import HOSTILE, hostile_sweep
from tests.unit.test_comparison_fake_sweep import PARAMS, make_run, make_sweep
from tokenaxis.comparison import Sweep, make
from tokenaxis.comparison.curves import Shares, read_curve, read_windows
from tokenaxis.comparison.files import json_bytes
from tokenaxis.comparison.page.chart_data import MOST_WHOLE, WHOLE, chart_data, page_shares
from tokenaxis.comparison.page.markup import Parts, escaped
from tokenaxis.comparison.png import png_bytes
from tokenaxis.comparison.rounding import json_lists, rounded, texts
from tokenaxis.comparison.summary import summary_bytes

EDGES = [
    0.0,
    -0.0,
    1e22,
    1e23,
    1e-17,
    1e-18,
    5e-324,
    1.7e308,
    999_999.5,
    0.1,
    1e15,
    -2.5,
    math.inf,
    -math.inf,
    math.nan,
]


def numbers(seed: int) -> np.ndarray:
    rng = np.random.default_rng(seed)
    return np.concatenate([rng.standard_normal(20_000) * 10.0 ** rng.integers(-25, 25, 20_000), EDGES])


@pytest.mark.parametrize("digits", [5, 6])
def test_rounding_gives_the_float_that_python_reads_from_so_many_digits(digits: int) -> None:
    values = numbers(digits)
    plain = [float(f"{value:.{digits}g}") for value in values.tolist()]
    assert rounded(values, digits).tolist() == pytest.approx(plain, rel=0, abs=0, nan_ok=True)


def test_lists_of_json_are_whole_where_they_can_be_and_null_where_nothing_is_known() -> None:
    arrays = [np.array([1.5, 2.0, math.nan]), np.array([]), np.array([3_187_634_999.0, math.inf, -0.0, 0.000123456])]
    assert json_lists(arrays, 5) == ["[1.5,2,null]", "[]", "[3187600000,null,0,0.00012346]"]
    values = numbers(1)
    assert all(type(value) is not float or value != int(value) or abs(value) >= 1e15
               for value in json.loads(json_lists([values], 5)[0]) if value is not None)  # fmt: skip


def test_texts_of_a_table_are_what_python_writes() -> None:
    assert texts([np.array([3_187_634_999.0, math.nan]), np.array([2.3416005])], 6) == [
        ["3187630000.0", ""],
        ["2.3416"],
    ]
    assert texts([], 6) == []


@pytest.mark.parametrize("text", [*HOSTILE, "a & b", None, 12, 1.5])
def test_text_is_escaped_as_the_template_escapes_it(text: object) -> None:
    from tokenaxis.comparison.page.render import _environment

    template = _environment().from_string("{{ text }}")
    assert escaped(text) == template.render(text=text)


def test_pieces_stand_in_their_places_whatever_texts_hold() -> None:
    parts = Parts()
    first = parts.later(lambda: [b"one", b" two"])
    second = parts.later(lambda: [b"three"])
    text = f"<{first}|{escaped(first)}|{second}>"
    assert b"".join(parts.filled(text)) == b"<one two|\\x000\\x00|three>"


def test_a_png_holds_the_pixels_that_it_was_given() -> None:
    from PIL import Image

    rng = np.random.default_rng(2)
    pixels = rng.integers(0, 256, (37, 53, 3)).astype(np.uint8)
    content = png_bytes(pixels, 160)
    picture = Image.open(io.BytesIO(content))
    assert picture.mode == "RGB" and np.array_equal(np.asarray(picture), pixels)
    assert picture.info["dpi"] == pytest.approx((160, 160), rel=1e-3)  # whole dots per metre
    assert content == png_bytes(pixels, 160)


@pytest.mark.parametrize("sweep", [make_sweep(), hostile_sweep(), Sweep("none", [])], ids=["fake", "hostile", "empty"])
def test_the_summary_is_written_as_json_would_write_it(sweep: Sweep, tmp_path) -> None:
    summary = make(sweep, PARAMS | {"figures": ["svg"]}, tmp_path)
    assert summary_bytes(summary) == json_bytes(summary) == (tmp_path / "summary.json").read_bytes()


def test_runs_share_the_points_of_a_page_and_coloured_ones_keep_theirs() -> None:
    run = make_run("a", grows_to=16000)
    shares = Shares.among(10)
    curve, windows = read_curve(run, shares, 0.1), read_windows(run, shares)
    whole = json.loads("{" + chart_data(curve, windows, WHOLE) + "}")
    assert len(whole["smooth"][0]) == len(curve.smooth.tokens) and len(whole["raw"][0]) == len(curve.raw.tokens)
    thin = json.loads("{" + chart_data(curve, windows, page_shares(2000)) + "}")
    assert thin["raw"] is None
    assert len(thin["smooth"][0]) <= page_shares(2000).smooth == 29
    assert thin["smooth"][0][0] == whole["smooth"][0][0] and thin["smooth"][0][-1] == whole["smooth"][0][-1]
    assert max(thin["lr"][1]) == max(whole["lr"][1]), "the peak is never lost"
    assert sum(len(entry[1]) for entry in thin["windows"]) <= page_shares(2000).windows + len(windows)
    assert [entry[1][-1] for entry in thin["windows"]] == [entry[1][-1] for entry in whole["windows"]]


def test_a_page_of_few_runs_is_not_thinned_and_one_more_run_changes_no_share() -> None:
    few = page_shares(MOST_WHOLE)
    assert (few.smooth, few.raw, few.rates, few.batches) == (None, None, None, None)
    assert page_shares(1999) == page_shares(2000) != page_shares(2049)


@pytest.mark.parametrize("runs", [600, 2000, 10_000])
def test_points_of_all_runs_of_a_page_are_bounded(runs: int) -> None:
    shares = page_shares(runs)
    assert (shares.raw or 0) * runs <= 50_000
    assert shares.windows * runs <= 24_000
    # below eight points nothing is left of a curve
    assert shares.smooth == 8 or (shares.smooth or 0) * runs <= 60_000


def test_the_page_says_how_far_it_is_thinned(tmp_path, monkeypatch: pytest.MonkeyPatch) -> None:
    from tokenaxis.comparison.page import chart_data as module
    from tokenaxis.comparison.page import plotting

    runs = [make_run(f"run{number}", 16000, 4e5, seed=number, targets=(2.4,)) for number in range(12)]
    params = PARAMS | {"figures": ["svg"]}
    make(Sweep("s", runs), params, tmp_path)
    assert "a grey run" not in (tmp_path / "index.html").read_text("utf-8")
    monkeypatch.setattr(module, "MOST_WHOLE", 4)
    monkeypatch.setattr(plotting, "MOST_WHOLE", 4)
    monkeypatch.setattr(module, "ALL_SMOOTH", 160)
    make(Sweep("s", runs), params, tmp_path)
    text = (tmp_path / "index.html").read_text("utf-8")
    assert "With 12 runs, a grey run&#39;s curve has at most 10 points here" in text
