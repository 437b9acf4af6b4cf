"""The files of a configuration folder: read whole, and as YAML without surprises."""

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import yaml

from controlplane.core.errors import InvalidInput
from controlplane.core.json_values import Errors, put

MAX_FILE_BYTES = 4 * 1024 * 1024
MAX_NUMBER_LENGTH = 100
NUMBERS = frozenset({"tag:yaml.org,2002:int", "tag:yaml.org,2002:float"})


def read(folder: Path, names: Iterable[str]) -> dict[str, str]:
    """Return the texts of those of these files that exist. Raises :class:`InvalidInput`."""
    if not folder.is_dir():
        raise InvalidInput({str(folder): ["There is no such folder."]})
    texts = {}
    for name in names:
        path = folder / name
        if not path.exists():
            continue
        try:
            if path.stat().st_size > MAX_FILE_BYTES:
                raise InvalidInput({name: [f"Larger than {MAX_FILE_BYTES // 1024} KiB."]})
            texts[name] = path.read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as error:
            raise InvalidInput({name: [f"Can't be read: {error}."]}) from error
    return texts


def parse(name: str, text: str, errors: Errors) -> dict[str, Any]:
    """The keys and values of a file; empty, and noted, if it is not that."""
    documents = _documents(name, text, _Loader, errors)
    if len(documents) > 1:
        put(errors, name, "Must be one document.")
    found = documents[0] if documents else None
    if found is None:
        return {}
    if not isinstance(found, dict):
        put(errors, name, "Must be keys with values.")
        return {}
    return found


def parse_all(name: str, text: str, errors: Errors) -> list[Any]:
    """Return all documents of an untrusted YAML (or JSON) text; none if it can't be parsed.

    The problem is recorded in `errors`.
    """
    return _documents(name, text, _WithoutAliases, errors)


def _documents(name: str, text: str, loader: type["_Loader"], errors: Errors) -> list[Any]:
    try:
        return list(yaml.load_all(text, Loader=loader))
    except (yaml.YAMLError, RecursionError, ValueError, OverflowError) as error:
        put(errors, name, " ".join(str(error).split()))
        return []


class _Loader(yaml.SafeLoader):
    """YAML without objects, and without duplicate keys: the first would be lost silently."""

    def construct_object(self, node: yaml.Node, deep: bool = False) -> Any:
        """Construct a value; refuse endless numbers, which take long to read or can't be shown."""
        if node.tag in NUMBERS and len(node.value) > MAX_NUMBER_LENGTH:
            raise _problem("a number of so many digits", node)
        try:
            return super().construct_object(node, deep=deep)
        except (AttributeError, LookupError, TypeError) as error:  # `!!timestamp x`
            raise _problem(f"this is no {node.tag.rpartition(':')[2]}", node) from error


class _WithoutAliases(_Loader):
    """YAML without aliases: a few nested ones can expand beyond memory."""

    def compose_node(self, parent: Any, index: Any) -> Any:
        if self.check_event(yaml.AliasEvent):
            raise yaml.YAMLError("write it out: references (*name) are not read here")
        return super().compose_node(parent, index)


def _problem(said: str, node: yaml.Node) -> yaml.MarkedYAMLError:
    return yaml.MarkedYAMLError(problem=said, problem_mark=node.start_mark)


def _mapping(loader: _Loader, node: yaml.MappingNode) -> dict[Any, Any]:
    seen: set[Any] = set()
    for key, _ in node.value:
        if isinstance(key, yaml.ScalarNode) and key.tag != "tag:yaml.org,2002:merge":
            if key.value in seen:
                raise _problem(f"{key.value!r} is there twice", key)
            seen.add(key.value)
    loader.flatten_mapping(node)
    return loader.construct_mapping(node, deep=True)


_construct: Callable[[_Loader, yaml.MappingNode], dict[Any, Any]] = _mapping
_Loader.add_constructor("tag:yaml.org,2002:map", _construct)
