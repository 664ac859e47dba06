"""The report page: self-contained, hostile text stays text, a structure for every reader."""

from __future__ import annotations

import html.parser
import json
import re
from pathlib import Path

import pytest

from tests.unit.test_comparison_fake_sweep import PARAMS, make_run, make_sweep, with_id
from tokenaxis.comparison import Sweep, make
from tokenaxis.comparison.page.plotting import plotly_bytes

HOSTILE = [
    "<script>alert(1)</script>",
    '"><img src=x onerror=alert(1)>',
    "'; drop table runs; --",
    "</style></title></svg><b>",
    "{{ 7 * 7 }}{% raw %}",
    "über-実験-🙂",
    "nul\x00 esc\x1b[31m bidi\u202e line\u2028",
    "javascript:alert(1)",
    "caf\udce9",
]
VOID = {"meta", "link", "img", "br", "hr", "input"}


class Structure(html.parser.HTMLParser):
    """Elements, attributes and nesting of a page."""

    def __init__(self, text: str):
        super().__init__(convert_charrefs=True)
        self.open: list[str] = []
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.faults: list[str] = []
        self.words: list[str] = []
        self.feed(text)
        self.close()
        self.faults += [f"<{tag}> is not closed" for tag in self.open]

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))

    def handle_endtag(self, tag: str) -> None:
        if not self.open or self.open.pop() != tag:
            self.faults.append(f"</{tag}> closes something else")

    def handle_data(self, data: str) -> None:
        if not {"script", "style"} & set(self.open):
            self.words.append(data)

    def attributes(self, name: str) -> list[str]:
        return [attrs[name] or "" for _, attrs in self.tags if name in attrs]


def page_of(sweep: Sweep, folder: Path) -> str:
    make(sweep, PARAMS, folder)
    return (folder / "index.html").read_text("utf-8")


def scripts_of(text: str) -> list[str]:
    """The contents of all script elements, in order."""
    return re.findall(r"<script[^>]*>(.*?)</script>", text, re.DOTALL)


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str]:
    """(file, text) of the fake sweep's page."""
    folder = tmp_path_factory.mktemp("page")
    return folder / "index.html", page_of(make_sweep(), folder)


@pytest.fixture(scope="module")
def hostile(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str]:
    """(file, text) of a page whose runs, files, warnings, facts and parameters are out to break it."""
    folder = tmp_path_factory.mktemp("hostile")
    return folder / "index.html", page_of(hostile_sweep(), folder)


def hostile_sweep() -> Sweep:
    """Every text of a sweep is one of HOSTILE."""
    runs = [with_id(make_run(str(number)), name) for number, name in enumerate(HOSTILE)]
    for run, text in zip(runs, HOSTILE, strict=True):
        run.axis_meta["warnings"] = [{"code": text, "message": text}]
        run.axis_meta["format"] = text
        run.conventions["facts"][text] = {"value": text, "source": text, "note": text}
        run.conventions["conflicts"] = [{"key": text, "kept": text, "ignored": text}]
        run.fits["targets"][0] |= {"status": "not_available", "tokens": None, "reason": text}
    refused = [{"name": text, "reason": text, "remedy": text} for text in HOSTILE]
    passed_over = [{"name": text, "reason": text} for text in HOSTILE]
    return Sweep(HOSTILE[0], runs, refused, passed_over, {HOSTILE[0]: HOSTILE[1]})


def test_every_element_is_closed_and_every_id_is_used_once(page: tuple[Path, str]) -> None:
    structure = Structure(page[1])
    assert structure.faults == []
    ids = structure.attributes("id")
    # matplotlib's clip paths and markers have the same id for the same content
    own = [name for name in ids if not re.fullmatch(r"[mp][0-9a-f]{10}", name)]
    assert sorted(own) == sorted(set(own))


