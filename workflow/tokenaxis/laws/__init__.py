"""The laws, by name. A law is one module here with a module-level `LAW`; nothing else has to know about it."""

from __future__ import annotations

from importlib import import_module

from tokenaxis.errors import TokenAxisError
from tokenaxis.laws.base import TOKEN_UNIT, Fitted, Law, NotFitted, Prediction

__all__ = ["NAMES", "TOKEN_UNIT", "Fitted", "Law", "NotFitted", "Prediction", "get"]

#: names of the laws = names of their modules
NAMES: tuple[str, ...] = ("power", "kernel", "annealing", "seed")


def get(name: str) -> Law:
    """The law of that name; its module is loaded only now."""
    if name not in NAMES:
        raise TokenAxisError(f"there is no law {name!r}", remedy=f"choose one of: auto, {', '.join(NAMES)}")
    law: Law = import_module(f"tokenaxis.laws.{name}").LAW
    return law
