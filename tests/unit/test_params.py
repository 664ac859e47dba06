"""Parameters: one place for defaults, and messages that name the key."""

from __future__ import annotations

import copy
from pathlib import Path
from typing import Any

import pytest

from tokenaxis import params
from tokenaxis.errors import TokenAxisError
from tokenaxis.pipeline.names import check_names


@pytest.fixture
def defaults(root: Path) -> dict[str, Any]:
    """What params.yaml holds."""
    return params.load_yaml(root / "params.yaml")


def with_value(data: dict[str, Any], key: str, value: Any) -> dict[str, Any]:
    """A copy with one key (dotted) set."""
    changed = copy.deepcopy(data)
    place = changed
    *path, last = key.split(".")
    for part in path:
        place = place[part]
    place[last] = value
    return changed


def test_the_defaults_are_valid(defaults: dict[str, Any], tmp_path: Path) -> None:
    assert params.check(defaults, "params.yaml", tmp_path) == defaults


@pytest.mark.parametrize(
    ("key", "value", "said"),
    [
        ("fits.lwa", "power", "lwa"),
        ("unknown", 1, "unknown"),
        ("fits.law", "magic", "fits.law"),
        ("fits.targets", ["1e9"], "write 1.0e+9, not 1e9"),
        ("fits.targets", [float("nan")], "fits.targets.0: nan is not a finite number"),
        ("fits.horizon_sd", float("inf"), "fits.horizon_sd: inf is not a finite number"),
        ("fits.auto_target_spacing", 1e-300, "fits.auto_target_spacing"),
        ("fits.bins", 10**9, "fits.bins"),
        ("stability.windows", 10**9, "stability.windows"),
        ("runs.shards", 10**9, "runs.shards"),
        ("runs.strict", "yes", "runs.strict"),
        ("sweep", "../elsewhere", "sweep"),
        ("sweep", "", "sweep"),
    ],
)
def test_a_wrong_value_is_refused_and_its_key_named(
    defaults: dict[str, Any], tmp_path: Path, key: str, value: Any, said: str
) -> None:
    with pytest.raises(TokenAxisError) as refused:
        params.check(with_value(defaults, key, value), "params.yaml", tmp_path)
    assert said in str(refused.value)
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize(
    "section", ["runs", "token_axis", "fits", "stability", "conventions", "passports", "comparison"]
)
def test_a_missing_section_is_refused(defaults: dict[str, Any], tmp_path: Path, section: str) -> None:
    del defaults[section]
    with pytest.raises(TokenAxisError, match=section):
        params.check(defaults, "params.yaml", tmp_path)


def test_a_convention_that_does_not_exist_is_refused_with_those_that_do(defaults: dict[str, Any]) -> None:
    with pytest.raises(TokenAxisError, match="conventions.convention.*kaplann") as refused:
        check_names(with_value(defaults, "conventions.convention", "kaplann"), "params.yaml")
    assert "kaplan" in str(refused.value).replace("kaplann", "")


def test_what_was_found_valid_is_remembered_by_content(defaults: dict[str, Any], tmp_path: Path) -> None:
    params.check(defaults, "params.yaml", tmp_path)
    remembered = list(tmp_path.rglob("*.valid"))
    assert len(remembered) == 1
    with pytest.raises(TokenAxisError):  # other content is looked at, whatever is remembered
        params.check(with_value(defaults, "fits.law", "magic"), "params.yaml", tmp_path)


def test_broken_yaml_names_the_line(tmp_path: Path) -> None:
    (tmp_path / "params.yaml").write_text("sweep: a\nfits: {targets: [1, 2\n", encoding="utf-8")
    with pytest.raises(TokenAxisError) as refused:
        params.load_yaml(tmp_path / "params.yaml")
    assert refused.value.line is not None and refused.value.line >= 2
