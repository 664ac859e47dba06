"""MLPerf training logs: lines with `:::MLLOG {"key": ..., "value": ..., "metadata": {...}}`.

Losses are `train_loss`, `eval_loss`, those inside `tracked_stats`, and `eval_accuracy` of the language-model
benchmarks, whose "accuracy" is the validation loss (mlcommons/training, large_language_model); it is placed where its
eval_start stands if its own count is one batch less (AMD's). A step stands in the
metadata, or follows from the samples and the global batch size. `epoch_num` is a count of samples, of GPT-3 one of
tokens; a `step` that other entries have as samples_count or epoch_num is such a count, too (NVIDIA's tracked_stats).
"""

from __future__ import annotations

import json
import re
from typing import Any

from tokenaxis.declarations import Declaration
from tokenaxis.errors import Notice, TokenAxisError
from tokenaxis.readers import naming
from tokenaxis.readers.base import RawLog, Reader, Sample
from tokenaxis.readers.content import read_content
from tokenaxis.readers.headers import Fact
from tokenaxis.readers.records import Records, as_number

NAME = "mllog"
_LINE = re.compile(rb"(?m)^[^\n]{0,200}?:::MLLOG (\{[^\n]*)")
_STEPS = ("step", "step_num", "iteration", "global_step")
_SAMPLES = ("samples_count", "samples", "epoch_num")
_LANGUAGE = re.compile(r"gpt|llama|llm|lora|bert_lm|mixtral|deepseek", re.IGNORECASE)
_FACTS = {
    "sequence_length": "seq_len",
    "max_sequence_length": "seq_len",
    "global_batch_size": "global_batch_sequences",
    "opt_base_learning_rate": "lr_peak",
    "opt_learning_rate_warmup_steps": "warmup_steps",
    "max_steps": "planned_steps",
}


def sniff(sample: Sample) -> int:
    """Certain by the lines' mark."""
    return 96 if b":::MLLOG {" in sample.head or b":::MLLOG {" in sample.tail else 0


def read(path: str, declaration: Declaration) -> RawLog:
    """Read an MLPerf log.

    Raises:
        TokenAxisError: it holds no loss with a step.
    """
    content = read_content(path)
    records = Records(declaration.columns)
    entries = _entries(content.data, records)
    if not entries.losses:
        raise TokenAxisError(
            "holds no loss with a step", remedy="see whether its benchmark logs train_loss or eval_loss"
        )
    between = 0
    for line, losses, metadata in entries.losses:
        step, whole = entries.step(metadata)
        between += not whole
        records.add(line, losses | ({} if step is None else {"step": step}))
    if "step" not in records.rows and "global_batch_sequences" not in entries.settings:
        raise TokenAxisError(
            "counts samples and states no global_batch_size, so that steps are not known",
            remedy="give the whole log: MLLOG states global_batch_size before it trains",
        )
    log = records.log(NAME, list(content.notices))
    log.facts += _facts(entries.settings)
    if between:
        message = f"{between} losses are at a count of samples inside a batch; each got the updates done by then"
        log.warnings.append(Notice("samples_within_a_batch", message))
    return log


