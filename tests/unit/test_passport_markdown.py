"""The passport in Markdown: pastes into a model card, shows what the JSON holds, and no log can forge its markup."""

from __future__ import annotations

import re
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.unit.test_passport import axis, many, passport, run
from tokenaxis.passport import to_markdown
from tokenaxis.passport.text import code, count, duration, flops, measure, percent, plain, spread, table

NASTY = "a|b `c` <script>alert(1)</script> | --- |\n# heading\r\n</details> [x](http://y) *z* _w_ \\ $1$ ~ ![i](j)"


def rendered(markdown: str) -> str:
    """HTML as a GitHub-flavoured renderer makes it, raw HTML let through (as on a model card)."""
    from markdown_it import MarkdownIt

    return MarkdownIt("commonmark", {"html": True}).enable("table").render(markdown)


@pytest.fixture(scope="module", params=sorted(many()))
def any_passport(request: pytest.FixtureRequest) -> dict[str, Any]:
    return many()[request.param]


def test_it_starts_at_a_second_level_heading_and_folds_the_record_away(any_passport: dict[str, Any]) -> None:
    lines = to_markdown(any_passport).splitlines()
    assert lines[0] == "## Training run a/gpt.csv"
    assert not any(re.match(r"# ", line) for line in lines)
    assert (lines.count("<details>"), lines.count("</details>")) == (1, 1)
    assert lines[-1] == "</details>"
    for heading in ("### Speeds, Sizes, Times", "### Tokens to target loss", "#### Not available"):
        assert heading in lines


def test_one_sentence_per_line_outside_of_tables(any_passport: dict[str, Any]) -> None:
    for line in to_markdown(any_passport).splitlines():
        if not line.startswith(("|", "- ")):
            assert not re.search(r"[a-z]\. [A-Z]", line), line


def test_tables_have_as_many_cells_in_every_row(any_passport: dict[str, Any]) -> None:
    widths: list[int] = []
    for line in [*to_markdown(any_passport).splitlines(), ""]:
        if line.startswith("|"):
            widths.append(len(re.findall(r"(?<!\\)\|", line)))
        else:
            assert len(set(widths)) <= 1, line
            widths = []


def test_every_reason_warning_and_conflict_of_the_json_is_shown(any_passport: dict[str, Any]) -> None:
    shown = to_markdown(any_passport)
    for reason in any_passport["not_available"].values():
        assert plain(reason) in shown
    for warning in any_passport["warnings"]:
        assert plain(warning["message"]) in shown
    for name, entry in any_passport["flops"]["by_convention"].items():
        assert f"| `{name}`" in shown
        assert count(entry["flops_per_token"]) in shown


def test_headline_numbers_are_those_of_the_json() -> None:
    document = passport(chosen="hf")
    shown = to_markdown(document)
    for cell in (
        f"| Tokens seen | {count(document['training']['tokens_seen'])} |",
        f"| Tokens trained and thrown away | {count(1024)} |",
        f"| Training compute | {flops(document['flops']['flops_spent']['value'])} FLOPs, convention `hf` |",
        f"{percent(document['efficiency']['mfu']['value'])}, convention `hf`, against the datasheet dense peak of card",
        "| 3.5 | predicted | 4,700,000,000 | 4,000,000,000 to unbounded (90%) | 9,000 | power | 5 | CONVERGED |",
    ):
        assert cell in shown
    assert "over all conventions" in to_markdown(passport())


def test_a_log_cannot_forge_markup() -> None:
    facts = {"facts": {"n_params": 100, "gpu": NASTY, "torch": NASTY}}
    meta = axis(
        warnings=[{"code": "x", "message": NASTY}],
        facts=[{"key": "command", "value": ["python", NASTY, "```", "</details>"], "source": "detected"}],
    )
    document = passport(facts, axis_meta=meta)
    document["run"] |= {"name": NASTY, "files": [run()["files"][0] | {"path": NASTY}]}
    html = rendered(to_markdown(document))
    assert "<script" not in html
    assert "<a " not in html
    assert "<img" not in html
    assert "<h1" not in html
    assert (html.count("<details>"), html.count("</details>")) == (1, 1)


@settings(max_examples=200, deadline=None)
@given(st.text(max_size=60))
def test_any_text_comes_back_as_itself(text: str) -> None:
    """What `plain` escapes, a renderer shows as the very same characters (control characters as their escapes)."""
    from html import unescape

    from tokenaxis.errors import printable

    html = rendered("x" + plain(text) + "x")
    assert unescape(html) == f"<p>x{printable(text)}x</p>\n"


@settings(max_examples=200, deadline=None)
@given(st.text(max_size=60))
def test_any_text_fits_a_table_cell(text: str) -> None:
    html = rendered("\n".join(table(("a", "b"), [(plain(text), code(text))])))
    assert html.count("<td>") == 2


@pytest.mark.parametrize(
    ("shown", "expected"),
    [
        (count(110906112), "110,906,112"),
        (count(0.5), "0.5"),
        (count(None), "-"),
        (measure(3.14159265), "3.1416"),
        (measure(None), "-"),
        (flops(1.4234e18), "1.423e+18"),
        (percent(0.37424), "37.42 %"),
        (duration(12.34), "12.3 s"),
        (duration(90), "1.50 min"),
        (duration(5400), "1.50 h"),
        (spread({"value": 0.4}, percent), "40.00 %"),
        (spread({"range": [0.3, 0.4]}, percent), "30.00 % to 40.00 %"),
        (spread(None, percent), "-"),
    ],
)
def test_numbers_are_shown_as_a_reader_expects(shown: str, expected: str) -> None:
    assert shown == expected


def test_trainmeters_own_renderer_takes_our_passport(any_passport: dict[str, Any]) -> None:
    theirs = pytest.importorskip("trainmeter.passport", reason="trainmeter is not installed (it is only read here)")
    shown = theirs.to_markdown(any_passport)
    if "tokens_seen" in any_passport["training"]:
        assert f"| Tokens seen | {any_passport['training']['tokens_seen']:,} |" in shown


def test_hugging_face_takes_it_as_a_model_card(any_passport: dict[str, Any]) -> None:
    hub = pytest.importorskip("huggingface_hub", reason="huggingface_hub is not installed (it is only read here)")
    card = hub.ModelCard("---\nlicense: mit\n---\n\n# Model\n\n" + to_markdown(any_passport))
    assert card.data.license == "mit"
    assert "Tokens to target loss" in card.text
