"""Figures of the comparison: one module a figure, each a function from plain data to a matplotlib Figure."""
