"""A run as an event file of TensorBoard: every series over steps, and again over tokens; the passport as text."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from tokenaxis.export.run import PREFIX, ExportedRun, library

#: the same series, where TensorBoard's step is the number of tokens before the step
OVER_TOKENS = f"{PREFIX}over_tokens/"
TEXT = f"{PREFIX}passport"
#: TensorBoard recognises event files by `tfevents`; its own writer appends time and host
FILE = "events.out.tfevents.0.tokenaxis"


def export(run: ExportedRun, folder: Path) -> Path:
    """Write `folder`/<run>/events.out.tfevents.0.tokenaxis, the same bytes each time. -> that file.

    The wall time of an event is the log's own `elapsed_s` (0 where it has none), so that TensorBoard's relative axis
    shows the run's time.

    Raises:
        TokenAxisError: tensorboard is not installed.
    """
    record_writer = library("tensorboard.summary.writer.record_writer", "tensorboard")
    path = folder / run.id / FILE
    path.parent.mkdir(parents=True, exist_ok=True)
    partial = path.with_name(f".{FILE}.partial")
    with open(partial, "wb") as file:
        writer = record_writer.RecordWriter(file)
        for event in _events(run):
            writer.write(event.SerializeToString())
        writer.flush()
    partial.replace(path)
    return path


def _events(run: ExportedRun) -> Iterator[Any]:
    """The version record, the passport, and one or two events a step."""
    event_pb2 = library("tensorboard.compat.proto.event_pb2", "tensorboard")
    summary_pb2 = library("tensorboard.compat.proto.summary_pb2", "tensorboard")
    yield event_pb2.Event(wall_time=0.0, file_version="brain.Event:2")
    yield event_pb2.Event(wall_time=0.0, step=0, summary=summary_pb2.Summary(value=[_text(summary_pb2, run.markdown)]))
    elapsed = run.columns["elapsed_s"].tolist() if "elapsed_s" in run.columns else None
    tokens = run.columns["tokens"].tolist()
    for row, (step, cells) in enumerate(run.rows()):
        time = 0.0 if elapsed is None or elapsed[row] != elapsed[row] else elapsed[row]  # NaN differs from itself
        for place, prefix in ((step, ""), (round(tokens[row]), OVER_TOKENS)):
            values = [
                summary_pb2.Summary.Value(tag=f"{prefix}{key}", simple_value=value)
                for key, value in cells.items()
                if not (prefix and key.startswith(PREFIX))
            ]
            if values:
                yield event_pb2.Event(wall_time=time, step=place, summary=summary_pb2.Summary(value=values))


def _text(summary_pb2: Any, markdown: str) -> Any:
    """A text summary: a string tensor that the text dashboard shows as Markdown."""
    metadata = library("tensorboard.plugins.text.metadata", "tensorboard")
    tensor_util = library("tensorboard.util.tensor_util", "tensorboard")
    return summary_pb2.Summary.Value(
        tag=TEXT,
        metadata=metadata.create_summary_metadata(display_name="passport", description=""),
        tensor=tensor_util.make_tensor_proto([markdown.encode("utf-8")], shape=(1,)),
    )
