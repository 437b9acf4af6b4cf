"""Extension of Griffe that shows Sphinx roles in docstrings as code: `:class:` and others."""

import re
from typing import Any

import griffe

_ROLE = re.compile(r":(?:attr|class|data|exc|func|meth|mod|obj):`~?([^`]+)`")


class DocstringRoles(griffe.Extension):
    """Replaces ``:class:`Name` `` by `` `Name` `` in the docstrings of all objects."""

    def on_object(self, *, obj: griffe.Object, **_: Any) -> None:
        if obj.docstring is not None:
            obj.docstring.value = replace_roles(obj.docstring.value)


def replace_roles(text: str) -> str:
    return _ROLE.sub(lambda match: f"`{match[1].removeprefix('switchgear.')}`", text)
