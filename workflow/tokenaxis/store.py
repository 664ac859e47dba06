"""The only reading and writing of artifacts: deterministic bytes, nothing half-written visible."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tokenaxis.errors import TokenAxisError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import numpy as np
    from pyarrow import Buffer

#: part of a temporary file's name; what carries it is never an artifact
TEMPORARY = ".tmp-"


def replace(path: Path, write: Callable[[str], None]) -> None:
    """Call `write(temporary path)`, then put the result at `path` in one step.

    Raises:
        TokenAxisError: the file cannot be written (read-only, disk full); the old file is still there.
    """
    temporary = f"{path}{TEMPORARY}{os.getpid()}"
    try:
        try:
            write(temporary)
        except FileNotFoundError:
            path.parent.mkdir(parents=True, exist_ok=True)
            write(temporary)
        os.replace(temporary, path)
    except OSError as error:
        raise TokenAxisError(f"cannot be written: {error.strerror or error}", file=str(path)) from error
    finally:
        if os.path.lexists(temporary):
            os.unlink(temporary)


def write_bytes(path: Path, data: bytes | Buffer) -> None:
    """Write a whole file at once."""

    def write(temporary: str) -> None:
        with open(temporary, "wb") as file:
            file.write(data)

    replace(path, write)


def write_text(path: Path, text: str) -> None:
    """Write a whole text file at once, UTF-8, with the line ends that `text` has."""
    write_bytes(path, text.encode("utf-8", "backslashreplace"))


def to_json(data: Any, *, indent: int | None = 1) -> str:
    """JSON with sorted keys; NaN and infinity are refused, since no reader outside Python takes them."""
    return json.dumps(data, sort_keys=True, allow_nan=False, indent=indent) + "\n"


def write_json(path: Path, data: Any) -> None:
    """Write `data` as JSON."""
    write_text(path, to_json(data))


def write_text_if_changed(path: Path, text: str) -> bool:
    """Write only when the content differs: engines look at mtimes. -> whether it wrote."""
    try:
        if path.read_bytes() == text.encode("utf-8"):
            return False
    except OSError:
        pass
    write_text(path, text)
    return True


def read_json(path: Path) -> Any:
    """The parsed file; None if it is missing or not JSON (an interrupted run of an older version, say)."""
    try:
        return json.loads(path.read_bytes())
    except (OSError, ValueError):
        return None


def json_fingerprint(path: Path) -> str | None:
    """The fingerprint that a JSON artifact carries."""
    data = read_json(path)
    return data.get("fingerprint") if isinstance(data, dict) else None


def write_parquet(path: Path, columns: Mapping[str, np.ndarray], meta: Mapping[str, Any], fingerprint: str) -> None:
    """Write a table, `meta` as JSON under the key `tokenaxis`, and its fingerprint.

    zstd, no dictionaries, integers as deltas, floats byte-split: a third of the default's bytes in half of its time.
    """
    from pyarrow import BufferOutputStream, types
    from pyarrow._parquet import ParquetWriter

    from tokenaxis import arrow

    table = arrow.table(columns).replace_schema_metadata(
        {"fingerprint": fingerprint, "tokenaxis": to_json(meta, indent=None)}
    )
    encodings = {
        field.name: "DELTA_BINARY_PACKED" if types.is_integer(field.type) else "BYTE_STREAM_SPLIT"
        for field in table.schema
    }
    stream = BufferOutputStream()  # a file would get some hundred small writes
    writer = ParquetWriter(
        stream,
        table.schema,
        compression="zstd",
        use_dictionary=False,
        write_statistics=False,
        column_encoding=encodings,
        version="2.6",
        writer_engine_version="V2",
        store_schema=True,
    )
    writer.write_table(table, row_group_size=max(table.num_rows, 1))
    writer.close()
    write_bytes(path, stream.getvalue())


def read_parquet(path: Path, names: Sequence[str] | None = None) -> tuple[dict[str, np.ndarray], dict[str, Any]]:
    """(columns, meta) of a table; `names` that the file does not hold are left out. Nulls become NaN."""
    from pyarrow._parquet import ParquetReader

    from tokenaxis import arrow

    reader = ParquetReader()
    reader.open(str(path), use_memory_map=False, pre_buffer=False)
    schema = reader.schema_arrow
    wanted = [name for name in schema.names if names is None or name in names]
    table = reader.read_all(column_indices=[reader.column_name_idx(name) for name in wanted], use_threads=False)
    columns = {name: arrow.numpy_column(table.column(name)) for name in wanted}
    return columns, json.loads((schema.metadata or {}).get(b"tokenaxis", b"{}"))


def read_parquet_meta(path: Path) -> dict[str, Any]:
    """The metadata of a table without its columns, and its fingerprint under "fingerprint"."""
    from pyarrow._parquet import ParquetReader

    reader = ParquetReader()
    reader.open(str(path), use_memory_map=False, pre_buffer=False)
    stored = reader.metadata.metadata or {}
    return json.loads(stored.get(b"tokenaxis", b"{}")) | {"fingerprint": stored.get(b"fingerprint", b"").decode()}


def parquet_fingerprint(path: Path) -> str | None:
    """The fingerprint that a table carries; None if it is missing or damaged."""
    if not path.exists():  # pyarrow takes its time to say so
        return None
    try:
        return read_parquet_meta(path)["fingerprint"] or None
    except Exception:  # pyarrow raises its own errors, OSError and ValueError for a damaged file: all mean "not there"
        return None
