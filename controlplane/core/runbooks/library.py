"""The runbooks of this installation: the files of `docs/runbooks/`, read once per process."""

import functools
from collections.abc import Mapping, Sequence
from pathlib import Path

from django.conf import settings
from django.urls import reverse

from controlplane.core.console_urls import console_url

from . import documents
from .documents import Runbook


def about(*, service: str = "", kind: str = "", name: str = "", subject: str = "") -> str:
    """Return the slug of the runbook that matches best, or an empty text.

    `kind` is the kind of trouble (`burn`, `threshold`, `breaker`, `away`, `dead_letters`,
    `alertmanager`), `name` that of the SLO, rule or alert, `subject` the affected thing
    (`oracle->openai`, `redis`).
    """
    asked = {"service": service, "kind": kind, "name": name, "subject": subject}
    found = documents.best(every(), asked)
    return found.slug if found else ""


def path(slug: str) -> str:
    """Return the path of a runbook's page; empty for no runbook."""
    return reverse("runbook_page", args=[slug]) if slug else ""


def address(slug: str) -> str:
    """Return the path for messages: a whole URL if PUBLIC_URL is set."""
    return console_url(path(slug)) or path(slug) if slug else ""


def every() -> Sequence[Runbook]:
    """Return all runbooks in order of their numbers."""
    return tuple(_shelf(settings.BASE_DIR / "docs" / "runbooks").values())


def find(slug: str) -> Runbook | None:
    return _shelf(settings.BASE_DIR / "docs" / "runbooks").get(slug)


@functools.cache
def _shelf(folder: Path) -> Mapping[str, Runbook]:
    """Read the runbooks of a folder, without its README.md. Raises InvalidRunbook."""
    read = [
        documents.read(path.stem, path.read_text(encoding="utf-8"))
        for path in sorted(folder.glob("*.md"))
        if path.stem != "README"
    ]
    return {one.slug: one for one in sorted(read, key=lambda one: (one.number, one.slug))}
