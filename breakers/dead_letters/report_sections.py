"""Dead letters in the weekly report: arrivals, removals and the most frequent errors."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime

from django.db.models import Count, Max, Q, Sum

from controlplane.core.page_registry import REPORT_SECTIONS, Chart, ReportRow, ReportSection

from .models import Departure, DepthMinute, Gap, LetterStream
from .monitoring import alarms, streams, weekly_failures
from .monitoring.weekly_failures import GroupFailures

MAX_ROWS = 50
MAX_GROUPS = 8
MAX_LABEL_LENGTH = 60
COLUMNS = ("stream", "arrived", "retried", "discarded", "archived", "vanished", "deepest", "depth")
RETRIED = Q(action="retry")
DISCARDED = Q(action__in=["discard", "purge"])
ARCHIVED = Q(action__in=["age", "length"])


@dataclass(frozen=True)
class StreamWeek:
    """A stream's week: arrivals, removals by kind, and the greatest depth."""

    stream: LetterStream
    arrived: int
    retried: int
    discarded: int
    archived: int
    vanished: int
    deepest: int

    @property
    def is_empty(self) -> bool:
        figures = (self.arrived, self.retried, self.discarded, self.archived)
        return not any((*figures, self.vanished, self.deepest, self.stream.depth))


@REPORT_SECTIONS.add(68)
def dead_letters_section(start: datetime, end: datetime, now: datetime) -> ReportSection:
    """Return the streams with the most arrivals of the week, and the most frequent errors."""
    weeks = [one for one in _weeks(start, min(end, now), now) if not one.is_empty]
    weeks.sort(key=lambda one: (-one.arrived, -one.deepest, str(one.stream)))
    failed = weekly_failures.list_most_failed(start, end, MAX_GROUPS) if weeks else []
    return ReportSection(
        slug="dead-letters",
        title="Dead letters",
        summary=_in_words(weeks),
        tone=_tone(weeks),
        columns=COLUMNS,
        rows=tuple(_row(one) for one in weeks[:MAX_ROWS]),
        total=len(weeks),
        charts=(_chart(failed),) if failed else (),
    )


def _weeks(start: datetime, end: datetime, now: datetime) -> list[StreamWeek]:
    known = [one for one in streams.list_shown(now) if one.source == LetterStream.Source.STREAM]
    if not known:
        return []
    within = {"minute__gte": start, "minute__lt": end}
    minutes = DepthMinute.objects.filter(**within).values("stream")
    depths = {
        row["stream"]: (int(row["arrived"] or 0), int(row["deepest"] or 0))
        for row in minutes.order_by().annotate(arrived=Sum("arrived"), deepest=Max("most"))
    }
    left = _count_removals(start, end)
    gaps = Gap.objects.filter(noticed_at__gte=start, noticed_at__lt=end).values("stream")
    vanished = {row["stream"]: row["gone"] for row in gaps.order_by().annotate(gone=Sum("count"))}
    return [
        StreamWeek(
            one,
            arrived=depths.get(one.pk, (0, 0))[0],
            vanished=int(vanished.get(one.pk, 0)),
            deepest=depths.get(one.pk, (0, 0))[1],
            **left.get(one.pk, {"retried": 0, "discarded": 0, "archived": 0}),
        )
        for one in known
    ]


def _count_removals(start: datetime, end: datetime) -> dict[int, Mapping[str, int]]:
    """Return the removals of the week by stream, including letters restored since.

    The index is by time of intent.
    """
    gone = Departure.objects.filter(intended_at__gte=start, intended_at__lt=end)
    gone = gone.exclude(state__in=[Departure.State.INTENDED, Departure.State.GONE])
    counted = (
        gone.order_by()
        .values("stream")
        .annotate(
            retried=Count("pk", filter=RETRIED),
            discarded=Count("pk", filter=DISCARDED),
            archived=Count("pk", filter=ARCHIVED),
        )
    )
    return {
        row["stream"]: {name: row[name] for name in ("retried", "discarded", "archived")}
        for row in counted
    }


def _row(one: StreamWeek) -> ReportRow:
    cells = {
        "stream": str(one.stream),
        "arrived": one.arrived,
        "retried": one.retried,
        "discarded": one.discarded,
        "archived": one.archived,
        "vanished": one.vanished,
        "deepest": one.deepest,
        "depth": one.stream.depth,
    }
    return ReportRow(cells, alarms.stream_path(one.stream))


def _in_words(weeks: list[StreamWeek]) -> str:
    arrived = sum(one.arrived for one in weeks)
    lying = sum(one.stream.depth for one in weeks)
    if not arrived and not lying:
        return "No message died."
    said = f"{_letters(arrived)} arrived in {_streams(sum(one.arrived > 0 for one in weeks))}"
    retried = sum(one.retried for one in weeks)
    dropped = sum(one.discarded + one.archived for one in weeks)
    vanished = sum(one.vanished for one in weeks)
    # From an earlier week, or what a stream was found by: that is not counted as arrived.
    before = max(0, lying + retried + dropped + vanished - arrived)
    if before:
        said += f", beside {before:,} that lay there at the first look"
    said += f"; {retried:,} retried, {dropped:,} discarded or archived, and {lying:,} lie there now"
    return f"{said}. {_letters(vanished)} vanished, not through us." if vanished else f"{said}."


def _tone(weeks: list[StreamWeek]) -> str:
    """Return `good` only if no letter waits and none vanished."""
    waits = (one.stream.alarmed_at is not None or one.stream.depth for one in weeks)
    return "warn" if any(waits) or any(one.vanished for one in weeks) else "good"


def _chart(failed: list[GroupFailures]) -> Chart:
    bars = tuple((_label(one), float(one.arrived)) for one in failed)
    said = ", ".join(f"{label} {value:,.0f}" for label, value in bars)
    return Chart(
        title="What failed most this week",
        unit="dead letters",
        alt=f"Dead letters that arrived, by what they failed of: {said}.",
        bars=bars,
    )


def _label(one: GroupFailures) -> str:
    said = ": ".join(part for part in (one.error_type, one.pattern) if part) or "no error given"
    return said if len(said) <= MAX_LABEL_LENGTH else f"{said[: MAX_LABEL_LENGTH - 1].rstrip()}…"


def _letters(count: int) -> str:
    return "1 dead letter" if count == 1 else f"{count:,} dead letters"


def _streams(count: int) -> str:
    return "1 stream" if count == 1 else f"{count:,} streams"
