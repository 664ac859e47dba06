"""What the run did: tokens, steps, attempts, batches; and what came out."""

from __future__ import annotations

from typing import Any

from tokenaxis.facts import weakest
from tokenaxis.passport.evidence import Evidence, present


def training(evidence: Evidence) -> dict[str, Any]:
    """The `training` section; trainmeter's keys (steps, tokens_seen, tokens_per_step, ...) and the token axis' own."""
    axis, stages = evidence.axis, evidence.stages
    seen, planned = evidence.conventions.get("tokens_seen"), planned_tokens(evidence)
    batch_source = (axis.get("batch") or {}).get("source")
    return present(
        {
            "steps": steps_done(evidence),
            "tokens_seen": seen,
            "tokens_per_step": {"value": stages[-1]["tokens_per_step"], "source": batch_source} if stages else None,
            "tokens_per_s": evidence.fact("tokens_per_s"),
            "moving_tokens_per_s": evidence.fact("moving_tokens_per_s"),
            "budget_tokens": planned,
            "progress": None if planned is None or seen is None else seen / planned,
            "eta_s": eta_s(evidence),
            "superseded_s": superseded_s(evidence),
            "superseded_gpu_hours": superseded_gpu_hours(evidence),
            "tokens": axis.get("tokens"),
            "batch_schedule": [dict(stage) for stage in stages],
            "attempts": axis.get("attempts") or [],
            "superseded_tokens": axis.get("superseded_tokens"),
            "rows": axis.get("rows"),
            "unusable": axis.get("unusable") or [],
            "warmup": axis.get("warmup"),
            "lr": axis.get("lr"),
        }
    )


def steps_done(evidence: Evidence) -> int | None:
    """Optimizer steps from the start of the run to its last row, that row's own step included.

    Steps before the first row are counted by the tokens they took, at the first row's batch.
    """
    stages = evidence.stages
    if not stages:
        return None
    before = round(stages[0]["first_tokens"] / stages[0]["tokens_per_step"])
    return int(stages[-1]["last_step"] - stages[0]["first_step"] + 1 + before)


def planned_tokens(evidence: Evidence) -> float | None:
    """The planned end in tokens; a plan in steps counts where the batch never changed, one in FLOPs under the chosen
    convention."""
    if (tokens := evidence.fact("planned_tokens")) is not None:
        return float(tokens)
    steps, stages = evidence.fact("planned_steps"), evidence.stages
    if steps is not None:
        return float(steps * stages[0]["tokens_per_step"]) if len(stages) == 1 else None
    flops, chosen = evidence.fact("planned_flops"), evidence.chosen
    return None if flops is None or chosen is None else flops / evidence.conventions["flops_per_token"][chosen]


def eta_s(evidence: Evidence) -> float | None:
    """Seconds to the planned end at the whole run's pace; 0 once it is reached."""
    planned, seen = planned_tokens(evidence), evidence.conventions.get("tokens_seen")
    rate = evidence.fact("tokens_per_s")
    if planned is None or seen is None or rate is None:
        return None
    return float(max(planned - seen, 0) / rate)


def lost_seconds(evidence: Evidence) -> list[float] | None:
    """Wall time of each attempt's superseded steps, where the log has wall times for all of them."""
    lost = [
        attempt.get("superseded_s")
        for attempt in evidence.axis.get("attempts") or ()
        if attempt.get("superseded_rows") or attempt.get("superseded_tokens")
    ]
    return lost if lost and None not in lost else None


def superseded_s(evidence: Evidence) -> dict[str, Any] | None:
    """Wall time that abandoned attempts cost: from the log's own wall times, else estimated at the whole run's pace."""
    if (lost := lost_seconds(evidence)) is not None:
        return {"value": float(sum(lost)), "source": "measured"}
    wasted, rate = evidence.axis.get("superseded_tokens"), evidence.facts.get("tokens_per_s")
    if not wasted or rate is None:
        return None
    note = "estimate: superseded tokens at the whole run's pace"
    return {"value": float(wasted / rate["value"]), "source": weakest([rate["source"], "assumed"]), "note": note}


