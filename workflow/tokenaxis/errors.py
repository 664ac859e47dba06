"""The one expected failure, and the one shape of a warning."""

from __future__ import annotations

from dataclasses import dataclass


class TokenAxisError(Exception):
    """An expected failure: an unreadable log, a missing batch size, a bad parameter.

    Scripts turn it into one line on stderr that names file, line and remedy, and exit with status 2.

    Args:
        reason: what is wrong, one sentence without a full stop at the end.
        file: the file it is about, as the user named it.
        line: 1-based line of that file.
        remedy: what to do about it, in the imperative.
    """

    def __init__(self, reason: str, *, file: str | None = None, line: int | None = None, remedy: str | None = None):
        super().__init__(reason)
        self.reason, self.file, self.line, self.remedy = reason, file, line, remedy

    def __str__(self) -> str:
        place = (
            "" if self.file is None else printable(self.file) + ("" if self.line is None else f":{self.line}") + ": "
        )
        return place + printable(self.reason) + ("" if self.remedy is None else f" -- {printable(self.remedy)}")

    def within(self, file: str) -> TokenAxisError:
        """The same error, with the file named if it was not yet."""
        return TokenAxisError(self.reason, file=self.file or file, line=self.line, remedy=self.remedy)


@dataclass(frozen=True)
class Notice:
    """A soft outcome worth a reader's attention: a stable `code` (snake_case) and a `message` in words."""

    code: str
    message: str

    def as_dict(self) -> dict[str, str]:
        return {"code": self.code, "message": self.message}


def printable(text: str) -> str:
    """`text` on one line with control characters and undecodable bytes escaped, so that no log can forge output."""
    if text.isascii() and text.isprintable():
        return text
    shown = text.encode("utf-8", "surrogateescape").decode("utf-8", "backslashreplace")
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode("ascii") for c in shown)
