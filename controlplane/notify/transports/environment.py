"""Environment variables of all transports, read for the Django settings.

Imported before Django is configured, so this module must not import models or settings.
"""

from collections.abc import Callable, Mapping
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any

from controlplane.core.environment_variables import check_url


def variable_names() -> tuple[str, ...]:
    return tuple(name for module in _modules() for name in module.VARIABLES)


def read(variables: Mapping[str, str]) -> dict[str, Any]:
    """Return the Django settings of all transports by name; raise `WrongVariable` if invalid."""
    found: dict[str, Any] = {}
    for module in _modules():
        found |= module.read(variables)
    return found


def url_reader(name: str) -> Callable[[Mapping[str, str]], dict[str, Any]]:
    """Return a transport's function `read`, for a variable `name` that is a URL or empty."""

    def read(variables: Mapping[str, str]) -> dict[str, Any]:
        url = variables.get(name, "").rstrip("/")
        return {name: url and check_url(url, name, {"http", "https"})}

    return read


def _modules() -> list[ModuleType]:
    files = sorted(Path(__file__).parent.glob("*/environment.py"))
    return [import_module(f"{__package__}.{file.parent.name}.environment") for file in files]