def test_every_reference_inside_the_page_has_its_place(page: tuple[Path, str]) -> None:
    structure = Structure(page[1])
    ids = set(structure.attributes("id"))
    inner = {link[1:] for link in structure.attributes("href") if link.startswith("#")}
    assert inner - ids == set()
    assert {name for names in structure.attributes("aria-labelledby") for name in names.split()} <= ids


def test_nothing_is_fetched_from_anywhere(page: tuple[Path, str]) -> None:
    structure = Structure(page[1])
    assert structure.attributes("src") == []
    for link in structure.attributes("href"):
        assert not re.match(r"[a-z]+:|//|/", link) or link == "data:,", link
    assert "@import" not in page[1] and "url(http" not in page[1]


def test_links_beside_the_page_lead_to_files_that_exist(page: tuple[Path, str]) -> None:
    links = {
        link for link in Structure(page[1]).attributes("href") if not link.startswith(("#", "data:", "../passports/"))
    }
    assert "targets.csv" in links and "figures/loss.svg" in links
    assert [link for link in sorted(links) if not (page[0].parent / link).exists()] == []
    assert "../passports/gpt_4Kbs.md" in page[1]


def test_headings_go_down_one_level_at_a_time(page: tuple[Path, str]) -> None:
    levels = [int(tag[1]) for tag, _ in Structure(page[1]).tags if re.fullmatch("h[1-6]", tag)]
    assert levels[0] == 1 and levels.count(1) == 1
    assert all(after <= before + 1 for before, after in zip(levels, levels[1:], strict=False))


def test_tables_have_header_cells_with_a_scope(page: tuple[Path, str]) -> None:
    headers = [attrs for tag, attrs in Structure(page[1]).tags if tag == "th"]
    assert headers and all(attrs.get("scope") in ("row", "col") for attrs in headers)


def test_tokens_are_short_with_every_digit_in_the_tooltip(page: tuple[Path, str]) -> None:
    text = page[1]
    assert re.search(r'title="2,1[89]\d,\d\d\d\.\d+ tokens, 90% interval from [^"]+">2\.19M<', text)


def test_what_the_page_must_say(page: tuple[Path, str]) -> None:
    words = " ".join(Structure(page[1]).words)
    for text in (
        "gpt_2Kbs reaches 1.60 nats per token first",
        "line 14 is cut off",
        "delete the file or repair the line",
        "commands.sh",
        "an attempt was resumed: 21 rows were trained again",
        "fits.interval_level",
        "tokenaxis 0.1.0",
    ):
        assert text in words


def test_hostile_text_stays_text(hostile: tuple[Path, str], page: tuple[Path, str]) -> None:
    structure = Structure(hostile[1])
    assert structure.faults == []
    tags = {tag for tag, _ in structure.tags}
    assert "img" not in tags
    assert len(scripts_of(hostile[1])) == len(scripts_of(page[1]))
    assert not any(name.startswith("on") for _, attrs in structure.tags for name in attrs)
    assert not any(link.startswith("javascript:") for link in structure.attributes("href"))
    words = " ".join(structure.words)
    for text in HOSTILE[:6]:
        assert text in words
    assert "49" not in re.findall(r"\{\{ 7 \* 7 \}\}|\b49\b", words)


def test_control_characters_are_spelled_out(hostile: tuple[Path, str]) -> None:
    own = hostile[1].replace((plotly_bytes() or b"").decode(), "")  # the library's text is not ours
    assert not re.search("[\x00-\x09\x0b-\x1f\x7f\u202e\u2028]", own)
    assert "nul\\x00 esc\\x1b[31m bidi\\u202e" in hostile[1]
    assert "caf\\xe9" in hostile[1]


def test_hostile_pages_have_one_place_per_run(hostile: tuple[Path, str]) -> None:
    structure = Structure(hostile[1])
    places = [name for name in structure.attributes("id") if name.startswith("run-")]
    assert len(set(places)) == len(HOSTILE)


