"""Reader and parser of the YAML files of a configuration folder."""

from collections.abc import Collection, Iterable, Mapping
from pathlib import Path
from typing import Any

import yaml

from controlplane.core.errors import InvalidInput
from controlplane.core.json_values import Errors, add_error

MAX_FILE_BYTES = 4 * 1024 * 1024
MAX_NUMBER_LENGTH = 100
BOOLEAN, TEXT = "tag:yaml.org,2002:bool", "tag:yaml.org,2002:str"
MAX_DEPTH = 100
"""Levels of lists and mappings. libyaml's loader recurses, and a full stack ends the process."""
MAX_NODES = 500_000
"""Maximum number of values in a document, with references expanded."""
NUMBERS = frozenset({"tag:yaml.org,2002:int", "tag:yaml.org,2002:float"})


def read_files(folder: Path, names: Iterable[str]) -> dict[str, str]:
    """Return the texts, by name, of those of the named files that exist in the folder.

    Raises :class:`InvalidInput` if the folder is missing, or a file is too large or unreadable.
    """
    if not folder.is_dir():
        raise InvalidInput({str(folder): ["This folder doesn't exist."]})
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


def parse_document(name: str, text: str, errors: Errors) -> dict[str, Any]:
    """Return the mapping in a file that has one YAML document.

    If the file is malformed, the result is empty and the problem is added to `errors`.
    """
    documents = _load_documents(name, text, _FastLoader, errors)
    if len(documents) > 1:
        add_error(errors, name, "Must be a single YAML document.")
    found = documents[0] if documents else None
    if found is None:
        return {}
    if not isinstance(found, dict):
        add_error(errors, name, "Must be a mapping of keys to values.")
        return {}
    return found


def parse_documents(name: str, text: str, errors: Errors) -> list[Any]:
    """Return all documents of an untrusted YAML or JSON text.

    If the text can't be parsed, the result is empty and the problem is added to `errors`.
    """
    return _load_documents(name, text, _WithoutAliases, errors)


def read_document(file: str, text: str, parts: Collection[str], errors: Errors) -> dict[str, Any]:
    """Parse a file with these top-level parts; problems are added to `errors`."""
    document = parse_document(file, text, errors)
    for key in document.keys() - set(parts):
        add_error(errors, f"{file}: {key}", f"Unknown; use one of {', '.join(parts)}.")
    return document


def read_entries(
    file: str, document: Mapping[str, Any], part: str, errors: Errors
) -> dict[str, dict[str, Any]]:
    """Return the entries of a part by name; invalid ones are added to `errors`."""
    value = document.get(part)
    if not isinstance(value, dict | None):
        add_error(errors, f"{file}: {part}", "Must be a mapping of names to values.")
        return {}
    found = {}
    for name, entry in (value or {}).items():
        if not isinstance(name, str) or not isinstance(entry, dict | None):
            add_error(errors, f"{file}: {part}: {name}", "Must be a name with a mapping.")
        elif wrong := [key for key in entry or {} if not isinstance(key, str)]:
            add_error(errors, f"{file}: {part}: {name}: {wrong[0]}", "Quote this key.")
        else:
            found[name] = dict(entry or {})
    return found


def read_entry_file(file: str, text: str, part: str) -> tuple[dict[str, dict[str, Any]], Errors]:
    """Parse a file with a single part; return its entries by name, and its errors."""
    errors: Errors = {}
    document = read_document(file, text, (part,), errors)
    return read_entries(file, document, part, errors), errors


def read_list(file: str, document: Mapping[str, Any], part: str, errors: Errors) -> list[Any]:
    """Return the list of a part, empty if it is missing; another value is added to `errors`."""
    value = document.get(part)
    if isinstance(value, list):
        return value
    if value is not None:
        add_error(errors, f"{file}: {part}", "Must be a list.")
    return []


def _load_documents(name: str, text: str, loader: Any, errors: Errors) -> list[Any]:
    try:
        if loader is _FastLoader:
            _require_limits(text)
        return list(yaml.load_all(text, Loader=loader))
    except (yaml.YAMLError, RecursionError, ValueError, OverflowError) as error:
        add_error(errors, name, " ".join(str(error).split()))
        return []


