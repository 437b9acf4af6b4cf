"""Parser of runbook files: YAML front matter followed by Markdown.

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
FIELD_WEIGHTS = {"kind": 1, "service": 2, "name": 3, "subject": 4}
"""Fields of an alert pattern, and their weights in the ranking."""
KNOWN = {"title", "number", "summary", "symptoms", "alerts"}
_PARTS = re.compile(r"---\n(?P<front>.*?)\n---\n(?P<body>.*)", re.DOTALL)
_COMMENT = re.compile(r"^ *<!--[^\n]*-->\n+", re.MULTILINE)


class InvalidRunbook(ValueError):
    """Raised for an invalid runbook file; the text names the file and the problem."""


@dataclass(frozen=True)
class Pattern:
    """A pattern of alerts: (field, glob) pairs, all of which must match an alert."""

    fields: tuple[tuple[str, str], ...]

    def matches(self, alert: Mapping[str, str]) -> bool:
        return all(fnmatchcase(alert[field], glob) for field, glob in self.fields)

    @property
    def rank(self) -> tuple[int, int]:
        """The pattern's specificity: total weight of its fields, then count without wildcards."""
        weight = sum(FIELD_WEIGHTS[field] for field, _ in self.fields)
        exact = sum(not {"*", "?", "["} & set(glob) for _, glob in self.fields)
        return weight, exact


@dataclass(frozen=True)
class Runbook:
    """A runbook; `body` is Markdown with headings from level two on, without HTML comments."""

    slug: str
    number: int
    title: str
    summary: str
    symptoms: tuple[str, ...]
    alerts: tuple[Pattern, ...]
    body: str


def parse_runbook(slug: str, text: str) -> Runbook:
    """Parse a runbook file; raise :class:`InvalidRunbook` if it is malformed."""
    parts = _PARTS.fullmatch(text)
    if parts is None or not SLUG.fullmatch(slug):
        raise InvalidRunbook(f"{slug}: must begin with front matter between two lines ---.")
    try:
        front = yaml.safe_load(parts["front"])
    except yaml.YAMLError as error:
        raise InvalidRunbook(f"{slug}: the front matter is not valid YAML ({error}).") from error
    if not isinstance(front, dict) or set(front) - KNOWN or not front.get("title"):
        raise InvalidRunbook(
            f"{slug}: needs a title; allowed fields are {', '.join(sorted(KNOWN))}."
        )
    number = front.get("number", 0)
    if type(number) is not int:
        raise InvalidRunbook(f"{slug}: number must be a whole number.")
    return Runbook(
        slug=slug,
        number=number,
        title=str(front["title"]),
        summary=str(front.get("summary", "")),
        symptoms=tuple(str(one) for one in _parse_list(slug, front, "symptoms")),
        alerts=tuple(_parse_pattern(slug, one) for one in _parse_list(slug, front, "alerts")),
        body=_COMMENT.sub("", parts["body"]),
    )


def find_best(runbooks: Sequence[Runbook], alert: Mapping[str, str]) -> Runbook | None:
    """Return the runbook whose pattern matches the alert with the highest rank, or None."""
    ranked = [
        (pattern.rank, runbook)
        for runbook in runbooks
        for pattern in runbook.alerts
        if pattern.matches(alert)
    ]
    return max(ranked, key=lambda each: each[0])[1] if ranked else None


def _parse_list(slug: str, front: Mapping[str, Any], field: str) -> Sequence[Any]:
    found = front.get(field, [])
    if not isinstance(found, list):
        raise InvalidRunbook(f"{slug}: {field} must be a list.")
    return found


def _parse_pattern(slug: str, value: Any) -> Pattern:
    if not isinstance(value, dict) or not value or set(value) - FIELD_WEIGHTS.keys():
        raise InvalidRunbook(f"{slug}: an alert needs one or more of {', '.join(FIELD_WEIGHTS)}.")
    return Pattern(tuple((str(field), str(glob)) for field, glob in value.items()))
