"""MLPerf training logs: lines with `:::MLLOG {"key": ..., "value": ..., "metadata": {...}}`.

Losses are `train_loss`, `eval_loss`, those inside `tracked_stats`, and `eval_accuracy` of the language-model
benchmarks, whose "accuracy" is the validation loss (mlcommons/training, large_language_model). A step stands in the
metadata, or follows from the samples and the global batch size.
"""

from __future__ import annotations

import json
import re
from typing import Any

from tokenaxis.declarations import Declaration
from tokenaxis.errors import TokenAxisError
from tokenaxis.readers import naming
from tokenaxis.readers.base import RawLog, Reader, Sample
from tokenaxis.readers.content import read_content
from tokenaxis.readers.records import Records, as_number
from tokenaxis.readers.textlog import Fact

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
    data = content.data
    records = Records(declaration.columns)
    settings: dict[str, tuple[float, int]] = {}
    language = False
    line, counted = 1, 0
    for match in _LINE.finditer(data):
        line += data.count(b"\n", counted, match.start())
        counted = match.start()
        try:
            entry = json.loads(match.group(1).decode("utf-8", "replace"))
            key, value, metadata = str(entry["key"]), entry.get("value"), entry.get("metadata") or {}
            metadata = dict(metadata)
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
            records.bad_lines.append(line)
            continue
        if key == "submission_benchmark":
            language = bool(_LANGUAGE.search(str(value)))
        number, kind = as_number(value, "tokens")
        if key in _FACTS and kind is None and 0 < number < 1e15:
            settings.setdefault(_FACTS[key], (number, line))
        losses = _losses(key, value, language)
        if losses:
            step = _step(metadata, settings, declaration)
            records.add(line, losses | ({} if step is None else {"step": step}))
    if not records.lines:
        raise TokenAxisError(
            "holds no loss with a step", remedy="see whether its benchmark logs train_loss or eval_loss"
        )
    log = records.log(NAME, list(content.notices))
    log.facts += _facts(settings)
    return log


def _losses(key: str, value: Any, language: bool) -> dict[str, Any]:
    if isinstance(value, dict):
        found = {name: inner for name, inner in value.items() if naming.role(name, {}) in ("train_loss", "val_loss")}
        if not found and "reduced_train_loss" in value:
            found = {"train_loss": value["reduced_train_loss"]}
        return found
    if key == "eval_accuracy" and language:
        return {"val_loss": value}
    return {key: value} if naming.role(key, {}) in ("train_loss", "val_loss") else {}


def _step(metadata: dict[str, Any], settings: dict[str, tuple[float, int]], declaration: Declaration) -> float | None:
    for name in _STEPS:
        number, kind = as_number(metadata.get(name), "step")
        if kind is None and number == number:
            return number
    batch = settings.get("global_batch_sequences", (0.0, 0))[0]
    for name in _SAMPLES:
        number, kind = as_number(metadata.get(name), "tokens")
        if batch and kind is None and number == number and number % batch == 0:
            return number / batch
    return None


def _facts(settings: dict[str, tuple[float, int]]) -> list[Fact]:
    facts: list[Fact] = []
    for key, (value, line) in settings.items():
        facts.append((key, int(value) if value == int(value) else value, "emitted", f"MLLOG, line {line}"))
    if "global_batch_sequences" in settings and "seq_len" in settings:
        tokens = settings["global_batch_sequences"][0] * settings["seq_len"][0]
        facts.append(("tokens_per_step", tokens, "emitted", "MLLOG: global_batch_size * sequence length"))
    return facts


READER = Reader(NAME, "MLPerf training logs (:::MLLOG)", sniff, read)
