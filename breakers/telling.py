"""What messages about breakers have in common: threads, pages, and facts of a dependency."""

import hashlib
from typing import Any

from breakers.models import Dependency

LONGEST_THREAD = 120
BOARD = "/breakers/"


def thread(kind: str, name: str) -> str:
    """The subject that all messages about one thing share: `dependency:core->oracle`.

    The longest names are cut, and told apart by a digest.
    """
    subject = f"{kind}:{name}"
    if len(subject) <= LONGEST_THREAD:
        return subject
    digest = hashlib.sha256(subject.encode()).hexdigest()[:16]
    return f"{subject[: LONGEST_THREAD - len(digest) - 1]}~{digest}"


def of(dependency: Dependency) -> str:
    """The thread of a dependency."""
    return thread("dependency", dependency.name)


def page(dependency: Dependency) -> str:
    return f"{BOARD}{dependency.caller}/{dependency.callee}/"


def facts(dependency: Dependency) -> dict[str, Any]:
    """What a message says of whom to ask about it."""
    return {
        "dependency": dependency.name,
        "owner": dependency.owner or None,
        "runbook": dependency.runbook_url or None,
        "path": page(dependency),
    }
