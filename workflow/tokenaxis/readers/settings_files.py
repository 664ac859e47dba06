"""Facts from files beside a log: config.yaml, config.json, hparams.yaml, dumps of arguments, MLflow's parameters."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from typing import Any

from tokenaxis.readers.records import flatten
from tokenaxis.readers.settings import Fact, facts_of

#: no configuration is longer; a longer file is not parsed
_LONGEST = 1 << 20


def facts_in(path: str, name: str) -> list[Fact]:
    """The facts that a settings file states; none where it is not what its name says, or cannot be read.

    Args:
        path: the file.
        name: how notes call it.
    """
    try:
        if os.path.getsize(path) > _LONGEST:
            return []
        with open(path, encoding="utf-8-sig", errors="replace") as stream:
            text = stream.read()
    except OSError:
        return []
    if os.path.basename(os.path.dirname(path)) == "params":
        settings: Any = {os.path.basename(path): text}
    else:
        settings = _parsed(path, text)
    if not isinstance(settings, Mapping):
        return []
    facts = facts_of(dict(plain(key, value) for key, value in flatten(_keyed(settings))), name)
    return [(key, value, "detected", note) for key, value, _, note in facts]


def _parsed(path: str, text: str) -> Any:
    try:
        if path.lower().endswith(".json"):
            return json.loads(text)
        import yaml

        class Loader(getattr(yaml, "CSafeLoader", yaml.SafeLoader)):  # type: ignore[misc]
            """Tags of classes (Lightning's hparams.yaml has some) read as what they hold."""

        Loader.add_multi_constructor("!", _untagged)
        Loader.add_multi_constructor("tag:", _untagged)
        return yaml.load(text, Loader)
    except (ValueError, RecursionError):
        return None
    except Exception as error:  # yaml's own errors, which are known only once it is imported
        if type(error).__module__.startswith("yaml"):
            return None
        raise


def _untagged(loader: Any, suffix: str, node: Any) -> Any:
    import yaml

    if isinstance(node, yaml.MappingNode):
        return loader.construct_mapping(node, deep=True)
    if isinstance(node, yaml.SequenceNode):
        return loader.construct_sequence(node, deep=True)
    return loader.construct_scalar(node)


def _keyed(settings: Mapping[Any, Any]) -> dict[str, Any]:
    return {str(key): _keyed(value) if isinstance(value, Mapping) else value for key, value in settings.items()}


def plain(key: str, value: Any) -> tuple[str, Any]:
    """W&B's config.yaml puts each setting's value under `value`; numbers may be text."""
    key = key.removesuffix(".value")
    if isinstance(value, str):
        for convert in (int, float):
            try:
                return key, convert(value.strip())
            except ValueError:
                continue
    return key, value
