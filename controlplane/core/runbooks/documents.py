"""The parser of runbook files: YAML front matter, then Markdown. Pure.

`alerts` in the front matter is a list of patterns of `service`, `kind`, `name` and `subject`, with
the wildcards `*` and `?`.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Any

import yaml

SLUG = re.compile(r"[a-z0-9]+(-[a-z0-9]+)*")
ASKED = {"kind": 1, "service": 2, "name": 3, "subject": 4}
"""Fields of a pattern, and the weight of each in the ranking."""
KNOWN = {"title", "number", "summary", "symptoms", "alerts"}
_PARTS = re.compile(r"---\n(?P<front>.*?)\n---\n(?P<body>.*)", re.DOTALL)


class InvalidRunbook(ValueError):
    """A runbook file is invalid; the text names it and says why."""


@dataclass(frozen=True)
class Pattern:
    """A pattern of alerts: (field, glob) pairs, all of which must match."""

    fields: tuple[tuple[str, str], ...]

    def fits(self, asked: Mapping[str, str]) -> bool:
        return all(fnmatchcase(asked[field], glob) for field, glob in self.fields)

    @property
    def rank(self) -> tuple[int, int]:
        """The weight of its fields, then the number of fields without a wildcard."""
        said = sum(ASKED[field] for field, _ in self.fields)
        plain = sum(not {"*", "?", "["} & set(glob) for _, glob in self.fields)
        return said, plain


@dataclass(frozen=True)
class Runbook:
    """A runbook; its `body` is Markdown with headings from level two, below the title."""

    slug: str
    number: int
    title: str
    summary: str
    symptoms: tuple[str, ...]
    alerts: tuple[Pattern, ...]
    body: str


def read(slug: str, text: str) -> Runbook:
    """Parse a runbook file. Raises :class:`InvalidRunbook`."""
    parts = _PARTS.fullmatch(text)
    if parts is None or not SLUG.fullmatch(slug):
        raise InvalidRunbook(f"{slug}: begins with --- and a line --- after its front matter.")
    try:
        front = yaml.safe_load(parts["front"])
    except yaml.YAMLError as error:
        raise InvalidRunbook(f"{slug}: its front matter is no YAML ({error}).") from error
    if not isinstance(front, dict) or set(front) - KNOWN or not front.get("title"):
        raise InvalidRunbook(f"{slug}: needs a title, and may say {', '.join(sorted(KNOWN))}.")
    return Runbook(
        slug=slug,
        number=_number(slug, front.get("number", 0)),
        title=str(front["title"]),
        summary=str(front.get("summary", "")),
        symptoms=tuple(str(one) for one in _listed(slug, front, "symptoms")),
        alerts=tuple(_pattern(slug, one) for one in _listed(slug, front, "alerts")),
        body=parts["body"],
    )


def best(runbooks: Sequence[Runbook], asked: Mapping[str, str]) -> Runbook | None:
    """Return the runbook that matches the fields best, the first of equals."""
    fitting = [
        (pattern.rank, runbook)
        for runbook in runbooks
        for pattern in runbook.alerts
        if pattern.fits(asked)
    ]
    return max(fitting, key=lambda each: each[0])[1] if fitting else None


def _number(slug: str, value: Any) -> int:
    if type(value) is not int:
        raise InvalidRunbook(f"{slug}: number must be a whole number.")
    return value


def _listed(slug: str, front: Mapping[str, Any], field: str) -> Sequence[Any]:
    found = front.get(field, [])
    if not isinstance(found, list):
        raise InvalidRunbook(f"{slug}: {field} must be a list.")
    return found


def _pattern(slug: str, value: Any) -> Pattern:
    if not isinstance(value, dict) or not value or set(value) - ASKED.keys():
        raise InvalidRunbook(f"{slug}: an alert has one or more of {', '.join(ASKED)}.")
    return Pattern(tuple((str(field), str(glob)) for field, glob in value.items()))
