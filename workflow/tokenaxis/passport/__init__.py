"""The passport of a run: every number with the place that it comes from, as JSON and as Markdown."""

from tokenaxis.passport.build import SCHEMA, build
from tokenaxis.passport.markdown import to_markdown

__all__ = ["SCHEMA", "build", "to_markdown"]
