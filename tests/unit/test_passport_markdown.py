"""The passport in Markdown: pastes into a model card, shows what the JSON holds, and no log can forge its markup."""

from __future__ import annotations

import re
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.unit.test_passport import TARGET, axis, fits, many, passport, run
from tokenaxis import passport as passports
from tokenaxis.passport.text import Numbers, code, count, duration, exact, plain, spread, table, whole

SHOW = Numbers(4)
NASTY = "a|b `c` <script>alert(1)</script> | --- |\n# heading\r\n</details> [x](http://y) *z* _w_ \\ $1$ ~ ![i](j)"


def to_markdown(document: dict[str, Any]) -> str:
    return passports.to_markdown(document, SHOW.digits)


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
        "| Progress | 7.168 % of 100,000 tokens |",
        "| Time to the planned end, at the whole run's pace | 1.9 s |",
        "| Wall time thrown away | 0.02 s |",
        f"| {SHOW.flops(document['flops']['by_convention']['hf']['superseded'])} | declared |",
        f"| Training compute | {SHOW.flops(document['flops']['flops_spent']['value'])} FLOPs, convention `hf` |",
        f"{SHOW.percent(document['efficiency']['mfu']['value'])}, convention `hf`, "
        "against the datasheet dense peak of card",
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
        (count(2830396.7118), "2,830,397"),
        (count(None), "-"),
        (exact(3.28125), "3.28125"),
        (exact(4000.0), "4000"),
        (SHOW.measure(3.14159265), "3.142"),
        (SHOW.measure(1.5), "1.5"),
        (SHOW.measure(42526.4726), "42,530"),
        (SHOW.measure(707.6), "707.6"),
        (SHOW.measure(9999.96), "10,000"),
        (SHOW.measure(0.00012345), "0.0001234"),
        (SHOW.measure(9.895e14), "9.895e+14"),
        (SHOW.measure(0), "0"),
        (SHOW.measure(-2.34567), "-2.346"),
        (SHOW.measure(3.0, "nats"), "3 nats"),
        (SHOW.measure(None), "-"),
        (SHOW.flops(1.4234e18), "1.423e+18"),
        (SHOW.percent(0.37424), "37.42 %"),
        (SHOW.value([]), "none"),
        (SHOW.value(174464), "174,464"),
        (SHOW.value(0.123456), "0.1235"),
        (SHOW.value(True), "yes"),
        (duration(0), "0 s"),
        (duration(0.02048), "0.02 s"),
        (duration(12.34), "12.3 s"),
        (duration(90), "1.50 min"),
        (duration(5400), "1.50 h"),
        (spread({"value": 0.4}, SHOW.percent), "40 %"),
        (spread({"range": [0.3, 0.4]}, SHOW.percent), "30 % to 40 %"),
        (spread(None, SHOW.percent), "-"),
    ],
)
def test_numbers_are_shown_as_a_reader_expects(shown: str, expected: str) -> None:
    assert shown == expected


def test_trainmeters_own_renderer_takes_our_passport(any_passport: dict[str, Any]) -> None:
    from trainmeter import passport as theirs

    shown = theirs.to_markdown(any_passport)
    if "tokens_seen" in any_passport["training"]:
        assert f"| Tokens seen | {any_passport['training']['tokens_seen']:,} |" in shown


def test_hugging_face_takes_it_as_a_model_card(any_passport: dict[str, Any]) -> None:
    import huggingface_hub as hub

    card = hub.ModelCard("---\nlicense: mit\n---\n\n# Model\n\n" + to_markdown(any_passport))
    assert card.data.license == "mit"
    assert "Tokens to target loss" in card.text


@given(
    st.floats(1e-9, 1e15),
    st.floats(0, 1e15),
    st.integers(2, 15),
)
def test_a_shown_interval_holds_the_interval(low: float, width: float, digits: int) -> None:
    for shown in (Numbers(digits).outward(low, low + width), whole(low, low + width)):
        ends = [float(end.replace(",", "")) for end in shown]
        # the shown end is a decimal with few digits: the nearest float to it may be off by one rounding
        assert ends[0] <= low * (1 + 1e-15)
        assert ends[1] >= (low + width) * (1 - 1e-15)


def test_an_unbounded_interval_says_so() -> None:
    assert SHOW.outward(7_996_001, None) == ("7,996,000", "unbounded")
    assert SHOW.outward(7_996_001, 8_758_431) == ("7,996,000", "8,759,000")
    assert whole(1.2, 3.4) == ("1", "4")


def test_more_digits_are_shown_on_demand() -> None:
    document = passport(fitted=fits(observed={"step": 8, "tokens": 6144.0, "loss": 3.9123456}))
    assert "| train\\_loss, smoothed | 3.912 nats/token |" in passports.to_markdown(document, 4)
    assert "| train\\_loss, smoothed | 3.912346 nats/token |" in passports.to_markdown(document, 7)


def test_a_place_inside_the_log_is_a_whole_number_and_a_predicted_one_is_rounded() -> None:
    inside = TARGET | {"status": "reached", "tokens": 2830396.7118, "step": 707.6, "interval": [2830000.2, 2830800.1]}
    ahead = TARGET | {"tokens": 8224546.3, "step": 2056.4, "interval": [7996001.0, 8758431.0]}
    shown = to_markdown(passport(fitted=fits(targets=[inside, ahead | {"target": 3.25}])))
    assert "| 3.5 | reached | 2,830,397 | 2,830,000 to 2,830,801 (90%) | 708 |" in shown
    assert "| 3.25 | predicted | 8,225,000 | 7,996,000 to 8,759,000 (90%) | 2,056 |" in shown


def test_what_the_log_held_and_what_the_run_ran_on_is_shown() -> None:
    shown = to_markdown(many()["everything"])
    for line in (
        "The log holds the end of the run.",
        "Exit status 137.",
        "| kept | 9 |",
        "Tokens come from batch, counted before the step.",
        "Warm-up: the log has no learning rate.",
        "| device | card |  |",
        "| devices | 4 | declared |",
        "| dense bf16 peak | 1.000e+14 FLOP/s | datasheet: https://example.org/card, checked 2026-01-01 |",
        "| hbm bandwidth | 1e+12 byte/s | datasheet: https://example.org/card, checked 2026-01-01 |",
        "| torch | 2.13.0 |  |",
        "| `world_size` | 4 |  |",
        "| `dp` | 2 | detected (two replicas) |",
    ):
        assert line in shown.splitlines(), line


def test_cells_without_a_number_are_shown_with_their_steps() -> None:
    cells = [{"column": "train_loss", "kind": "nan", "rows": 3, "first_step": 5, "last_step": 1234, "lines": [6]}]
    document = passport(axis_meta=axis(unusable=cells))
    assert "| `train_loss` | nan | 3 | 5 to 1,234 |" in to_markdown(document)


def test_a_fit_away_from_its_bounds_says_none() -> None:
    assert "| `at_bounds` | none |" in to_markdown(passport())
