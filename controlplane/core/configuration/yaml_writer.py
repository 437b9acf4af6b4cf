"""Canonical YAML of exported configuration files: the same document gives the same text."""

from collections.abc import Mapping
from typing import Any

import yaml

WIDTH = 100
SCHEMA_FOLDER = "schema"
HEADER = "# yaml-language-server: $schema={folder}/{schema}\n"


class _Dumper(yaml.CSafeDumper):
    """YAML dumper that writes texts of several lines as blocks, and no aliases."""

    def ignore_aliases(self, data: Any) -> bool:
        return True


def _represent_text(dumper: Any, text: str) -> yaml.Node:
    style = '"' if any(one in text for one in "\r\x85\u2028\u2029") else None
    if style is None and "\n" in text:
        style = "|"
    node: yaml.Node = dumper.represent_scalar("tag:yaml.org,2002:str", text, style=style)
    return node


_Dumper.add_representer(str, _represent_text)


def write_document(name: str, document: Mapping[str, Any]) -> str:
    """Return the text of the configuration file `name`; keys stay in the order of `document`."""
    head = HEADER.format(folder=SCHEMA_FOLDER, schema=schema_name(name))
    body = yaml.dump(
        dict(document),
        Dumper=_Dumper,
        sort_keys=False,
        allow_unicode=True,
        width=WIDTH,
        default_flow_style=False,
    )
    return f"{head}\n{body}"


def schema_name(file: str) -> str:
    """Return the name of a configuration file's JSON Schema: `slo.schema.json` for `slo.yaml`."""
    return f"{file.removesuffix('.yaml')}.schema.json"
