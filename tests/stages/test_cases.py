"""Logs with a known answer: every planted case, end to end with the default parameters, against its truth.

Each difference is prefixed with the part of the library it belongs to.
"""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.stages.planted import Outcome, analyse
from tokenaxis.params import load_yaml

# fmt: off
NAMES = (
    "clean", "noisy", "every20", "val_every50", "no_lr", "no_lr_declared", "no_warmup", "inside_warmup", "one_based",
    "float_steps", "nan_rows", "inf_rows", "text_in_loss", "blank_step", "header_only", "zero_bytes", "binary",
    "truncated", "blank_lines", "newest_first", "resume", "repeated_header", "resume_abandoned", "three_attempts",
    "resume_chain", "two_runs", "resume_new_batch", "resume_same_step", "split_rows", "dynamic", "dynamic_tokens",
    "tokens_after_declared", "tokens_after", "tokens_after_fixed", "gap_switch_declared", "gap_switch",
    "rotated_declared", "rotated", "rotated_fixed", "negative_tokens", "decreasing_tokens", "partial_batch",
    "partial_batch_declared", "scattered_batch", "zero_batch", "warmup_across_switch", "lr_scaled",
    "batch_in_directory", "batch_malformed", "batch_unknown", "flat", "linear", "rising", "steep", "row0_below",
    "warm_start", "dip", "plateau", "diverged", "diverged_nan", "short_tail_cut", "short_tail", "cosine",
    "linear_decay", "cosine_half", "wsd", "gz", "gz_cut", "crlf", "bom", "utf16", "semicolon", "decimal_comma", "tab",
    "thousands", "duplicate_same", "duplicate_conflict", "names_slash", "names_dotted", "names_upper", "names_wandb",
    "names_padded", "unit_suffix", "name_space", "name_quotes", "name_shell", "name_html", "name_markdown",
    "name_formula", "name_unicode", "name_not_utf8", "name_newline", "name_control", "name_long", "name_dash",
    "name_glob", "name_percent", "name_dotdot", "name_backslash", "name_hidden", "name_device", "name_case_pair",
    "name_same_stem", "name_run_names",
)
# fmt: on


@pytest.fixture(scope="module")
def params(root: Path) -> dict[str, Any]:
    return load_yaml(root / "params.yaml")


def test_every_planted_case_is_in_this_list(cases: tuple[Path, dict]) -> None:
    assert set(NAMES) == set(cases[1])
    assert len(NAMES) == 104


@pytest.mark.parametrize("name", NAMES)
def test_case(name: str, cases: tuple[Path, dict], params: dict[str, Any]) -> None:
    folder, truth = cases
    case = truth[name]
    logs = [file["path"] for file in case["files"] if not file["path"].endswith("manifest.json")]
    before = {path: (folder / path).read_bytes() for path in logs}
    wrong: list[str] = []
    for path in logs:
        outcome = analyse(folder, path, case, params)
        wrong += differences(outcome, case["expect"])
        if "fit" in case["expect"]:
            wrong += fit_differences(analyse(folder, path, case, params, case["expect"]["fit"].get("to_step")), case)
    if "same_verdict_as" in case["expect"]:
        partner = truth[case["expect"]["same_verdict_as"]]
        wrong += verdict_differences(outcome, analyse(folder, partner["files"][0]["path"], partner, params))
    assert wrong == []
    assert {path: (folder / path).read_bytes() for path in logs} == before


def test_hostile_names_are_runs_of_their_own_and_touch_nothing_outside(
    cases: tuple[Path, dict], root: Path, tmp_path: Path
) -> None:
    """The scripts on a sweep of every file with a hostile name: one run a file, artifacts only in results/."""
    folder, truth = cases
    files = [file["path"] for name in NAMES if name.startswith("name_") for file in truth[name]["files"]]
    for file in files:
        (tmp_path / "logs" / file).parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(folder / file, tmp_path / "logs" / file)
        if not file.endswith("manifest.json"):
            with open(tmp_path / "logs" / file, "a", encoding="utf-8", errors="surrogateescape") as log:
                log.write(f"# {file}".replace("\n", " ") + "\n")  # files of the same bytes would be one run
    text = (root / "params.yaml").read_text(encoding="utf-8")
    text = re.sub(r"^sweep: \S+", "sweep: hostile", text, flags=re.MULTILINE)
    text = re.sub(r"^logs: \S+", "logs: logs", text, flags=re.MULTILINE)
    (tmp_path / "params.yaml").write_text(text.replace('".*", ', ""), encoding="utf-8")
    before = set(tmp_path.rglob("*"))
    for script in ("runs", "token_axis"):
        command = [sys.executable, str(root / "scripts" / f"{script}.py")]
        done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
    results = tmp_path / "results"
    assert not {path for path in set(tmp_path.rglob("*")) - before if not path.is_relative_to(results)}
    runs = json.loads((results / "hostile" / "runs.json").read_text(encoding="utf-8"))
    logs = [file for file in files if not file.endswith("manifest.json")]
    assert runs["refused"] == []
    assert len(runs["runs"]) == len(logs)
    ids = [run["id"] for run in runs["runs"]]
    assert len({run.lower() for run in ids}) == len(ids)  # also where case does not count
    assert all(re.fullmatch(r"[A-Za-z0-9_][A-Za-z0-9._-]*", run) for run in ids)
    assert sorted(path.stem for path in (results / "hostile" / "token_axis").glob("*.parquet")) == sorted(ids)


