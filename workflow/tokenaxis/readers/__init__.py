"""Raw logs in, rows out: every format that trainers leave behind, behind one interface.

`recognise` says what a file is from a first look, `read` reads it. A new format is one new module in
readers/formats with a module-level `READER`. Nothing here imports numpy or pyarrow before a file is read.
"""

from __future__ import annotations

from tokenaxis.declarations import Declaration
from tokenaxis.errors import TokenAxisError
from tokenaxis.readers.base import IntervalMean, RawLog, Reader, Sample
from tokenaxis.readers.content import sample
from tokenaxis.readers.huge import flag_huge
from tokenaxis.readers.means import mark_means
from tokenaxis.readers.odd_losses import blank_placeholders, flag_filtered, note_odd
from tokenaxis.readers.recognition import Recognition, recognise
from tokenaxis.readers.registry import all_readers, by_name, code_digest
from tokenaxis.readers.remedies import of_format
from tokenaxis.readers.token_counts import check_tokens

__all__ = [
    "IntervalMean",
    "RawLog",
    "Reader",
    "Recognition",
    "Sample",
    "all",
    "all_readers",
    "by_name",
    "code_digest",
    "read",
    "recognise",
    "sample",
]

all = all_readers


def read(
    path: str, declaration: Declaration | None = None, reader: Reader | None = None, part: str | None = None
) -> RawLog:
    """The rows of one log.

    Args:
        path: the file.
        declaration: what the user declares about it.
        reader: the reader to use; None = the declared one, else the recognised one.
        part: which of the runs in the file, where it holds several (see `Reader.parts`).

    Raises:
        TokenAxisError: the file is no log, cannot be read, or lacks something; it names the file and the remedy.
    """
    declaration = declaration or Declaration()
    try:
        if reader is None:
            found = recognise(sample(path), declaration.format, declaration.columns)
            if found.refused is not None:
                raise found.refused
            if found.reader is None:
                raise TokenAxisError(f"is not a training log: {found.passed_over}", remedy=of_format(path))
            reader = found.reader
        if part is None:
            return _checked(reader.read(path, declaration), declaration)
        if reader.read_part is None:
            raise TokenAxisError(f"is in format {reader.name}, which holds one run a file")
        return _checked(reader.read_part(path, declaration, part), declaration)
    except TokenAxisError as error:
        raise error.within(path) from error.__cause__
    except OSError as error:
        raise TokenAxisError(f"cannot be read: {error.strerror or error}", file=path) from error


def _checked(log: RawLog, declaration: Declaration) -> RawLog:
    """What holds for the logs of all readers."""
    return check_tokens(note_odd(blank_placeholders(flag_filtered(mark_means(flag_huge(log))))), declaration.columns)
