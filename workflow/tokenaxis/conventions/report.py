"""The content of conventions/<run>.json: counts, what the run spent, what its targets cost, utilisation."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from tokenaxis.conventions.compute import Counts, count, whole
from tokenaxis.conventions.counters import report_counters
from tokenaxis.conventions.registry import REGISTRY, TRAINMETER_NAMES, lookup
from tokenaxis.conventions.utilisation import describe, report_mfu
from tokenaxis.errors import Notice
from tokenaxis.facts import FactStore, weakest
from tokenaxis.hardware import Device, find_peak
from tokenaxis.shapes import Shape, check, complete

_ONE_DEVICE_EACH = "assumed: one process per device"
#: what tells that a run was on accelerators at all; processes of a run on processors are no devices
_DEVICE = ("gpu", "cuda", "peak_tflops")


def report(
    facts: FactStore,
    axis_meta: Mapping[str, Any],
    fits: Mapping[str, Any],
    chosen: str | None = None,
    devices: Sequence[Device] = (),
) -> dict[str, Any]:
    """All of conventions/<run>.json but schema, fingerprint and run; see docs/artifacts.md.

    Args:
        facts: what is known of the run (tokenaxis.facts.gather).
        axis_meta: metadata of its token axis.
        fits: its fits artifact; of it only `targets`.
        chosen: the headline convention (a registry name or alias), or None for the range over all. A run that was
            logged with trainmeter's `convention` keeps that one when nothing is chosen.
        devices: the hardware catalogue.

    Raises:
        TokenAxisError: `chosen` is no convention.
    """
    known = facts.copy()
    world = known.get("world_size")
    if "n_gpus" not in known and world is not None and any(key in known for key in _DEVICE):
        known.offer("n_gpus", world.value, weakest([world.source, "assumed"]), f"= world_size; {_ONE_DEVICE_EACH}")
    shape = complete(known)
    counts = count(shape)
    name, name_source = _headline(chosen, known)
    not_available: dict[str, str | None] = dict(counts.not_available)
    tokens, reason = tokens_seen(axis_meta)
    if tokens is None:
        not_available["flops_spent"] = reason
    elif not counts.flops_per_token:
        not_available["flops_spent"] = "no convention could be computed"
    peak, reason = find_peak(shape.facts, devices)
    if peak is None:
        not_available["peak"] = reason
    mfu, reason = report_mfu(counts.flops_per_token, shape.facts, name, peak)
    if mfu is None:
        not_available["mfu"] = reason or not_available["peak"]
    counters, reasons = report_counters(shape.facts, peak, mfu)
    not_available |= reasons
    return {
        "facts": shape.facts.as_dict(),
        "derived": {
            key: {"formula": how.formula, "inputs": list(how.inputs)} for key, how in sorted(shape.derivations.items())
        },
        "conflicts": [conflict.as_dict() for conflict in facts.conflicts],
        "flops_per_token": counts.flops_per_token,
        "formulas": {key: REGISTRY[key].formula for key in counts.flops_per_token},
        "inputs": {key: list(REGISTRY[key].needs) for key in counts.flops_per_token},
        "sources": counts.sources,
        "convention": name,
        "convention_source": name_source,
        "counted": counted(facts, counts),
        "tokens_seen": tokens,
        "flops_spent": _times(counts, tokens),
        "flops_superseded": _times(counts, axis_meta.get("superseded_tokens")),
        "flops_to_target": [_to_target(target, counts) for target in fits.get("targets", ())],
        "peak": None if peak is None else describe(peak),
        "mfu": mfu,
        "counters": counters,
        "not_available": not_available,
        "warnings": [notice.as_dict() for notice in _warnings(facts, shape, mfu)],
    }


def tokens_seen(axis_meta: Mapping[str, Any]) -> tuple[float | None, str | None]:
    """Tokens that the run has consumed, its last step included; (None, reason) if that cannot be told.

    The axis counts tokens before a step, and the last row's step was trained on as well. Tokens of abandoned attempts
    are not among them: they are the axis' `superseded_tokens`.
    """
    last = (axis_meta.get("tokens") or {}).get("last")
    stages = (axis_meta.get("batch") or {}).get("stages") or []
    if last is None or not stages:
        return None, "the token axis has no rows"
    return whole(last + stages[-1]["tokens_per_step"]), None


def counted(facts: FactStore, counts: Counts) -> dict[str, Any] | None:
    """Operators that were counted while the model ran, beside what the conventions say; None if nobody counted."""
    fact = facts.get("counted_flops_per_token")
    if fact is None:
        return None
    return {
        "per_token": fact.value,
        "source": fact.source,
        "note": fact.note,
        "against_conventions": {name: fact.value / flops for name, flops in counts.flops_per_token.items()},
    }


def _headline(chosen: str | None, facts: FactStore) -> tuple[str | None, str | None]:
    """(convention, who chose it)."""
    if chosen is not None:
        return lookup(chosen).name, "declared"
    logged = facts.get("convention")
    if logged is None or logged.value not in TRAINMETER_NAMES:
        return None, None
    return TRAINMETER_NAMES[logged.value], logged.source


def _times(counts: Counts, tokens: float | None) -> dict[str, float]:
    if tokens is None:
        return {}
    return {name: whole(flops * tokens) for name, flops in counts.flops_per_token.items()}


def _to_target(target: Mapping[str, Any], counts: Counts) -> dict[str, Any]:
    tokens = target.get("tokens")
    entry = {"target": target["target"], "status": target["status"], "tokens": tokens, "flops": _times(counts, tokens)}
    if tokens is None:
        entry["reason"] = target.get("reason") or f"the target is {target['status'].replace('_', ' ')}"
    return entry


def _warnings(facts: FactStore, shape: Shape, mfu: Mapping[str, Any] | None) -> list[Notice]:
    notices = [
        Notice("fact_rejected", f"{fact.key} = {str(fact.value)[:80]} ({fact.source}) is set aside: {reason}")
        for fact, reason in facts.rejected
    ]
    notices += [Notice("facts_contradict", contradiction) for contradiction in check(shape)]
    if mfu is not None:
        highest = max(mfu.get("range") or [mfu["value"]])
        if highest > 1:
            # NeMo-RL issue 1015 reports 156 %: gradient accumulation or the number of devices counted wrongly
            notices.append(
                Notice(
                    "mfu_above_one",
                    f"an MFU of {highest:.0%} is impossible: check tokens_per_s (gradient accumulation?), n_gpus, gpu",
                )
            )
    return notices