def differences(outcome: Outcome, expect: dict[str, Any]) -> list[str]:
    """Everything in which an outcome differs from the truth."""
    verdict = expect["outcome"]
    said = f"{[text[:90] for text in outcome.said]}"
    if outcome.refused is not None:
        if verdict not in ("refused", "refuse_or_warn", "ok_or_refused"):
            return [f"readers or axis: refused: {outcome.refused}"]
        return [] if outcome.says(expect["reason_any"]) else [f"readers or axis: refusal without its reason: {said}"]
    if verdict == "refused":
        return ["readers or axis: not refused"]
    wrong = [*_table(outcome, expect), *_tokens(outcome, expect), *_answers(outcome, expect)]
    keywords = list(expect.get("warn_any", []))
    if verdict in ("refuse_or_warn", "fit_refused"):
        keywords.append(expect["reason_any"])
    wrong += [f"warning with one of {words} missing in {said}" for words in keywords if not outcome.says(words)]
    if verdict == "fit_refused" and outcome.fits is not None and outcome.fits["fit"] is not None:
        wrong.append("fits: a fit that should have been refused")
    return wrong


def _table(outcome: Outcome, expect: dict[str, Any]) -> Iterator[str]:
    """Rows, attempts, lines, columns, losses."""
    assert outcome.axis is not None
    meta, columns = outcome.axis.meta, outcome.axis.columns
    rows = meta["rows"]
    loss = "val_loss" if outcome.fits is not None and outcome.fits["loss"] == "val_loss" else "train_loss"
    known = np.flatnonzero(~np.isnan(columns[loss]))
    reported = set(meta["bad_lines"]) | {line for entry in meta["unusable"] for line in entry["lines"]}
    found = {
        "rows_read": rows["read"],
        "rows_bad": rows["bad"],
        "rows_superseded": rows["superseded"],
        "rows_merged": rows["merged"],
        "rows_kept": rows["kept"],
        "rows_with_loss": len(known),
        "attempts": len(meta["attempts"]),
        "first_step": int(columns["step"][0]),
        "last_step": int(columns["step"][-1]),
        "last_step_with_loss": int(columns["step"][known[-1]]),
        "stages": len(meta["batch"]["stages"]),
    }
    if "rows_merged" not in expect and "rows_superseded" in expect:  # the truth counts both as superseded
        found["rows_superseded"] += rows["merged"]
    for key, value in found.items():
        if key in expect and value != expect[key]:
            yield f"axis: {key} is {value}, not {expect[key]}"
    for line in expect.get("bad_lines", []):
        if line not in reported:
            yield f"readers or axis: line {line} is not reported"
    for key, name in expect.get("columns", {}).items():
        canonical = {"global_batch": "tokens_per_step"}.get(key, key)
        if meta["columns"].get(canonical) != name:
            yield f"readers: column {canonical} is {meta['columns'].get(canonical)!r}, not {name!r}"
    values = dict(zip(columns["step"].tolist(), columns["train_loss"].tolist(), strict=True))
    for step, value in expect.get("loss_at", []):
        if values.get(step) != value:
            yield f"axis: the loss at step {step} is {values.get(step)}, not {value}"


