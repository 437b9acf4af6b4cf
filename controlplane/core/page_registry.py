"""Registries of the content that apps add to shared pages.

The page *Needs attention*, the weekly report, the preview of an engage, the switchboard, the page
of a ramp and the first steps show the registered items in order of `position`. Apps register
functions in modules named `attention`, `report_sections`, `preview_fields`, `board_notices`,
`ramp_errors` and `first_steps`.
"""

import functools
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from django.db.models import QuerySet

from controlplane.core.registry import FunctionRegistry, KindRegistry, RegisteredFunction

DIALOG, POST, LINK = "dialog", "post", "link"


@dataclass(frozen=True)
class AttentionAction:
    """A button of an attention item, for people with the scope or power `permission`.

    `method` says what the button does with `path`: `dialog` opens its form, `post` submits it at
    once, and `link` leads to the page. The user with the id `except_user` may not do it. With
    `needs_current` it is blocked while the page is out of date. With `authority`, the value of an
    :class:`~controlplane.core.actions.Action`, the rules for the item's resource decide, too.
    """

    label: str
    path: str
    permission: str
    icon: str
    method: str = DIALOG
    except_user: int | None = None
    needs_current: bool = False
    authority: str = ""


@dataclass(frozen=True)
class AttentionItem:
    """An item that needs a person's action, with the actions and the page to resolve it.

    `kind` is a slug (`overdue`, `approval`), `severity` is critical, warning or info, and `due_at`
    is the time when the item gets worse without action, if any. `subjects` name what it is about,
    as escalations do (`episode:7`); an item whose subjects are all those of earlier items is left
    out. An item with `only_for`, a user's id, is shown to this user alone and not counted. The page
    with the changes in the hour before `since` is `changes_path`, if they may have caused the item.
    `resource` is what a team may own of it (`segment:finance`), "" if it concerns the installation.
    """

    kind: str
    severity: str
    title: str
    detail: str
    path: str
    since: datetime
    due_at: datetime | None = None
    actions: tuple[AttentionAction, ...] = ()
    subjects: tuple[str, ...] = ()
    only_for: int | None = None
    changes_path: str = ""
    resource: str = ""


@dataclass(frozen=True)
class NoticeRow:
    """A row of a board notice, with the page to read and the form to end it."""

    text: str
    by: str
    ends_at: datetime
    path: str
    end_label: str
    end_path: str


@dataclass(frozen=True)
class BoardNotice:
    """A notice above the switchboard about changes in force that are no switches.

    `heading` is a sentence without a full stop, `rows` may be only the first of `total` rows, and
    `path` lists them all.
    """

    heading: str
    icon: str
    rows: tuple[NoticeRow, ...]
    total: int
    path: str

    @property
    def unlisted(self) -> int:
        return self.total - len(self.rows)


@dataclass(frozen=True)
class Chart:
    """A bar chart of (label, value) pairs in `unit`; `alt` is a one-sentence text alternative.

    A value is None if its time has not begun.
    """

    title: str
    unit: str
    alt: str
    bars: tuple[tuple[str, float | None], ...]


@dataclass(frozen=True)
class ReportRow:
    """A row of a report section: JSON values or times by column, and the path of its page."""

    cells: Mapping[str, Any]
    path: str


@dataclass(frozen=True)
class ReportSection:
    """A section of the weekly report; `rows` may be only the first of `total` rows.

    `tone` is `bad` or `warn` if a reader has to act, `unknown` without data, else `good`.
    `headline` says in a few words what they have to look at (`3 overdue switches`).
    """

    slug: str
    title: str
    summary: str
    tone: str
    columns: tuple[str, ...] = ()
    rows: tuple[ReportRow, ...] = ()
    total: int = 0
    charts: tuple[Chart, ...] = field(default_factory=tuple)
    headline: str = ""


@dataclass(frozen=True)
class PhaseErrors:
    """Bad and total events of an SLO in each phase of a ramp; None without counted events.

    `path` is the SLO's page. Events are those of the SLO's whole service. `is_gate` is True if a
    gate of the ramp reads the SLO.
    """

    name: str
    path: str
    counts: tuple[tuple[float, float] | None, ...]
    is_gate: bool = False


