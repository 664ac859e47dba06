"""From raw rows to one clean table on a token axis."""

from tokenaxis.axis.build import build_axis
from tokenaxis.axis.model import TokenAxis

__all__ = ["TokenAxis", "build_axis"]
