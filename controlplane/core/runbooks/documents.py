"""A runbook as it is written: front matter in YAML, and Markdown. Pure.

`alerts` of the front matter says what it is about: a list of patterns by `service`, `kind`, `name`
and `subject`, in each of which `*` and `?` stand for anything.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Any

import yaml

SLUG = re.compile(r"[a-z0-9]+(-[a-z0-9]+)*")
ASKED = {"kind": 1, "service": 2, "name": 3, "subject": 4}
"""What a pattern may ask for, and how much that says."""
KNOWN = {"title", "number", "summary", "symptoms", "alerts"}
_PARTS = re.compile(r"---\n(?P<front>.*?)\n---\n(?P<body>.*)", re.DOTALL)


class WrongRunbook(ValueError):
    """A runbook can't be read; the text names it and says why."""


@dataclass(frozen=True)
class Pattern:
    """What a runbook is about: all of these must fit, (field, glob) each."""

    fields: tuple[tuple[str, str], ...]

    def fits(self, asked: Mapping[str, str]) -> bool:
        return all(fnmatchcase(asked[field], glob) for field, glob in self.fields)

    @property
    def rank(self) -> tuple[int, int]:
        """The more it says, and the more of that word for word, the better it fits."""
        said = sum(ASKED[field] for field, _ in self.fields)
        plain = sum(not {"*", "?", "["} & set(glob) for _, glob in self.fields)
        return said, plain


@dataclass(frozen=True)
class Runbook:
    """`body` is Markdown, of level two headings and lower: the title stands above it."""

    slug: str
    number: int
    title: str
    summary: str
    symptoms: tuple[str, ...]
    alerts: tuple[Pattern, ...]
    body: str


def read(slug: str, text: str) -> Runbook:
    """Raises :class:`WrongRunbook`."""
    parts = _PARTS.fullmatch(text)
    if parts is None or not SLUG.fullmatch(slug):
        raise WrongRunbook(f"{slug}: begins with --- and a line --- after its front matter.")
    try:
        front = yaml.safe_load(parts["front"])
    except yaml.YAMLError as error:
        raise WrongRunbook(f"{slug}: its front matter is no YAML ({error}).") from error
    if not isinstance(front, dict) or set(front) - KNOWN or not front.get("title"):
        raise WrongRunbook(f"{slug}: needs a title, and may say {', '.join(sorted(KNOWN))}.")
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
    """The runbook that fits best what is asked, by the fields of a pattern; the first of equals."""
    fitting = [
        (pattern.rank, runbook)
        for runbook in runbooks
        for pattern in runbook.alerts
        if pattern.fits(asked)
    ]
    return max(fitting, key=lambda each: each[0])[1] if fitting else None


def _number(slug: str, value: Any) -> int:
    if type(value) is not int:
        raise WrongRunbook(f"{slug}: number must be a whole number.")
    return value


def _listed(slug: str, front: Mapping[str, Any], field: str) -> Sequence[Any]:
    found = front.get(field, [])
    if not isinstance(found, list):
        raise WrongRunbook(f"{slug}: {field} must be a list.")
    return found


def _pattern(slug: str, value: Any) -> Pattern:
    if not isinstance(value, dict) or not value or set(value) - ASKED.keys():
        raise WrongRunbook(f"{slug}: an alert has one or more of {', '.join(ASKED)}.")
    return Pattern(tuple((str(field), str(glob)) for field, glob in value.items()))
