"""What a file is: a log that some reader reads, something like a log that lacks something, or no log."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace

from tokenaxis.errors import TokenAxisError
from tokenaxis.readers import registry
from tokenaxis.readers.base import Reader, Sample
from tokenaxis.readers.remedies import of_format

#: a reader below this confidence does not get the file
_CONFIDENT = 50
_LOG_NAME = re.compile(r"\.(csv|tsv|log|out|jsonl|ndjson|txt)(\.gz)?$", re.IGNORECASE)
_MENTIONS_LOSS = re.compile(rb"loss[\"'\w]{0,40}\s{0,9}[:=|]?\s{0,9}\d{1,9}\.\d", re.IGNORECASE)
#: other names that logs bear: a pointer by such a name stands for one
_HOLDS_LOGS = re.compile(
    r"tfevents|\.(parquet|wandb|db|sqlite)$|(state|log|history|metrics|loss(es)?|golden)[\w.-]*\.json$", re.IGNORECASE
)
#: readers of documents; what others miss in one says nothing
_OF_JSON = frozenset(("json-history", "tensorboard-export"))
_POINTERS = {
    b"version https://git-lfs.github.com/spec/": "run `git lfs pull` in its repository",
    b"/annex/objects/": "run `git annex get .` in its repository",
}
_CONTROL = bytes(c for c in range(32) if c not in b"\t\n\r\f\b\x1b")

_PROSE = r"(^|[._-])(readme|license|licence|changelog|authors|notice)\b"
#: endings of names -> what such a file is; only asked when the content is no log
_KINDS: tuple[tuple[str, str], ...] = (
    (_PROSE, "documentation"),
    (r"\.(md|rst|html?|tex|bib)$", "documentation"),
    (r"\.(ya?ml|toml|ini|cfg|conf|env|lock)$", "configuration"),
    (
        r"\.(py|sh|cu|c|cpp|h|rs|js|sbatch|slurm|smk|bash|ipynb_checkpoints)$|^(makefile|dockerfile|snakefile)$",
        "source code",
    ),
    (r"\.ipynb$", "a notebook"),
    (r"\.(png|jpe?g|gif|svg|webp|bmp|tiff?)$", "an image"),
    (r"\.(pdf|docx?|pptx?|xlsx?)$", "a document"),
    (r"\.(pt|pth|ckpt|safetensors|bin|h5|hdf5|npy|npz|pkl|pickle|onnx|gguf|model|distcp)$", "a checkpoint or array"),
    (r"(^|[._-])tag-.*\.(csv|json)$", "a scalar of TensorBoard that is no loss"),
    (r"\.json$", "JSON without a history of losses"),
    (r"\.(zip|tar|tgz|bz2|xz|zst|7z|gz)$", "an archive"),
    (r"-(wal|shm|journal)$", "what SQLite keeps beside a database, and is read with it"),
)


@dataclass(frozen=True)
class Recognition:
    """What a first look at a file says; exactly one is set.

    Attributes:
        reader: the reader that reads it.
        refused: it looks like a log and lacks something: what, and the remedy.
        passed_over: it is no log: what it is instead.
    """

    reader: Reader | None = None
    refused: TokenAxisError | None = None
    passed_over: str | None = None


def recognise(
    sample: Sample, declared_format: str | None = None, declared_columns: Mapping[str, str] | None = None
) -> Recognition:
    """Which reader a file is for, judged by its content.

    Args:
        sample: the first look at the file.
        declared_format: the reader that the user names; it gets the file whatever the content.
        declared_columns: canonical name -> the file's own name, as declared.
    """
    if declared_format is not None:
        try:
            return Recognition(reader=registry.by_name(declared_format))
        except TokenAxisError as error:
            return Recognition(refused=error)
    if re.search(_PROSE, sample.name, re.IGNORECASE) and not sample.name.lower().endswith((".csv", ".tsv", ".jsonl")):
        return Recognition(passed_over="documentation")  # also a README that begins with a table of losses
    if declared_columns:
        sample = replace(sample, columns=declared_columns)
    best = _most_confident(sample, last_resort=False)
    if best is None and (_kind(sample.name) is None or _LOG_NAME.search(sample.name)):
        best = _most_confident(sample, last_resort=True)
    return Recognition(reader=best) if best is not None else _no_reader(sample)


def _most_confident(sample: Sample, last_resort: bool) -> Reader | None:
    best, confidence = None, _CONFIDENT - 1
    for reader in registry.all_readers():
        if reader.last_resort is last_resort:
            found = reader.sniff(sample)
            if found > confidence:
                best, confidence = reader, found
    return best


def _no_reader(sample: Sample) -> Recognition:
    looks_like_log = _LOG_NAME.search(sample.name) is not None
    if not sample.head.strip():
        return _empty(sample, looks_like_log)
    if (looks_like_log or _HOLDS_LOGS.search(sample.name)) and (fetch := _pointer(sample.head)) is not None:
        return _refused("is a pointer to the log, which itself was not downloaded", fetch)
    kind = _kind(sample.name)
    in_json = sample.name.lower().endswith(".json")
    if kind is not None and not looks_like_log and not in_json:
        return Recognition(passed_over=kind)
    for reader in registry.all_readers():
        asked = reader.lacks is not None and (not in_json or reader.name in _OF_JSON)
        lacking = reader.lacks(sample) if asked and reader.lacks is not None else None
        if lacking is not None:
            return Recognition(refused=lacking)
    if is_binary(sample.head):
        if looks_like_log:
            return _refused("is binary, not a text table or log", "remove it, or name it for what it is")
        return Recognition(passed_over="a binary file of no known log format")
    if kind is not None:
        return Recognition(passed_over=kind)
    if looks_like_log and (_MENTIONS_LOSS.search(sample.head) or _MENTIONS_LOSS.search(sample.tail)):
        return _refused(
            "mentions losses in no format that a reader knows",
            f"convert it to CSV with the columns step and train_loss, or {of_format(sample.name)}",
        )
    return Recognition(passed_over="text in no known log format")


def _pointer(head: bytes) -> str | None:
    """How the file is fetched that this one stands for; None where it stands for none."""
    return next((fetch for start, fetch in _POINTERS.items() if head.startswith(start)), None)


def _empty(sample: Sample, looks_like_log: bool) -> Recognition:
    if not looks_like_log:
        return Recognition(passed_over="an empty file")
    if sample.size and not sample.whole:
        return _refused("cannot be decompressed, or begins with nothing but blanks", "copy the file again")
    return _refused("is empty", "remove it, or put the log in its place")


def _refused(reason: str, remedy: str) -> Recognition:
    return Recognition(refused=TokenAxisError(reason, remedy=remedy))


def is_binary(data: bytes) -> bool:
    """Whether bytes are no text: a NUL among them, or more than 2 % control characters."""
    return b"\0" in data or (len(data) - len(data.translate(None, _CONTROL))) * 50 > len(data)


def _kind(name: str) -> str | None:
    lowered = name.lower()
    for pattern, kind in _KINDS:
        if re.search(pattern, lowered):
            return kind
    return None
