"""Facts for messages about breakers: thread keys, page paths and contacts of dependencies."""

import hashlib
from typing import Any

from controlplane.core import runbooks

from .models import Dependency

MAX_THREAD_LENGTH = 120
BOARD_PATH = "/breakers/"


def build_thread(kind: str, name: str) -> str:
    """Return the thread key for messages about an object, such as `dependency:core->oracle`."""
    return shorten_with_digest(f"{kind}:{name}", MAX_THREAD_LENGTH)


def shorten_with_digest(text: str, longest: int) -> str:
    """Return the text; if it is too long, its beginning and a digest that keeps it unique."""
    if len(text) <= longest:
        return text
    digest = hashlib.sha256(text.encode()).hexdigest()[:16]
    return f"{text[: longest - len(digest) - 1]}~{digest}"


def dependency_path(caller: str, callee: str) -> str:
    return f"{BOARD_PATH}{caller}/{callee}/"


def page_path(dependency: Dependency) -> str:
    return dependency_path(dependency.caller, dependency.callee)


def dependency_facts(dependency: Dependency) -> dict[str, Any]:
    """Return the facts that a message shows about a dependency: owner, runbook and page."""
    name = dependency.name
    own = runbooks.find_slug(kind="breaker", service=dependency.caller, subject=name)
    return {
        "dependency": name,
        "owner": dependency.owner or None,
        "runbook": dependency.runbook_url or runbooks.link_address(own) or None,
        "path": page_path(dependency),
    }
