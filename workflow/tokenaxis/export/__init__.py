"""A finished run in formats of other tools: explicit, one module a format, and never with a price."""
