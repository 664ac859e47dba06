"""What happens before Snakemake's first job."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace

import pytest

from tokenaxis.errors import TokenAxisError
from tokenaxis.pipeline import ahead, engine, refusals
from tokenaxis.pipeline.spec import PER_RUN

LOCAL, REMOTE = (SimpleNamespace(common_settings=SimpleNamespace(local_exec=local)) for local in (True, False))


def asked(**targets: object) -> SimpleNamespace:
    return SimpleNamespace(**{"targets": [], "target_jobs": [], "until": [], "omit_from": []} | targets)


@pytest.fixture
def plan(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> engine.Plan:
    monkeypatch.chdir(tmp_path)
    return engine.Plan(Path("results/mine"), [], {})


def allowed(plan: engine.Plan) -> list[str]:
    note = plan.results / ".engine" / "ahead.txt"
    return note.read_text().split() if note.exists() else []


def test_jobs_go_on_only_if_all_stages_were_asked_for(plan: engine.Plan) -> None:
    for target in ("targets", "target_jobs", "until", "omit_from"):
        engine.on_start(plan, asked(**{target: ["fits"]}), LOCAL, {})
        assert allowed(plan) == []
    engine.on_start(plan, asked(), LOCAL, {})
    assert allowed(plan) == list(PER_RUN)
    ahead.allow(plan.results, ())
    assert allowed(plan) == []


@pytest.mark.parametrize("value", ["l $(touch PWNED) x", "`touch PWNED`", 'a" ; touch PWNED; "'])
def test_what_a_clusters_shell_would_expand_is_refused(value: str, plan: engine.Plan) -> None:
    engine.on_start(plan, asked(), LOCAL, {"logs": value})  # here it is quoted by Snakemake itself
    with pytest.raises(TokenAxisError, match="would expand"):
        engine.on_start(plan, asked(), REMOTE, {"logs": value})


def test_a_working_directory_that_a_clusters_shell_would_expand_is_refused(
    plan: engine.Plan, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "$(date)").mkdir()
    monkeypatch.chdir(tmp_path / "$(date)")
    with pytest.raises(TokenAxisError, match="would expand"):
        engine.on_start(plan, asked(), REMOTE, {})


def test_a_storage_provider_is_refused_by_its_name() -> None:
    refusals.refuse_moved_results("results", None)
    with pytest.raises(TokenAxisError, match="s3"):
        refusals.refuse_moved_results("results", "s3")
