"""The passport as data: workflow/schemas/passport.schema.json describes every key."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import tokenaxis
from tokenaxis.facts import ABSENT, MODEL_KEYS
from tokenaxis.passport import absent, compute, training
from tokenaxis.passport.evidence import Evidence, present, sourced
from tokenaxis.passport.explain import explain
from tokenaxis.redaction import redact_text

SCHEMA = "tokenaxis/passport/1"


def build(
    run: Mapping[str, Any],
    axis_meta: Mapping[str, Any],
    fits: Mapping[str, Any],
    stability: Mapping[str, Any],
    conventions: Mapping[str, Any],
    lineage: Mapping[str, Any],
) -> dict[str, Any]:
    """The passport of one run, JSON-ready; nothing in it depends on machine, clock or user.

    Its keys are a superset of trainmeter's schema 2 wherever both state the same thing.

    Args:
        run: its entry in runs.json.
        axis_meta: metadata of its token axis.
        fits, stability, conventions: its artifacts.
        lineage: what made it, e.g. digests of parameters and artifacts; copied as it is.
    """
    evidence = Evidence(run, axis_meta, fits, stability, conventions, lineage)
    passport: dict[str, Any] = {
        "schema": SCHEMA,
        "generated_by": f"tokenaxis {tokenaxis.__version__}",
        "run": _run(evidence),
        "model": _model(evidence),
        "flops": compute.flops(evidence),
        "training": training.training(evidence),
        "results": training.results(evidence),
        "fit": training.fit(evidence),
        "targets": training.targets(evidence),
        "efficiency": compute.efficiency(evidence),
        "hardware": compute.hardware(evidence),
        "topology": compute.topology(evidence),
        "versions": compute.versions(evidence),
        "time": compute.time(evidence),
        "cost": compute.cost(evidence),
        "plan": training.plan(evidence),
        "warnings": _warnings(evidence),
        "conflicts": list(conventions.get("conflicts") or ()),
        "lineage": {"raw_logs": [_raw_log(file) for file in run["files"]], **lineage},
        "explain": explain(evidence),
    }
    passport["not_available"] = absent.not_available(evidence, passport)
    return passport


def _model(evidence: Evidence) -> dict[str, Any]:
    """Facts of the model, given or derived, without what it only lacks."""
    stated = {key: evidence.facts[key] for key in MODEL_KEYS if key in evidence.facts}
    return {key: sourced(fact) for key, fact in stated.items() if fact["source"] != ABSENT}


def _run(evidence: Evidence) -> dict[str, Any]:
    run, command = evidence.run, evidence.fact("command")
    return present(
        {
            "id": run["id"],
            "name": run["name"],
            "format": evidence.axis.get("format") or run.get("format"),
            "files": [_raw_log(file) for file in run["files"]],
            "command": command.split() if isinstance(command, str) else command,
            "elapsed_s": evidence.fact("elapsed_s"),
            "finished": evidence.fact("finished"),
            "exit_status": evidence.fact("exit_status"),
            "gpu_hours": compute.gpu_hours(evidence),
        }
    )


def _raw_log(file: Mapping[str, Any]) -> dict[str, Any]:
    return {key: file[key] for key in ("path", "bytes", "sha256") if key in file}


def _warnings(evidence: Evidence) -> list[dict[str, str]]:
    """Warnings of every stage, each with the stage that gave it."""
    stages = {
        "token_axis": evidence.axis,
        "fits": evidence.fits,
        "stability": evidence.stability,
        "conventions": evidence.conventions,
    }
    return [
        {"stage": stage, "code": warning["code"], "message": redact_text(warning["message"])}
        for stage, artifact in stages.items()
        for warning in artifact.get("warnings") or ()
    ]
