"""Checks of parameters that name something in the library, which a schema cannot know."""

from __future__ import annotations

from typing import Any

from tokenaxis.errors import TokenAxisError


def check_names(params: dict[str, Any], file: str) -> dict[str, Any]:
    """`params`, if the convention that they name exists.

    Raises:
        TokenAxisError: naming the key and what there is.
    """
    name = params["conventions"]["convention"]
    if name is not None:
        from tokenaxis.conventions.registry import lookup

        try:
            lookup(name)
        except TokenAxisError as error:
            raise TokenAxisError(f"conventions.convention: {error.reason}", file=file, remedy=error.remedy) from error
    return params
