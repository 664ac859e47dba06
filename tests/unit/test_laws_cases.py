"""The planted logs of ../shared/cases, from file to answer: crossings, predictions, refusals, verdicts in bounds."""

from __future__ import annotations

import json
import math
from pathlib import Path

import pytest

from tokenaxis import params as parameters
from tokenaxis import readers, stability, targets
from tokenaxis.axis import build_axis
from tokenaxis.declarations import Declaration
from tokenaxis.errors import TokenAxisError


@pytest.fixture(scope="module")
def params(root: Path) -> dict:
    return parameters.load_yaml(root / "params.yaml")


def declared(options: dict) -> Declaration:
    schedule = options.get("batch_schedule")
    return Declaration(
        columns={options["loss_col"]: options["loss_col"]} if options.get("loss_col") else {},
        tokens_per_step=options.get("batch_size"),
        batch_schedule=None if schedule is None else tuple(tuple(map(float, pair.split(":"))) for pair in schedule),
        tokens_convention=options.get("tokens_are"),
        fit_start_step=options.get("fit_start_step"),
    )


def asked(expect: dict) -> list[float]:
    losses = [c["target"] for c in expect.get("crossings", [])]
    for key in ("not_reached", "below_at_start", "unreachable", "no_prediction_for"):
        losses += expect.get(key, [])
    losses += [target for target, _ in expect.get("law_tokens", [])]
    return sorted(set(losses), reverse=True)


def analysed(folder: Path, case: dict, params: dict):
    """(answers by target, verdicts by target, everything that was said)."""
    declaration = declared(case["options"])
    path = str(folder / case["files"][0]["path"])
    axis = build_axis(readers.read(path, declaration), declaration, Path(path).name, "auto")
    fits = params["fits"] | {"targets": asked(case["expect"]), "loss": case["options"].get("loss_col", "train_loss")}
    loss, reason = targets.choose_loss(axis.columns, fits)
    series = targets.series_from(axis.columns, axis.meta, declaration.as_dict(), loss)
    report = targets.answer(series, fits, reason)
    content = report.as_dict()
    swept = stability.sweep(series, params["stability"], fits, content)
    json.dumps([content, swept.as_dict()], allow_nan=False)
    said = [f"{w['code']} {w['message']}" for w in axis.meta["warnings"] + content["warnings"]]
    said += [t["reason"] for t in content["targets"] if t["reason"]]
    return (
        {t["target"]: t for t in content["targets"]},
        {v.target: v for v in swept.verdicts},
        " | ".join(said).lower(),
        float(series.tokens[-1]),
    )


def each(cases, params, wanted):
    folder, truth = cases
    for name, case in truth.items():
        if (
            case["expect"].get("outcome") in ("ok", "fit_refused")
            and wanted(case["expect"])
            and "runs" not in case["expect"]
        ):
            yield name, case["expect"], analysed(folder, case, params)


def test_every_crossing_inside_a_log_is_found_within_its_bounds(cases, params):
    count = 0
    for name, expect, (answers, _, _, _) in each(cases, params, lambda e: e.get("crossings")):
        bounds: dict[float, tuple[float, float]] = {}
        for c in (c for c in expect["crossings"] if c["in_log"]):
            if c["target"] not in bounds or c["hi"] - c["lo"] > bounds[c["target"]][1] - bounds[c["target"]][0]:
                bounds[c["target"]] = (c["lo"], c["hi"])
        for target, (low, high) in bounds.items():
            found = answers[target]
            assert found["status"] == "reached", (name, target, found)
            assert low <= found["tokens"] <= high, (name, target, found["tokens"], low, high)
            count += 1
    assert count > 60


def test_every_prediction_lies_within_its_bounds(cases, params):
    count = 0
    for name, expect, (answers, _, said, _) in each(cases, params, lambda e: e.get("crossings")):
        for c in (c for c in expect["crossings"] if not c["in_log"]):
            found = answers[c["target"]]
            if "either" in expect and "at_bound" in found["warnings"]:
                assert "bound" in said
                continue
            assert found["status"] == "predicted", (name, found)
            assert c["lo"] <= found["tokens"] <= c["hi"], (name, found["tokens"], c)
            assert found["interval"][0] <= c["tokens"] <= (found["interval"][1] or math.inf)
            count += 1
    assert count >= 8


def test_a_target_that_is_not_reached_is_neither_reached_nor_put_inside_the_log(cases, params):
    for name, expect, (answers, _, _, last) in each(cases, params, asked):
        for target, found in answers.items():
            if found["status"] != "reached" and found["tokens"] is not None:
                assert found["tokens"] > last, (name, target)
                assert found["interval"][0] >= last
        for target in expect.get("not_reached", []):
            assert answers[target]["status"] != "reached", (name, target)
        for target in expect.get("unreachable", []):
            assert answers[target]["status"] == "unreachable", (name, target)
        for target in expect.get("no_prediction_for", []):
            assert answers[target]["tokens"] is None, (name, target)
        for target in expect.get("below_at_start", []):
            assert answers[target]["status"] == "not_available"
            assert "below_at_start" in answers[target]["warnings"]


def test_every_fault_is_named_in_a_warning(cases, params):
    for name, expect, (_, _, said, _) in each(cases, params, lambda e: e.get("warn_any")):
        for keywords in expect["warn_any"]:
            assert any(word in said for word in keywords), (name, keywords, said)


def test_verdicts_are_not_what_they_must_not_be(cases, params):
    for name, expect, (_, verdicts, _, _) in each(cases, params, lambda e: e.get("verdict_not")):
        for verdict in verdicts.values():
            assert verdict.verdict not in expect["verdict_not"], (name, verdict)


def test_diverged_runs_are_called_diverged(cases, params):
    folder, truth = cases
    for name, targets_ in (("diverged", None), ("diverged_nan", [2.58])):
        case = (
            truth[name]
            if targets_ is None
            else truth[name] | {"expect": truth[name]["expect"] | {"not_reached": targets_}}
        )
        _, verdicts, _, _ = analysed(folder, case, params)
        assert verdicts[2.58].verdict == "DIVERGED", name


def test_two_more_steps_do_not_turn_a_verdict_around(cases, params):
    folder, truth = cases
    both = [analysed(folder, truth[name], params)[1][2.55] for name in ("short_tail", "short_tail_cut")]
    assert both[0].verdict == both[1].verdict


def test_a_fit_inside_the_warmup_is_refused_but_crossings_are_reported(cases, params):
    folder, truth = cases
    answers, verdicts, _, _ = analysed(folder, truth["inside_warmup"], params)
    assert answers[4.0]["status"] == "reached"
    assert answers[2.6]["status"] == "not_available" and "warm" in answers[2.6]["reason"]
    assert verdicts[2.6].verdict == "NOT ENOUGH DATA"


def test_refused_logs_are_refused_with_a_reason(cases, params):
    folder, truth = cases
    for name, case in truth.items():
        if case["expect"].get("outcome") != "refused":
            continue
        with pytest.raises(TokenAxisError):
            analysed(folder, case, params)
            raise AssertionError(name)
