"""What messages about breakers have in common: threads, pages, and facts of a dependency."""

import hashlib
from typing import Any

from controlplane.core import runbooks

from .models import Dependency

MAX_THREAD_LENGTH = 120
BOARD = "/breakers/"


def thread(kind: str, name: str) -> str:
    """The subject that all messages about one thing share: `dependency:core->oracle`."""
    return cut(f"{kind}:{name}", MAX_THREAD_LENGTH)


def cut(text: str, longest: int) -> str:
    """The text if it is short enough, else its beginning and a digest that tells it from others."""
    if len(text) <= longest:
        return text
    digest = hashlib.sha256(text.encode()).hexdigest()[:16]
    return f"{text[: longest - len(digest) - 1]}~{digest}"


def of(dependency: Dependency) -> str:
    """The thread of a dependency."""
    return thread("dependency", dependency.name)


def path(caller: str, callee: str) -> str:
    """The dependency's page."""
    return f"{BOARD}{caller}/{callee}/"


def page(dependency: Dependency) -> str:
    return path(dependency.caller, dependency.callee)


def facts(dependency: Dependency) -> dict[str, Any]:
    """What a message says of whom to ask about it."""
    return {
        "dependency": dependency.name,
        "owner": dependency.owner or None,
        "runbook": dependency.runbook_url or _runbook(dependency) or None,
        "path": page(dependency),
    }


def _runbook(dependency: Dependency) -> str:
    """That of this installation which fits it."""
    slug = runbooks.about(kind="breaker", service=dependency.caller, subject=dependency.name)
    return runbooks.address(slug)
