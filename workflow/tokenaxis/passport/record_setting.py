"""What the log held and what the run ran on, in Markdown: parts of the full record."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tokenaxis.passport import text
from tokenaxis.passport.text import Numbers

_ROWS = ("read", "bad", "superseded", "merged", "kept", "with_train_loss", "with_val_loss")


def log(passport: Mapping[str, Any], show: Numbers) -> list[str]:
    """Rows, cells without a number, what tokens count, learning rate."""
    training = passport["training"]
    rows = training.get("rows") or {}
    counted = [(key.replace("_", " "), text.count(rows[key])) for key in _ROWS if key in rows]
    lines = text.table(("Rows", "Count"), ((text.plain(name), number) for name, number in counted))
    cells = [
        (
            text.code(entry["column"]),
            text.plain(entry["kind"]),
            text.count(entry["rows"]),
            f"{text.count(entry['first_step'])} to {text.count(entry['last_step'])}",
        )
        for entry in training.get("unusable") or ()
    ]
    lines += text.table(("Column", "No number but", "Rows", "Steps"), cells)
    lines += _sentences(training, show)
    return [*lines, ""] if lines and lines[-1] else lines


def _sentences(training: Mapping[str, Any], show: Numbers) -> list[str]:
    lines = []
    if tokens := training.get("tokens"):
        said = f" ({text.plain(tokens['convention_source'])})" if tokens.get("convention_source") else ""
        convention = f"{text.plain(tokens.get('convention'))} the step{said}"
        lines.append(f"Tokens come from {text.plain(tokens.get('source'))}, counted {convention}.")
        if bounds := tokens.get("bounds"):
            low, high = text.whole(*bounds)
            lines.append(f"The log leaves the last count open between {low} and {high}.")
    if warmup := training.get("warmup"):
        end = warmup.get("end_step")
        lines.append(
            f"Warm-up: {text.plain(warmup['reason'])}."
            if end is None
            else f"Warm-up ends at step {text.count(end)}: {text.plain(warmup['reason'])}."
        )
    if rate := training.get("lr"):
        lines.append(
            f"Learning rate: {show.measure(rate['peak'])} at its peak, {show.measure(rate['last'])} at the end."
        )
    return lines


def hardware(passport: Mapping[str, Any], show: Numbers) -> list[str]:
    """Devices and their peak."""
    section = passport["hardware"]
    rows = [("device", text.plain(device["name"]), "") for device in section.get("devices") or ()]
    for key, name in (("n_gpus", "devices"), ("precision", "precision")):
        if (fact := section.get(key)) is not None:
            rows.append((name, show.value(fact["value"]), _source(fact)))
    if (peak := section.get("peak")) is not None:
        said = f"{text.plain(peak['kind'])}: {text.plain(peak['source'])}"
        checked = f", checked {text.plain(peak['checked'])}" if peak.get("checked") else ""
        precision = f"dense {peak['precision']} peak" if peak.get("precision") else "dense peak"
        rows.append((precision, f"{show.flops(peak['dense_flops'])} FLOP/s", said + checked))
        if peak.get("memory_bytes_per_s") is not None:
            kind = text.plain(peak.get("memory_kind") or "memory")
            rows.append((f"{kind} bandwidth", f"{show.measure(peak['memory_bytes_per_s'])} byte/s", said + checked))
    return text.table(("Hardware", "Value", "Source"), rows)


def software(passport: Mapping[str, Any], show: Numbers) -> list[str]:
    """Versions of software, and how the job was laid out."""
    rows = [(text.plain(name), text.plain(version), "") for name, version in passport["versions"].items()]
    for key, entry in passport["topology"].items():
        fact = entry if isinstance(entry, Mapping) else {"value": entry}
        rows.append((text.code(key), show.value(fact["value"]), _source(fact)))
    return text.table(("Software and topology", "Value", "Source"), rows)


def _source(fact: Mapping[str, Any]) -> str:
    """Source and note of a fact."""
    note = f" ({fact['note']})" if fact.get("note") else ""
    return text.plain(f"{fact['source']}{note}") if "source" in fact else ""