@pytest.mark.parametrize("name", ["#0b62b8", "fill: #1f2328"])
def test_a_run_named_like_a_colour_keeps_its_name(name: str, tmp_path: Path) -> None:
    text = page_of(Sweep("s", [with_id(make_run("a"), name), make_run("b")]), tmp_path)
    assert text.count(f">{name}<") > 3


def test_the_page_of_a_sweep_without_runs_says_so(tmp_path: Path) -> None:
    structure = Structure(
        page_of(Sweep("empty", [], [{"name": "a.csv", "reason": "no rows", "remedy": None}]), tmp_path)
    )
    assert structure.faults == []
    words = " ".join(structure.words)
    assert "There is nothing to compare" in words and "no rows" in words


def test_the_page_forbids_itself_to_fetch_anything(page: tuple[Path, str]) -> None:
    policies = [attrs["content"] for tag, attrs in Structure(page[1]).tags if attrs.get("http-equiv")]
    assert policies and policies[0].startswith("default-src 'none'")
    assert not re.search(r"https?:|\*", policies[0])


def test_data_of_the_charts_is_json_that_cannot_end_its_script(hostile: tuple[Path, str]) -> None:
    if plotly_bytes() is None:
        pytest.skip("the package plotly is not installed: pages have static figures only")
    found = re.search(r'<script type="application/json" id="data">(.*?)</script>', hostile[1], re.DOTALL)
    assert found and not re.search("[<>&]", found[1])
    names = [run["name"] for run in json.loads(found[1])["runs"]]
    assert HOSTILE[0] in names and len(names) == len(HOSTILE)


def sparse_sweep() -> Sweep:
    """Runs that were asked for different targets, as automatic targets of models of different sizes are."""
    asked = {"b": (1.8, 1.6), "c": (1.6, 1.45), "d": (1.8, 1.6)}
    runs = [make_run(name, targets=targets, seed=number) for number, (name, targets) in enumerate(asked.items())]
    # 1M tokens: this one's loss ends near 1.9
    return Sweep("sparse", [make_run("a", observed=1e6, targets=(2.0, 1.8)), *runs])


def test_targets_of_one_run_stand_apart_and_empty_cells_say_why(tmp_path: Path) -> None:
    text = page_of(sparse_sweep(), tmp_path)
    main = re.findall(r"<table.*?</table>", text, re.DOTALL)[0]
    shown = [target for target in ("2.00", "1.80", "1.60", "1.45") if f'scope="col">{target} <small>' in main]
    assert shown == ["1.80", "1.60"]
    assert "2 more targets that few runs were asked for" in text
    for run, word, reason in (("c", "passed early", "the run passed this loss"), ("a", "too far", "too far below")):
        row = re.search(rf'<tr data-run="{run}".*?</tr>', main, re.DOTALL)
        assert row is not None and f">{word}<" in row[0] and reason in row[0]


def test_targets_that_every_run_has_are_not_hidden_from_a_sweep_of_one_run(tmp_path: Path) -> None:
    text = page_of(Sweep("one", [make_run("a")]), tmp_path)
    assert "few runs were asked for" not in text and "2.00 <small>nats/token" in text


def test_no_axis_and_no_numeric_column_is_without_its_unit(page: tuple[Path, str]) -> None:
    """Counts and ratios have none; every other column of numbers says what it counts."""
    words = "run, reason, remedy, file, verdict, equal, remark, fact, value, source, note, passport, not available"
    counts = "warnings, attempts, predictions, no answer, 90% erred less than, batch sizes, last step, tokens"
    bare = set(f"{words}, {counts}".split(", "))
    for heading in re.findall(r"<th scope=\"col\"[^>]*>(.*?)</th>", page[1], re.DOTALL):
        name = re.sub("<[^>]+>", "", heading).strip()
        assert "<small>" in heading or name in bare, name
    for figure in ("tokens consumed", "loss (nats per token)", "batch size (tokens per step)", "tokens to the target"):
        assert figure in page[1]