@dataclass(frozen=True)
class FirstStepEvidence:
    """A fact that shows that a step is done: in words, its time, and the page that shows it."""

    text: str
    at: datetime
    path: str


@dataclass(frozen=True)
class FirstStep:
    """A step of a new installation, done as soon as `find_evidence` returns evidence.

    `missing` says what is known without evidence. `template` renders the instructions for `user`,
    and says who else can do it.
    """

    name: str
    title: str
    summary: str
    missing: str
    template: str
    position: int
    find_evidence: Callable[[datetime], FirstStepEvidence | None]


AttentionReader = Callable[[datetime], Sequence[AttentionItem]]
"""Function of the time that returns all items of one kind, most severe first."""
IsOwned = Callable[[str], bool] | None
"""Function that says whether a resource (`segment:finance`) belongs in a team's report.

It is None in the report about everything.
"""
ReportBuilder = Callable[[datetime, datetime, datetime, IsOwned], ReportSection | None]
"""Function of a week's `start` and `end`, of `now`, and of what a team owns.

It returns the section, or None if the report has no such section.
"""
NoticeReader = Callable[[datetime], BoardNotice | None]
"""Function of the time that returns the notice, None if there is nothing to tell."""
PreviewReader = Callable[[str, datetime], Mapping[str, Any]]
"""Function of a switch id and the time that returns fields of the engage preview."""

RampErrorReader = Callable[
    [Collection[str], Collection[str], Sequence[tuple[datetime, datetime]]], Sequence[PhaseErrors]
]
"""Function of services, of SLOs that gates read, and of the begin and end of phases.

It returns the errors in each phase.
"""

Rows = Callable[[Any], QuerySet[Any] | Sequence[QuerySet[Any]]]
"""Function of the time that returns querysets, of which one has rows if a source has items.

It is called once per process, with `compiled_query.MOMENT` for the current time. There may be rows
without items, but no items without rows.
"""


AttentionBuilder = Callable[..., Sequence[AttentionItem]]
"""Function of the time and the rows of querysets, one list each, that returns all items of a kind.
"""
RowsReader = Callable[[Any], QuerySet[Any, Any]]
"""Function of the time that returns the queryset of an attention source's rows.

It is called once per process, with `compiled_query.MOMENT` for the current time.
"""


@dataclass(frozen=True)
class AttentionSource(RegisteredFunction[AttentionReader]):
    """A function that lists attention items, skipped while no queryset of `only_if` has rows.

    With `rows`, the page fetches the rows of all sources by one statement, and `build` makes the
    items of them.
    """

    only_if: Rows | None = None
    rows: tuple[RowsReader, ...] = ()
    build: AttentionBuilder | None = None


ATTENTION_SOURCES = KindRegistry[AttentionSource]("attention", order=lambda source: source.position)
REPORT_SECTIONS = FunctionRegistry[ReportBuilder]("report_sections")
BOARD_NOTICES = FunctionRegistry[NoticeReader]("board_notices")
PREVIEW_FIELDS = FunctionRegistry[PreviewReader]("preview_fields")
FIRST_STEPS = KindRegistry[FirstStep]("first_steps", order=lambda step: step.position)
RAMP_ERRORS = FunctionRegistry[RampErrorReader]("ramp_errors")


def attention_source(
    position: int, *, only_if: Rows | None = None
) -> Callable[[AttentionReader], AttentionReader]:
    """Return a decorator that registers a function as an attention source."""

    def register(read: AttentionReader) -> AttentionReader:
        ATTENTION_SOURCES.register(AttentionSource(read, position, only_if))
        return read

    return register


def attention_rows(
    position: int, *rows: RowsReader
) -> Callable[[AttentionBuilder], AttentionReader]:
    """Return a decorator that registers a function of the time and of `rows` as a source.

    The decorated function takes the time alone, and fetches its rows itself.
    """

    def register(build: AttentionBuilder) -> AttentionReader:
        @functools.wraps(build)
        def read(now: datetime) -> Sequence[AttentionItem]:
            return build(now, *(list(one(now)) for one in rows))

        ATTENTION_SOURCES.register(AttentionSource(read, position, rows=rows, build=build))
        return read

    return register