def _tokens(outcome: Outcome, expect: dict[str, Any]) -> Iterator[str]:
    """The token axis, its bounds, and the end of warm-up."""
    assert outcome.axis is not None
    meta, columns = outcome.axis.meta, outcome.axis.columns
    tokens = dict(zip(columns["step"].tolist(), columns["tokens"].tolist(), strict=True))
    last = float(columns["tokens"][-1])
    tolerance = max(expect.get("last_tokens_tol", 0), expect.get("tokens_tol", 0))
    if "last_tokens" in expect and abs(last - expect["last_tokens"]) > tolerance:
        yield f"axis: the last tokens are {last:,.0f}, not {expect['last_tokens']:,}"
    for step, value in expect.get("tokens_at", []):
        if tokens.get(step) != value:
            yield f"axis: the tokens at step {step} are {tokens.get(step)}, not {value}"
    if "last_tokens_bounds" in expect:
        lowest, highest = expect["last_tokens_bounds"]
        if not lowest <= last <= highest or meta["tokens"]["bounds"] != [lowest, highest]:
            yield f"axis: the bounds are {meta['tokens']['bounds']}, not {[lowest, highest]}"
    if "tokens_between_first_and_last" in expect:
        between = last - float(columns["tokens"][0])
        if between != expect["tokens_between_first_and_last"]:
            yield f"axis: {between:,.0f} tokens between first and last row"
    if "warmup_end_step" in expect:
        accepted, end = expect["warmup_end_step"], meta["warmup"]["end_step"]
        if (accepted is None) != (end is None) or (accepted and not accepted[0] <= end <= accepted[1]):
            yield f"axis: the warm-up ends at {end}, not in {accepted}"


def _answers(outcome: Outcome, expect: dict[str, Any]) -> Iterator[str]:
    """Crossings, predictions and verdicts."""
    if outcome.fits is None or outcome.axis is None:
        return
    for crossing in expect.get("crossings", []):
        answer = outcome.target(crossing["target"])
        status = "reached" if crossing["in_log"] else "predicted"
        within = answer["tokens"] is not None and crossing["lo"] <= answer["tokens"] <= crossing["hi"]
        flagged = "either" in expect and not crossing["in_log"] and outcome.says(["bound", "pinned", "alpha"])
        if not (answer["status"] == status and within) and not flagged:
            yield f"fits: {status} in {crossing['lo']:,}..{crossing['hi']:,}, but {_short(answer)}"
    last = float(outcome.axis.columns["tokens"][-1])
    for answer in outcome.fits["targets"]:
        if answer["status"] == "predicted" and answer["tokens"] <= last:
            yield f"fits: predicted inside the log: {_short(answer)}"
    for key, forbidden in (
        ("not_reached", ["reached"]),
        ("below_at_start", ["reached", "predicted"]),
        ("unreachable", ["reached", "predicted", "not_available"]),
        ("no_prediction_for", ["reached", "predicted"]),
    ):
        for loss in expect.get(key, []):
            if outcome.target(loss)["status"] in forbidden:
                yield f"fits: {key}, but {_short(outcome.target(loss))}"
    assert outcome.sweep is not None
    for verdict in outcome.sweep["verdicts"]:
        if verdict["verdict"] in expect.get("verdict_not", []):
            yield f"stability: {verdict['target']} is {verdict['verdict']}: {verdict['reason']}"


def fit_differences(outcome: Outcome, case: dict[str, Any]) -> list[str]:
    """The fitted law against the one that made the log, within the truth's tolerances."""
    truth, fits = case["expect"]["fit"], outcome.fits
    if fits is None or fits["fit"] is None:
        return [f"fits: no fit: {fits and fits['fit_not_available']}"]
    unit = fits["fit"]["token_unit"] / 1e9  # A belongs to tokens counted in 1e9
    coefficient = fits["fit"]["coefficient"] * unit ** fits["fit"]["exponent"]
    found = {"L0": fits["fit"]["irreducible_loss"], "A": coefficient, "alpha": fits["fit"]["exponent"]}
    return [
        f"fits: {key} is {value:.4f}, not {truth[key]} within {truth['tol'][key]}"
        for key, value in found.items()
        if abs(value - truth[key]) > truth["tol"][key]
    ]


def verdict_differences(outcome: Outcome, partner: Outcome) -> list[str]:
    """Verdicts of two cases that must agree."""
    assert outcome.sweep is not None and partner.sweep is not None
    found, expected = ({v["target"]: v["verdict"] for v in one.sweep["verdicts"]} for one in (outcome, partner))
    return [] if found == expected else [f"stability: verdicts {found} differ from the partner's {expected}"]


def _short(answer: dict[str, Any]) -> str:
    tokens = "" if answer["tokens"] is None else f" at {answer['tokens']:,.0f}"
    return f"{answer['target']} is {answer['status']}{tokens} ({answer['reason']})"
