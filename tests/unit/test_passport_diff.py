"""Two passports side by side: what differs, by how much, and nothing else."""

from __future__ import annotations

from tests.unit.test_passport import GPT2, SYSTEM, axis, fits, passport
from tokenaxis.passport.diff import ABSENT, Difference, as_json, as_text, diff


def test_a_passport_does_not_differ_from_itself() -> None:
    assert diff(passport(), passport()) == []
    assert as_text([]) == "no difference\n"


def test_a_changed_target_is_named_by_its_loss_with_the_ratio() -> None:
    changed = fits()
    changed["targets"][0] = changed["targets"][0] | {"tokens": 9.4e9}
    places = {difference.place: difference for difference in diff(passport(), passport(fitted=changed))}
    assert places["targets[3.5].tokens"] == Difference("targets[3.5].tokens", 4.7e9, 9.4e9, 2.0)
    assert places["targets[3.5].flops.hf"].ratio == 2
    assert set(places) >= {"cost.to_target[3.5].amount"}
    assert not any(place.startswith(("explain", "training", "flops.")) for place in places)


def test_what_only_one_of_them_has_is_absent_from_the_other() -> None:
    bare = passport({"facts": GPT2, "seq_len": 1024, "planned_tokens": 1e5})
    full = passport({"facts": GPT2 | SYSTEM, "seq_len": 1024, "planned_tokens": 1e5})
    places = {difference.place: difference for difference in diff(bare, full)}
    assert (places["training.tokens_per_s"].one, places["training.tokens_per_s"].other) == (ABSENT, 5e4)
    assert places["not_available.training.tokens_per_s"].other == ABSENT


def test_another_batch_schedule_shows_stage_by_stage() -> None:
    stage = {"first_step": 0, "last_step": 8, "first_tokens": 0.0, "last_tokens": 4096.0, "tokens_per_step": 512.0}
    other = passport(axis_meta=axis(batch={"source": "column", "stages": [stage]}))
    places = {difference.place for difference in diff(passport(), other)}
    assert "training.batch_schedule[0].last_step" in places
    assert "training.batch_schedule[4].tokens_per_step" in places


def test_the_table_lines_up_and_escapes_what_a_log_says() -> None:
    text = as_text([Difference("a", 1, 2, 2.0), Difference("longer.place", "x\ny", 1.5)], ("one", "other"))
    assert text.splitlines() == [
        "              one   other  ratio",
        "a             1     2      2",
        "longer.place  x\\ny  1.5",
    ]


def test_as_json_says_which_side_lacks_a_place() -> None:
    found = [Difference("a", 1, 2, 2.0), Difference("b", ABSENT, "x"), Difference("c", None, ABSENT)]
    assert as_json(found, ("p", "q")) == {
        "first": "p",
        "second": "q",
        "differences": [
            {"place": "a", "first": 1, "second": 2, "ratio": 2.0},
            {"place": "b", "first": None, "second": "x", "only": "second"},
            {"place": "c", "first": None, "second": None, "only": "first"},
        ],
    }


def test_a_long_value_is_cut_in_the_table() -> None:
    line = as_text([Difference("a", "x" * 100, "y")]).splitlines()[1]
    assert "x" * 37 + "..." in line
    assert len(line) < 80