class _Entries:
    """What MLLOG lines say.

    Attributes:
        losses: (line, losses and what stands beside them by name, metadata).
        settings: fact -> (value, line).
        counts: every samples_count and epoch_num.
        language: a language model's benchmark.
        of_tokens: epoch_num counts tokens.
        evaluated: samples_count of the last eval_start.
        start_ms: time of run_start.
    """

    def __init__(self) -> None:
        self.losses: list[tuple[int, dict[str, Any], dict[str, Any]]] = []
        self.settings: dict[str, tuple[float, int]] = {}
        self.counts: set[float] = set()
        self.language = self.of_tokens = False
        self.start_ms: float | None = None
        self.evaluated: float | None = None

    def placed(self, metadata: dict[str, Any]) -> dict[str, Any]:
        """An evaluation's metadata, with the count of its eval_start if that is one batch more."""
        batch = self.settings.get("global_batch_sequences", (0.0, 0))[0]
        own, kind = as_number(metadata.get("samples_count"), "tokens")
        if self.evaluated is None or kind is not None or not batch or self.evaluated - own != batch:
            return metadata
        return metadata | {"samples_count": self.evaluated}

    def step(self, metadata: dict[str, Any]) -> tuple[float | None, bool]:
        """(updates done or None, whether the count of samples is one of whole batches)."""
        batch = self.settings.get("global_batch_sequences", (0.0, 0))[0]
        tokens = batch * self.settings.get("seq_len", (0.0, 0))[0]
        for name in (*_STEPS, *_SAMPLES):
            number, kind = as_number(metadata.get(name), "tokens")
            if kind is not None or number != number:
                continue
            if name in _STEPS and not (number and number in self.counts):
                return number, True
            of_tokens = self.of_tokens and name != "samples_count"
            unit = tokens if of_tokens and tokens and number % tokens == 0 else batch
            return (number // unit, number % unit == 0) if unit else (None, True)
        return None, True


def _entries(data: bytes, records: Records) -> _Entries:
    entries = _Entries()
    line, counted = 1, 0
    for match in _LINE.finditer(data):
        line += data.count(b"\n", counted, match.start())
        counted = match.start()
        try:
            entry = json.loads(match.group(1).decode("utf-8", "replace"))
            key, value = str(entry["key"]), entry.get("value")
            metadata = dict(entry.get("metadata") or {})
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
            records.bad_lines.append(line)
            continue
        if key == "submission_benchmark":
            entries.language = bool(_LANGUAGE.search(str(value)))
            entries.of_tokens = str(value).lower().startswith("gpt3")
        number, kind = as_number(value, "tokens")
        if key in _FACTS and kind is None and 0 < number < 1e15:
            entries.settings.setdefault(_FACTS[key], (number, line))
        entries.counts.update(as_number(metadata.get(name), "tokens")[0] for name in _SAMPLES if name in metadata)
        time, _ = as_number(entry.get("time_ms"), "tokens")
        if key == "run_start" and time == time:
            entries.start_ms = time
        if key == "eval_start":
            count, kind = as_number(metadata.get("samples_count"), "tokens")
            entries.evaluated = count if kind is None and count == count else None
        losses = _losses(key, value, entries.language)
        if losses:
            losses |= {"lr": metadata["lr"]} if "lr" in metadata else {}
            if entries.start_ms is not None and time >= entries.start_ms:
                losses["elapsed_s"] = (time - entries.start_ms) / 1000
            placed = entries.placed(metadata) if key in ("eval_accuracy", "eval_loss") else metadata
            entries.losses.append((line, losses, placed))
    return entries


def _losses(key: str, value: Any, language: bool) -> dict[str, Any]:
    if isinstance(value, dict):
        found = {name: inner for name, inner in value.items() if naming.role(name, {}) in ("train_loss", "val_loss")}
        if not found and "reduced_train_loss" in value:
            found = {"train_loss": value["reduced_train_loss"]}
        return found
    if key == "eval_accuracy" and language:
        return {"val_loss": value}
    return {key: value} if naming.role(key, {}) in ("train_loss", "val_loss") else {}


def _facts(settings: dict[str, tuple[float, int]]) -> list[Fact]:
    facts: list[Fact] = []
    for key, (value, line) in settings.items():
        facts.append((key, int(value) if value == int(value) else value, "emitted", f"MLLOG, line {line}"))
    if "global_batch_sequences" in settings and "seq_len" in settings:
        tokens = settings["global_batch_sequences"][0] * settings["seq_len"][0]
        facts.append(("tokens_per_step", int(tokens), "emitted", "MLLOG: global_batch_size * sequence length"))
    return facts


READER = Reader(NAME, "MLPerf training logs (:::MLLOG)", sniff, read)
