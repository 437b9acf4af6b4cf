"""The installation's runbooks: the files in `docs/runbooks/`, with lines on the current state.

Apps register functions that read status lines in modules named `runbook_status`.
"""

import functools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from django.conf import settings
from django.urls import reverse

from controlplane.core.console_urls import console_url
from controlplane.core.registry import KindRegistry, RegisteredFunction

from . import documents
from .documents import Runbook


@dataclass(frozen=True)
class StatusLine:
    """A sentence about the current state, shown on a runbook's page.

    `tone` is bad, warn, good or ""; `path` is the page to link to.
    """

    text: str
    tone: str = ""
    path: str = ""
    since: datetime | None = None


StatusReader = Callable[[datetime], Sequence[StatusLine]]


@dataclass(frozen=True)
class RunbookStatus(RegisteredFunction[StatusReader]):
    """A function that reads the status lines of the runbook `slug`."""

    slug: str = ""


RUNBOOK_STATUS = KindRegistry[RunbookStatus]("runbook_status")


def find_slug(*, service: str = "", kind: str = "", name: str = "", subject: str = "") -> str:
    """Return the slug of the runbook that fits a problem best, or "".

    `kind` is the kind of problem (`burn`, `threshold`, `breaker`, `away`, `dead_letters`,
    `alertmanager`), `name` that of the SLO, rule or alert, and `subject` the affected object
    (`oracle->openai`, `redis`).
    """
    alert = {"service": service, "kind": kind, "name": name, "subject": subject}
    found = documents.find_best(list_runbooks(), alert)
    return found.slug if found else ""


def page_path(slug: str) -> str:
    """Return the path of a runbook's page, or "" for an empty slug."""
    return reverse("runbook_page", args=[slug]) if slug else ""


def link_address(slug: str) -> str:
    """Return a runbook's URL for messages, or its path if PUBLIC_URL is not set."""
    return console_url(page_path(slug)) or page_path(slug) if slug else ""


def list_runbooks() -> Sequence[Runbook]:
    """Return all runbooks, sorted by number."""
    return tuple(_read_folder(settings.BASE_DIR / "docs" / "runbooks").values())


def find(slug: str) -> Runbook | None:
    return _read_folder(settings.BASE_DIR / "docs" / "runbooks").get(slug)


@functools.cache
def _read_folder(folder: Path) -> Mapping[str, Runbook]:
    """Return the runbooks of a folder by slug; raise InvalidRunbook."""
    runbooks = [
        documents.parse_runbook(page_path.stem, page_path.read_text(encoding="utf-8"))
        for page_path in sorted(folder.glob("*.md"))
        if page_path.stem != "README"
    ]
    return {one.slug: one for one in sorted(runbooks, key=lambda one: (one.number, one.slug))}


def runbook_status(slug: str) -> Callable[[StatusReader], StatusReader]:
    """Return a decorator that registers a reader of status lines for the runbook `slug`."""

    def register(read: StatusReader) -> StatusReader:
        RUNBOOK_STATUS.register(RunbookStatus(read, slug=slug))
        return read

    return register


def read_lines(slug: str, now: datetime) -> list[StatusLine]:
    readers = [one.function for one in RUNBOOK_STATUS.values() if one.slug == slug]
    return [line for read in readers for line in read(now)]
