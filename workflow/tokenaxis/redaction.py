"""Command lines and free text without secrets, hosts, users or directories.

A passport travels: what a shell was given on one machine must not travel with it. The rule errs on the side of hiding,
but spares what only sounds like a secret: `--max-tokens 512`, `--token-budget 5`, `--monkey banana`.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Sequence

HIDDEN, HOST, USER = "[redacted]", "[host]", "[user]"

#: last words of names whose values are secrets; the plural takes several values
_SECRET = {
    "token", "key", "apikey", "password", "passwd", "passphrase", "passcode", "pwd", "pass", "pw", "pin", "secret",
    "credential", "cred", "auth", "authorization", "bearer", "pat", "jwt", "cookie", "signature", "sig", "salt",
}  # fmt: skip
_HOSTS = {"host", "hostname", "addr", "address", "endpoint", "hostfile", "nodelist", "nodename", "ip"}
_USERS = {"user", "username", "login", "email", "entity", "account"}
#: words before "token" or "key" that make it part of a vocabulary or a data set
_HARMLESS = {
    "pad", "padding", "eos", "bos", "unk", "mask", "sep", "cls", "special", "image", "stop", "start", "end", "text",
    "sort", "column", "label", "input", "target", "prompt", "data", "batch", "metric", "group", "json", "primary",
}  # fmt: skip
#: words of a name whose 40 hexadecimal digits are a revision
_REVISIONS = {"commit", "sha", "revision", "rev", "hash", "ref", "version", "fingerprint", "checksum"}

_NUMBER = re.compile(r"[+-]?[\d_,.]+(e[+-]?\d+)?\s?([kmbtg]i?|tokens?)?", re.IGNORECASE)
_ASSIGNMENT = re.compile(r"([-+~]*[A-Za-z_][\w.\-/@\[\]]*)(=|:=)(.*)", re.DOTALL)
# possessive quantifiers and look-behinds: a word is tried once, so that no text takes quadratic time
_INLINE = re.compile(
    r"(?<![\w.\-])(?P<quote>[\"']?)(?P<name>[A-Za-z_][\w.\-]*+)(?P=quote)(?P<sign>\s*[:=]\s*)"
    r"(?P<value>\"[^\"]*\"|'[^']*'|[^\s\"',;&}\])]+)"
)
_HEADER = re.compile(r"\b(authorization\s*:\s*)(?:(bearer|basic|token)\s+)?\S+", re.IGNORECASE)
_BEARER = re.compile(r"\b(bearer|basic)(\s+)[\w.~+/=-]{8,}", re.IGNORECASE)
_USERINFO = re.compile(r"(?<![a-z0-9+.-])([a-z][a-z0-9+.-]*+://)[^/\s@]+@", re.IGNORECASE)
_LOGIN = re.compile(r"(?<![\w/.:@+-])[\w.+-]++@[\w-]++(\.[\w-]++)*+")
# shapes that services give their tokens: Hugging Face, GitHub, GitLab, OpenAI and the like, AWS, Slack, Google, JWT
_SHAPES = re.compile(
    r"\b(hf_[A-Za-z0-9]{16,}|gh[opsur]_[A-Za-z0-9]{16,}|github_pat_\w{16,}|glpat-[\w-]{16,}|sk-[\w-]{16,}|AKIA[0-9A-Z]{16}"
    r"|xox[abprs]-[\w-]{10,}|AIza[\w-]{30,}|ya29\.[\w-]{16,}|eyJ[\w-]{8,}\.[\w-]{8,}(\.[\w-]*)?)"
)
_HEX40 = re.compile(r"[0-9a-f]{40}")
_POSIX_PATH = re.compile(
    r"(?<![\w./~\\\]>-])(?!//)(?:file://)?(?:~[\w.-]*)?/(?:[^\s/\"'=,;:|<>`]+/)+([^\s/\"'=,;:|<>`]*)"
)
_WINDOWS_PATH = re.compile(r"(?<![\w/])(?:[A-Za-z]:|\\\\[^\s\\]+)\\(?:[^\s\\\"'=,;|<>`]+\\)*([^\s\\\"'=,;|<>`]*)")


def words(name: str) -> list[str]:
    """The words of a flag or key, lower case.

    >>> words("--wandb.apiKey"), words("HF_TOKEN")
    (['wandb', 'api', 'key'], ['hf', 'token'])
    """
    split = re.sub(r"([a-z0-9])([A-Z])", r"\1 \2", name)
    return [word.lower() for word in re.split(r"[^A-Za-z0-9]+", split) if word]


def is_secret(name: str, value: str | None = None) -> bool:
    """Whether the value of a flag or key of that name is a secret.

    The last word decides. Several `tokens` that are a number are an amount; a `pad token` is part of a vocabulary.
    """
    parts = words(name)
    if not parts:
        return False
    last = parts[-1]
    singular = last.removesuffix("s") if last.removesuffix("s") in _SECRET else last
    if singular not in _SECRET:
        return False
    if singular in ("token", "key") and len(parts) > 1 and parts[-2] in _HARMLESS:
        return False
    return not (last == "tokens" and value is not None and _NUMBER.fullmatch(value))


def redact_command(argv: Sequence[str]) -> list[str]:
    """A command line, one argument an item, with secrets, hosts and users replaced and paths cut to their last part.

    `--flag value`, `--flag=value`, `-p value`, several values after a plural flag, `name=value` (also Hydra's `+a.b=c`
    and `--env NAME=value`), credentials in URLs and headers.
    """
    shown: list[str] = []
    hide_next: str | None = None  # name of the flag whose value comes next
    for argument in argv:
        if hide_next is not None and not _is_long_flag(argument):
            shown.append(_value(hide_next, argument))
            several = words(hide_next)[-1].endswith("s")
            hide_next = argument if _is_secret_flag(argument) else hide_next if several else None
            continue
        hide_next = None
        if (pair := _ASSIGNMENT.fullmatch(argument)) is not None:
            name, sign, value = pair.groups()
            shown.append(f"{name}{sign}{_value(name, value)}")
        elif argument.startswith("-"):
            shown.append(_short_with_value(argument))
            hide_next = argument if _hides_next(argument) else None
        else:
            shown.append(HIDDEN if _HEX40.fullmatch(argument) and not _after_revision(shown) else _bare(argument))
    return shown


def redact_text(text: str) -> str:
    """Free text (a note, a warning, a line of a log) with secrets hidden and absolute paths cut to their last part."""
    text = _USERINFO.sub(rf"\1{HIDDEN}@", text)
    text = _HEADER.sub(rf"\1{HIDDEN}", text)
    text = _BEARER.sub(rf"\1\2{HIDDEN}", text)
    text = _SHAPES.sub(HIDDEN, text)
    text = _INLINE.sub(_inline, text)
    text = _LOGIN.sub(f"{USER}@{HOST}", text)
    text = _WINDOWS_PATH.sub(r"\1", text)
    return _POSIX_PATH.sub(lambda match: match[1] or match[0].rstrip("/").rsplit("/", 1)[-1], text)


def redact_line(command: str) -> str:
    """A command line in one string, redacted like `redact_command`."""
    try:
        argv = shlex.split(command)
    except ValueError:  # an unbalanced quote
        argv = command.split()
    return shlex.join(redact_command(argv)).replace(f"'{HIDDEN}'", HIDDEN)


def _is_long_flag(argument: str) -> bool:
    return re.match(r"--[A-Za-z]", argument) is not None


def _is_secret_flag(argument: str) -> bool:
    return argument == "-p" or (argument.startswith("-") and "=" not in argument and is_secret(argument))


def _hides_next(flag: str) -> bool:
    last = (words(flag) or [""])[-1]
    return _is_secret_flag(flag) or (flag.startswith("-") and last in _HOSTS | _USERS | _REVISIONS)


def _short_with_value(argument: str) -> str:
    """`-pVALUE` as the database clients take it, if the value has more than letters (else it is a word: -print)."""
    attached = re.fullmatch(r"-p(?!\w*$)(.+)|-p(\w*\d\w*)", argument)
    return f"-p{HIDDEN}" if attached else argument


def _value(name: str, value: str, nested: bool = False) -> str:
    """What to show for `value`, given under `name`; one assignment inside it is looked into (--env NAME=value)."""
    last = (words(name) or [""])[-1]
    if not nested and not is_secret(name) and (pair := _ASSIGNMENT.fullmatch(value)) is not None:
        return f"{pair[1]}{pair[2]}{_value(pair[1], pair[3], nested=True)}"
    if name == "-p" or is_secret(name, value):
        return HIDDEN
    if last in _HOSTS:
        return HOST
    if last in _USERS:
        return USER
    if _HEX40.fullmatch(value) and not _REVISIONS & set(words(name)):
        return HIDDEN
    return _bare(value)


def _bare(value: str) -> str:
    """A value under no suspicious name."""
    if re.fullmatch(r"(/|~|[A-Za-z]:\\|\\\\).*", value, re.DOTALL):
        return redact_text(re.split(r"[/\\]", value.rstrip("/\\"))[-1] or "/")
    return redact_text(value)


def _after_revision(shown: list[str]) -> bool:
    return bool(shown) and shown[-1].startswith("-") and bool(_REVISIONS & set(words(shown[-1])))


def _inline(match: re.Match[str]) -> str:
    name, value = match["name"], match["value"]
    if value.strip("\"'").startswith(HIDDEN[:-1]) or not is_secret(name, value.strip("\"'")):
        return match[0]
    quote = value[0] if value[0] in "\"'" else ""
    return f"{match['quote']}{name}{match['quote']}{match['sign']}{quote}{HIDDEN}{quote}"
