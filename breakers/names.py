"""Names of services (slugs) and of dependencies (`caller->callee`), and counts as text. Pure."""

import re

MAX_LENGTH = 60
SLUG = rf"[a-z0-9-]{{1,{MAX_LENGTH}}}"
ARROW = "->"
SLUG_RULE = f"Must be 1 to {MAX_LENGTH} of the letters, digits and signs a-z 0-9 -"
MAX_REGISTERED = 20_000
MAX_DISCOVERED = 10_000
"""Limit of unregistered dependencies, whose names reports could invent."""
_SLUG = re.compile(SLUG, re.ASCII)
_DEPENDENCY = re.compile(f"({SLUG}){ARROW}({SLUG})", re.ASCII)


def is_slug(text: str) -> bool:
    return _SLUG.fullmatch(text) is not None


def dependency_name(caller: str, callee: str) -> str:
    return f"{caller}{ARROW}{callee}"


def dependency_resource(caller: str, callee: str) -> str:
    """Return a dependency as a resource that a team can own."""
    return f"dependency:{dependency_name(caller, callee)}"


def service_resource(slug: str) -> str:
    """Return a service as a resource that a team can own."""
    return f"service:{slug}"


def format_name(name: str) -> str:
    """Return a dependency's name as screens show it: `core → oracle`."""
    return name.replace(ARROW, " → ")


def split_name(name: str) -> tuple[str, str] | None:
    """Return caller and callee of a dependency's name, or None if the name is invalid."""
    found = _DEPENDENCY.fullmatch(name)
    return None if found is None else (found[1], found[2])


def format_instances(some: int, instances: int) -> str:
    """Return `2 of 3 instances`, `0 of 1 instance`, or `the only reporting instance` for 1 of 1.

    `instances` counts all reporting instances, including those with a forced mode.
    """
    if some == instances == 1:
        return "the only reporting instance"
    return f"{some:,} of {instances:,} instance{'' if instances == 1 else 's'}"
