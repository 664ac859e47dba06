"""How one quantity of a model's shape follows from others.

A rule that takes something for granted says so in `assumes`; the value it gives then counts as assumed. What a shape
does not mention at all (experts, windows, latent attention, padding) is absent from the model: that is what a shape
means, and the rule's `note` says it, but it is no assumption about a number.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from tokenaxis.facts import FactStore


@dataclass(frozen=True)
class Rule:
    """One way to get one quantity.

    Attributes:
        key: the quantity.
        needs: facts or quantities that it takes, in the order of `compute`'s arguments.
        formula: the same arithmetic as text, in Python's notation and the names of `needs`.
        compute: values of `needs` -> value.
        when: whether the rule is about this model, judged by facts as given; None: always.
        assumes: what it takes for granted, or None.
        note: what to know about it, or None.
    """

    key: str
    needs: tuple[str, ...]
    formula: str
    compute: Callable[..., Any]
    when: Callable[[FactStore], bool] | None = None
    assumes: str | None = None
    note: str | None = None
