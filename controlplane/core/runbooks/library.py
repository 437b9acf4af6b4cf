"""The runbooks of this installation: the files of `docs/runbooks/`, read once by each process."""

import functools
from collections.abc import Mapping, Sequence
from pathlib import Path

from django.conf import settings
from django.urls import reverse

from controlplane.core.console_urls import console_url

from . import documents
from .documents import Runbook


def about(*, service: str = "", kind: str = "", name: str = "", subject: str = "") -> str:
    """The slug of the runbook that fits best, or nothing.

    `kind` is what kind of thing happened (`burn`, `threshold`, `breaker`, `away`, `dead_letters`,
    `alertmanager`), `name` what it is called (an SLO, a rule, an alert), `subject` what it happened
    to (`oracle->openai`, `redis`).
    """
    asked = {"service": service, "kind": kind, "name": name, "subject": subject}
    found = documents.best(every(), asked)
    return found.slug if found else ""


def path(slug: str) -> str:
    """The address of a runbook's page; empty for no runbook."""
    return reverse("runbook_page", args=[slug]) if slug else ""


def address(slug: str) -> str:
    """The same for messages: whole, if somebody said where the console is."""
    return console_url(path(slug)) or path(slug) if slug else ""


def every() -> Sequence[Runbook]:
    """All of them, in order of their numbers."""
    return tuple(_shelf(settings.BASE_DIR / "docs" / "runbooks").values())


def find(slug: str) -> Runbook | None:
    return _shelf(settings.BASE_DIR / "docs" / "runbooks").get(slug)


@functools.cache
def _shelf(folder: Path) -> Mapping[str, Runbook]:
    """Raises :class:`documents.WrongRunbook`. `README.md` is about the others."""
    read = [
        documents.read(path.stem, path.read_text(encoding="utf-8"))
        for path in sorted(folder.glob("*.md"))
        if path.stem != "README"
    ]
    return {one.slug: one for one in sorted(read, key=lambda one: (one.number, one.slug))}
