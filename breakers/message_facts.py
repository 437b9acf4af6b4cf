"""Facts that messages about breakers share: threads, paths, and contacts of a dependency."""

import hashlib
from typing import Any

from controlplane.core import runbooks

from .models import Dependency

MAX_THREAD_LENGTH = 120
BOARD_PATH = "/breakers/"


def build_thread(kind: str, name: str) -> str:
    """Return the subject that all messages about one thing share: `dependency:core->oracle`."""
    return shorten_with_digest(f"{kind}:{name}", MAX_THREAD_LENGTH)


def shorten_with_digest(text: str, longest: int) -> str:
    """Return the text, or if it is too long its beginning and a digest that keeps it unique."""
    if len(text) <= longest:
        return text
    digest = hashlib.sha256(text.encode()).hexdigest()[:16]
    return f"{text[: longest - len(digest) - 1]}~{digest}"


def dependency_thread(dependency: Dependency) -> str:
    """The thread of a dependency."""
    return build_thread("dependency", dependency.name)


def dependency_path(caller: str, callee: str) -> str:
    """Return the path of the dependency's page."""
    return f"{BOARD_PATH}{caller}/{callee}/"


def page_path(dependency: Dependency) -> str:
    return dependency_path(dependency.caller, dependency.callee)


def dependency_facts(dependency: Dependency) -> dict[str, Any]:
    """Return the facts about a dependency that a message shows: owner, runbook, page."""
    return {
        "dependency": dependency.name,
        "owner": dependency.owner or None,
        "runbook": dependency.runbook_url or _find_runbook(dependency) or None,
        "path": page_path(dependency),
    }


def _find_runbook(dependency: Dependency) -> str:
    """Return the address of this installation's runbook about the dependency.

    Empty if there is none.
    """
    slug = runbooks.about(kind="breaker", service=dependency.caller, subject=dependency.name)
    return runbooks.address(slug)
