"""The passport as Markdown: what a model card takes first, the full record folded away behind it.

It starts at a second-level heading, so it pastes into a Hugging Face model card as it is. One sentence per line, tables
for numbers. It shows the same content as the JSON and adds nothing: what was counted exactly, what was measured or
predicted to so many significant digits, intervals rounded outward. All digits are in the JSON.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tokenaxis.passport import text
from tokenaxis.passport.record import record
from tokenaxis.passport.text import Numbers

#: status of a target that was reached inside the log
REACHED = "reached"
SUMMARY = "Run record: every number with its source"


def to_markdown(passport: Mapping[str, Any], significant_digits: int) -> str:
    """The passport (see build) as Markdown. Whatever comes from a log or a name is escaped.

    Args:
        passport: as `build` makes it.
        significant_digits: of numbers that are measured or predicted (params.yaml, passports.significant_digits).
    """
    show = Numbers(significant_digits)
    lines = [f"## Training run {text.plain(passport['run']['name'])}", ""]
    lines += _speeds(passport, show) + _targets(passport, show) + _infrastructure(passport)
    lines += ["<details>", f"<summary>{SUMMARY}</summary>", "", *record(passport, show), "</details>"]
    return "\n".join(lines) + "\n"


def _speeds(passport: Mapping[str, Any], show: Numbers) -> list[str]:
    rows = [*_extent(passport, show), *_rates(passport, show)]
    for column, result in passport["results"].items():
        which = "smoothed" if result.get("smoothed_only") else "last"
        rows.append((f"{text.plain(column)}, {which}", show.measure(result["value"], "nats/token")))
    if cost := passport["cost"]:
        rows.append(("Cost", money(cost["total"], cost, show)))
    body = text.table(("Item", "Value"), rows) or ["Not available: the log gave no step.", ""]
    return ["### Speeds, Sizes, Times", "", *body]


def _extent(passport: Mapping[str, Any], show: Numbers) -> list[tuple[str, str]]:
    """How long, how far, and what was thrown away."""
    run, training = passport["run"], passport["training"]
    rows: list[tuple[str, str]] = []
    if "elapsed_s" in run:
        rows.append(("Wall time", text.duration(run["elapsed_s"])))
    if "gpu_hours" in run:
        rows.append(("GPU-hours", show.measure(run["gpu_hours"])))
    if "steps" in training:
        rows.append(("Optimizer steps", text.count(training["steps"])))
    if "tokens_seen" in training:
        rows.append(("Tokens seen", text.count(training["tokens_seen"])))
    if "progress" in training:
        rows.append(
            ("Progress", f"{show.percent(training['progress'])} of {text.count(training['budget_tokens'])} tokens")
        )
    if training.get("eta_s"):
        rows.append(("Time to the planned end, at the whole run's pace", text.duration(training["eta_s"])))
    if training.get("superseded_tokens"):
        rows.append(("Tokens trained and thrown away", text.count(training["superseded_tokens"])))
    if "superseded_s" in training:
        rows.append(("Wall time thrown away", text.duration(training["superseded_s"]["value"])))
    if "superseded_gpu_hours" in training:
        rows.append(("GPU-hours thrown away", show.measure(training["superseded_gpu_hours"])))
    return rows


def _rates(passport: Mapping[str, Any], show: Numbers) -> list[tuple[str, str]]:
    """How fast, and what it took."""
    training = passport["training"]
    rows: list[tuple[str, str]] = []
    if "tokens_per_step" in training:
        rows.append(("Tokens per step, latest", text.count(training["tokens_per_step"]["value"])))
    if "tokens_per_s" in training:
        rows.append(("Throughput", show.measure(training["tokens_per_s"], "tokens/s")))
    if "moving_tokens_per_s" in training:
        rows.append(("Throughput at the end, smoothed", show.measure(training["moving_tokens_per_s"], "tokens/s")))
    rows += [("Training compute", compute) for compute in _compute(passport["flops"], show)]
    if mfu := passport["efficiency"].get("mfu"):
        rows.append(("MFU", f"{text.spread(mfu, show.percent)}, {_by(mfu)}, {_peak_of(mfu)}"))
    return rows


def money(amount: float, cost: Mapping[str, Any], show: Numbers) -> str:
    """An amount in the currency of the declared price."""
    return f"{show.measure(amount)} {text.plain(cost['currency'])}"


def _compute(flops: Mapping[str, Any], show: Numbers) -> list[str]:
    if spent := flops.get("flops_spent"):
        return [f"{show.flops(spent['value'])} FLOPs, convention {text.code(spent['convention'])}"]
    if span := flops.get("flops_spent_range"):
        return [f"{show.flops(span[0])} to {show.flops(span[1])} FLOPs, over all conventions"]
    return []


def _by(entry: Mapping[str, Any]) -> str:
    convention = entry.get("convention")
    return "over all conventions" if convention is None else f"convention {text.code(convention)}"


def _peak_of(mfu: Mapping[str, Any]) -> str:
    return f"against the {mfu['peak_kind']} dense peak of {text.plain(mfu['peak'])}"


def _targets(passport: Mapping[str, Any], show: Numbers) -> list[str]:
    rows = [
        (
            text.exact(target["target"]),
            text.plain(target["status"].replace("_", " ")),
            _place(target, "tokens", show),
            _interval(target, show),
            _place(target, "step", show),
            text.plain(target.get("law") or text.NOTHING),
            show.measure(target.get("horizon")),
            text.plain(target.get("verdict") or text.NOTHING),
        )
        for target in passport["targets"]
    ]
    head = ("Target loss", "Status", "Tokens", "Interval in tokens", "Step", "Law", "Horizon", "Verdict")
    return ["### Tokens to target loss", "", *(text.table(head, rows) or ["Not available: no target.", ""])]


def _place(target: Mapping[str, Any], axis: str, show: Numbers) -> str:
    """A place inside the log to the nearest whole number, a predicted one to the significant digits."""
    return (text.count if target["status"] == REACHED else show.measure)(target.get(axis))


def _interval(target: Mapping[str, Any], show: Numbers) -> str:
    interval = target.get("interval")
    if not interval:
        return text.NOTHING
    low, high = (text.whole if target["status"] == REACHED else show.outward)(*interval)
    level = target.get("interval_level")
    return f"{low} to {high}" if level is None else f"{low} to {high} ({show.measure(level * 100)}%)"


def _infrastructure(passport: Mapping[str, Any]) -> list[str]:
    hardware, versions = passport["hardware"], passport["versions"]
    lines = []
    names = [text.plain(device["name"]) for device in hardware.get("devices", ())]
    if "n_gpus" in hardware:
        names = [f"{text.count(hardware['n_gpus']['value'])} x {names[0] if names else 'device of unknown name'}"]
    if names:
        lines.append(f"- **Hardware:** {names[0]}")
    if versions:
        lines.append(
            "- **Software:** " + ", ".join(f"{name} {text.plain(version)}" for name, version in versions.items())
        )
    return ["### Compute Infrastructure", "", *lines, ""] if lines else []
