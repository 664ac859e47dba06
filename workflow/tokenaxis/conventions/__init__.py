"""FLOPs per token under every published convention, and what follows from them: totals, cost to target, utilisation."""

from tokenaxis.conventions import matrix_products, parameter_counts  # both register their conventions
from tokenaxis.conventions.compute import Counts, compute, count
from tokenaxis.conventions.registry import ALIASES, REGISTRY, TRAINMETER_NAMES, Convention, lookup
from tokenaxis.conventions.report import report

__all__ = [
    "ALIASES",
    "REGISTRY",
    "TRAINMETER_NAMES",
    "Convention",
    "Counts",
    "compute",
    "count",
    "lookup",
    "matrix_products",
    "parameter_counts",
    "report",
]
