"""Shapes of models: what follows from what is known of one."""

from tokenaxis.shapes.derive import Derivation, Shape, check, complete

__all__ = ["Derivation", "Shape", "check", "complete"]
