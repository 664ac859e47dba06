"""Facts with their provenance: what is known of a run, who says so, and which of two statements is in force."""

from tokenaxis.facts.known import KNOWN, MODEL_KEYS, KnownFact
from tokenaxis.facts.store import ABSENT, PRECEDENCE, Conflict, Fact, FactStore, gather, published, rank, same, weakest

__all__ = [
    "ABSENT",
    "KNOWN",
    "MODEL_KEYS",
    "PRECEDENCE",
    "Conflict",
    "Fact",
    "FactStore",
    "KnownFact",
    "gather",
    "published",
    "rank",
    "same",
    "weakest",
]
