"""Shapes of models: what follows from what is known of one."""

from tokenaxis.shapes.check import check
from tokenaxis.shapes.derive import Derivation, Shape, complete

__all__ = ["Derivation", "Shape", "check", "complete"]
