"""The registry of FLOP conventions: every published way to count the FLOPs of one trained token, by name."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from tokenaxis.errors import TokenAxisError


@dataclass(frozen=True)
class Convention:
    """One way to count.

    Attributes:
        name: short name, shown to users.
        formula: FLOPs per token, forward and backward, as arithmetic in the names of `needs` (Python's notation).
        compute: values of `needs`, by position -> FLOPs per token.
        needs: facts or derived quantities of a shape (see tokenaxis.shapes).
        counts: what is counted, in words.
        leaves_out: what is not, in words.
        source: the paper and equation, or repository, file and commit.
    """

    name: str
    formula: str
    compute: Callable[..., float]
    needs: tuple[str, ...]
    counts: str
    leaves_out: str
    source: str


#: name -> convention
REGISTRY: dict[str, Convention] = {}

#: other names of a convention
ALIASES: dict[str, str] = {"palm": "nanogpt"}

#: trainmeter's four names -> ours. Its "megatron" is 6(N-E) + 6Lds; ours of that name is Megatron-LM's own count.
TRAINMETER_NAMES: dict[str, str] = {
    "titan": "titan",
    "megatron": "megatron_simple",
    "hf": "hf",
    "all_params": "all_params",
}


def convention(*, formula: str, counts: str, leaves_out: str, source: str) -> Callable[..., Callable[..., float]]:
    """Register a function under its name; its parameters are the quantities that it needs."""

    def register(compute: Callable[..., float]) -> Callable[..., float]:
        code = compute.__code__
        needs = code.co_varnames[: code.co_argcount]
        REGISTRY[compute.__name__] = Convention(compute.__name__, formula, compute, needs, counts, leaves_out, source)
        return compute

    return register


def lookup(name: str) -> Convention:
    """The convention of that name or alias.

    Raises:
        TokenAxisError: there is none.
    """
    found = REGISTRY.get(ALIASES.get(name, name))
    if found is None:
        known = ", ".join([*REGISTRY, *ALIASES])
        raise TokenAxisError(f"{name!r} is not a FLOP convention", remedy=f"choose one of {known}")
    return found