def superseded_gpu_hours(evidence: Evidence) -> float | None:
    """Device hours that abandoned attempts cost."""
    lost, gpus = superseded_s(evidence), evidence.fact("n_gpus")
    return None if lost is None or gpus is None else float(lost["value"] * gpus / 3600)


def results(evidence: Evidence) -> dict[str, Any]:
    """The `results` section: column -> last value (trainmeter's `value`), where, the first and the best, smoothed."""
    sections: dict[str, Any] = {}
    names = evidence.axis.get("columns") or {}
    for column, summary in sorted((evidence.axis.get("losses") or {}).items()):
        last = summary["last"]
        sections[column] = present(
            {
                "value": last["loss"],
                "step": last["step"],
                "tokens": last["tokens"],
                "first": summary.get("first"),
                "best": summary.get("best"),
                "count": summary.get("rows"),
                "key": names.get(column),
            }
        )
    column, observed = evidence.fits.get("loss"), evidence.fits.get("observed") or {}
    if column and observed.get("loss") is not None:
        entry = sections.setdefault(column, {"value": observed["loss"], "smoothed_only": True})
        entry["smoothed"] = {key: observed[key] for key in ("loss", "step", "tokens") if observed.get(key) is not None}
    return sections


def targets(evidence: Evidence) -> list[dict[str, Any]]:
    """The `targets` section: each target's outcome, its verdict, and what it costs."""
    verdicts = {entry["target"]: entry for entry in evidence.stability.get("verdicts") or ()}
    costs = {entry["target"]: entry for entry in evidence.conventions.get("flops_to_target") or ()}
    section = []
    for outcome in evidence.fits.get("targets") or ():
        verdict, cost = verdicts.get(outcome["target"], {}), costs.get(outcome["target"], {})
        entry = dict(outcome)
        entry["verdict"], entry["verdict_reason"] = verdict.get("verdict"), verdict.get("reason")
        entry["flops"] = cost.get("flops") or {}
        section.append(entry)
    return section


def fit(evidence: Evidence) -> dict[str, Any]:
    """The `fit` section: which loss, which law, its parameters."""
    keys = ("loss", "loss_reason", "rows", "law", "law_reason", "fit_start_step", "fit", "fit_not_available")
    return present({key: evidence.fits.get(key) for key in keys})


def plan(evidence: Evidence) -> dict[str, Any]:
    """The `plan` section: planned against measured."""
    section: dict[str, Any] = {}
    if (tokens := planned_tokens(evidence)) is not None:
        seen = evidence.conventions.get("tokens_seen")
        section["tokens"] = {"planned": tokens, "measured": seen}
    if (steps := evidence.fact("planned_steps")) is not None:
        section["steps"] = {"planned": steps, "measured": steps_done(evidence)}
    if (share := evidence.fact("plan_mfu")) is not None:
        mfu = evidence.conventions.get("mfu") or {}
        section["mfu"] = {"planned": share, "measured": mfu.get("value"), "convention": mfu.get("convention")}
    if (rate := evidence.fact("plan_tokens_per_s")) is not None:
        section["tokens_per_s"] = {"planned": rate, "measured": evidence.fact("tokens_per_s")}
    if (hours := evidence.fact("plan_hours")) is not None:
        section["hours"] = {"planned": hours, "projected": _projected_hours(evidence)}
    return section


def _projected_hours(evidence: Evidence) -> float | None:
    """Wall time of the whole plan at the measured pace, the time so far included."""
    elapsed, rate = evidence.fact("elapsed_s"), evidence.fact("tokens_per_s")
    planned, seen = planned_tokens(evidence), evidence.conventions.get("tokens_seen")
    if elapsed is None or rate is None or planned is None or seen is None:
        return None
    return float(elapsed + max(planned - seen, 0) / rate) / 3600