def _require_limits(text: str) -> None:
    """Raise an error if a text has too many values, or too many levels.

    libyaml's parser needs neither memory nor stack for them, unlike its loader.
    """
    depth = nodes = 0
    for event in yaml.parse(text, Loader=yaml.CSafeLoader):
        nodes += isinstance(event, yaml.NodeEvent)
        if isinstance(event, yaml.CollectionStartEvent):
            depth += 1
        elif isinstance(event, yaml.CollectionEndEvent):
            depth -= 1
        if depth > MAX_DEPTH:
            raise _problem(f"more than {MAX_DEPTH} levels of lists and mappings", event)
        if nodes > MAX_NODES:
            raise _problem(f"more than {MAX_NODES:,} values", event)


class _StrictConstructor:
    """Rejects Python objects, overlong numbers, and references that expand without limit.

    A mixin of PyYAML's safe loaders.
    """

    def construct_document(self, node: yaml.Node) -> Any:
        if _count_nodes(node, {}) > MAX_NODES:
            raise _problem(f"more than {MAX_NODES:,} values, with references (*name)", node)
        return super().construct_document(node)  # type: ignore[misc]

    def construct_object(self, node: yaml.Node, deep: bool = False) -> Any:
        # Python parses and prints integers of many digits slowly, or not at all.
        if node.tag in NUMBERS and len(node.value) > MAX_NUMBER_LENGTH:
            raise _problem("a number with too many digits", node)
        try:
            return super().construct_object(node, deep=deep)  # type: ignore[misc]
        except (AttributeError, LookupError, TypeError) as error:  # `!!timestamp x`
            raise _problem(f"not a valid {node.tag.rpartition(':')[2]}", node) from error


class _Loader(_StrictConstructor, yaml.SafeLoader):
    """YAML loader that rejects Python objects, duplicate keys and overlong numbers."""


class _FastLoader(_StrictConstructor, yaml.CSafeLoader):
    """The same on libyaml, ten times as fast."""


class _WithoutAliases(_Loader):
    """YAML loader that also rejects aliases, because nested aliases can exhaust the memory."""

    def compose_node(self, parent: Any, index: Any) -> Any:
        if self.check_event(yaml.AliasEvent):
            raise yaml.YAMLError("references (*name) are not supported; repeat the value")
        return super().compose_node(parent, index)


def _count_nodes(node: yaml.Node, known: dict[int, int]) -> int:
    """Return the number of values in a node; a node that contains itself raises an error."""
    found = known.get(id(node))
    if found is not None:
        if found == 0:
            raise _problem("a reference (*name) to a value that contains it", node)
        return found
    known[id(node)] = 0
    inner: list[yaml.Node] = []
    if isinstance(node, yaml.MappingNode):
        inner = [part for pair in node.value for part in pair]
    elif isinstance(node, yaml.SequenceNode):
        inner = node.value
    known[id(node)] = 1 + sum(_count_nodes(one, known) for one in inner)
    return known[id(node)]


def _problem(text: str, at: Any) -> yaml.MarkedYAMLError:
    return yaml.MarkedYAMLError(problem=text, problem_mark=at.start_mark)


def _construct_mapping(loader: Any, node: yaml.MappingNode) -> Any:
    seen: set[Any] = set()
    for key, _ in node.value:
        if key.tag == BOOLEAN:  # YAML 1.1 reads the key `on` as true.
            key.tag = TEXT
        if isinstance(key, yaml.ScalarNode) and key.tag != "tag:yaml.org,2002:merge":
            if key.value in seen:
                raise _problem(f"{key.value!r} is listed twice", key)
            seen.add(key.value)
    loader.flatten_mapping(node)
    return loader.construct_mapping(node, deep=True)


for _each in (_Loader, _FastLoader):
    _each.add_constructor("tag:yaml.org,2002:map", _construct_mapping)
