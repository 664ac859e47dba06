"""The passport as Markdown: what a model card takes first, the full record folded away behind it.

It starts at a second-level heading, so it pastes into a Hugging Face model card as it is. One sentence per line, tables
for numbers. It shows the same content as the JSON and adds nothing.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tokenaxis.passport import text
from tokenaxis.passport.record import record

SUMMARY = "Run record: every number with its source"


def to_markdown(passport: Mapping[str, Any]) -> str:
    """The passport (see build) as Markdown. Whatever comes from a log or a name is escaped."""
    lines = [f"## Training run {text.plain(passport['run']['name'])}", ""]
    lines += _speeds(passport) + _targets(passport) + _infrastructure(passport)
    lines += ["<details>", f"<summary>{SUMMARY}</summary>", "", *record(passport), "</details>"]
    return "\n".join(lines) + "\n"


def _speeds(passport: Mapping[str, Any]) -> list[str]:
    run, training, flops = passport["run"], passport["training"], passport["flops"]
    rows: list[tuple[str, str]] = []
    if "elapsed_s" in run:
        rows.append(("Wall time", text.duration(run["elapsed_s"])))
    if "gpu_hours" in run:
        rows.append(("GPU-hours", text.measure(run["gpu_hours"])))
    if "steps" in training:
        rows.append(("Optimizer steps", text.count(training["steps"])))
    if "tokens_seen" in training:
        rows.append(("Tokens seen", text.count(training["tokens_seen"])))
    if training.get("superseded_tokens"):
        rows.append(("Tokens trained and thrown away", text.count(training["superseded_tokens"])))
    if "tokens_per_step" in training:
        rows.append(("Tokens per step, latest", text.count(training["tokens_per_step"]["value"])))
    if "tokens_per_s" in training:
        rows.append(("Throughput", f"{text.count(training['tokens_per_s'])} tokens/s"))
    rows += [("Training compute", compute) for compute in _compute(flops)]
    if mfu := passport["efficiency"].get("mfu"):
        rows.append(("MFU", f"{text.spread(mfu, text.percent)}, {_by(mfu)}, {_peak_of(mfu)}"))
    for column, result in passport["results"].items():
        which = "smoothed" if result.get("smoothed_only") else "last"
        rows.append((f"{text.plain(column)}, {which}", text.measure(result["value"], "nats/token")))
    if cost := passport["cost"]:
        rows.append(("Cost", f"{text.measure(cost['total_usd'])} USD"))
    body = text.table(("Item", "Value"), rows) or ["Not available: the log gave no step.", ""]
    return ["### Speeds, Sizes, Times", "", *body]


def _compute(flops: Mapping[str, Any]) -> list[str]:
    if spent := flops.get("flops_spent"):
        return [f"{text.flops(spent['value'])} FLOPs, convention {text.code(spent['convention'])}"]
    if span := flops.get("flops_spent_range"):
        return [f"{text.flops(span[0])} to {text.flops(span[1])} FLOPs, over all conventions"]
    return []


def _by(entry: Mapping[str, Any]) -> str:
    convention = entry.get("convention")
    return "over all conventions" if convention is None else f"convention {text.code(convention)}"


def _peak_of(mfu: Mapping[str, Any]) -> str:
    return f"against the {mfu['peak_kind']} dense peak of {text.plain(mfu['peak'])}"


def _targets(passport: Mapping[str, Any]) -> list[str]:
    rows = [
        (
            text.measure(target["target"]),
            text.plain(target["status"]),
            text.position(target.get("tokens")),
            _interval(target),
            text.position(target.get("step")),
            text.plain(target.get("law") or text.NOTHING),
            text.measure(target.get("horizon")),
            text.plain(target.get("verdict") or text.NOTHING),
        )
        for target in passport["targets"]
    ]
    head = ("Target loss", "Status", "Tokens", "Interval in tokens", "Step", "Law", "Horizon", "Verdict")
    return ["### Tokens to target loss", "", *(text.table(head, rows) or ["Not available: no target.", ""])]


def _interval(target: Mapping[str, Any]) -> str:
    interval = target.get("interval")
    if not interval:
        return text.NOTHING
    low, high = interval
    level = target.get("interval_level")
    ends = f"{text.position(low)} to {'unbounded' if high is None else text.position(high)}"
    return ends if level is None else f"{ends} ({level:.0%})"


def _infrastructure(passport: Mapping[str, Any]) -> list[str]:
    hardware, versions = passport["hardware"], passport["versions"]
    lines = []
    names = [text.plain(device["name"]) for device in hardware.get("devices", ())]
    if "n_gpus" in hardware:
        names = [f"{text.count(hardware['n_gpus']['value'])} x {names[0] if names else 'GPU'}"]
    if names:
        lines.append(f"- **Hardware:** {names[0]}")
    if versions:
        lines.append(
            "- **Software:** " + ", ".join(f"{name} {text.plain(version)}" for name, version in versions.items())
        )
    return ["### Compute Infrastructure", "", *lines, ""] if lines else []
