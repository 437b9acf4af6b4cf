"""What messages about breakers have in common: threads, pages, and facts of a dependency."""

import hashlib
from typing import Any

from controlplane.core import runbooks

from .models import Dependency

MAX_THREAD_LENGTH = 120
BOARD_PATH = "/breakers/"


def build_thread(kind: str, name: str) -> str:
    """The subject that all messages about one thing share: `dependency:core->oracle`."""
    return shorten_with_digest(f"{kind}:{name}", MAX_THREAD_LENGTH)


def shorten_with_digest(text: str, longest: int) -> str:
    """The text if it is short enough, else its beginning and a digest that tells it from others."""
    if len(text) <= longest:
        return text
    digest = hashlib.sha256(text.encode()).hexdigest()[:16]
    return f"{text[: longest - len(digest) - 1]}~{digest}"


def dependency_thread(dependency: Dependency) -> str:
    """The thread of a dependency."""
    return build_thread("dependency", dependency.name)


def dependency_path(caller: str, callee: str) -> str:
    """The dependency's page."""
    return f"{BOARD_PATH}{caller}/{callee}/"


def page_path(dependency: Dependency) -> str:
    return dependency_path(dependency.caller, dependency.callee)


def dependency_facts(dependency: Dependency) -> dict[str, Any]:
    """What a message says of whom to ask about it."""
    return {
        "dependency": dependency.name,
        "owner": dependency.owner or None,
        "runbook": dependency.runbook_url or _find_runbook(dependency) or None,
        "path": page_path(dependency),
    }


def _find_runbook(dependency: Dependency) -> str:
    """That of this installation which fits it."""
    slug = runbooks.about(kind="breaker", service=dependency.caller, subject=dependency.name)
    return runbooks.address(slug)
