"""Weekly report section of dead letters: arrivals, removals and frequent errors."""

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from django.db.models import Count, Max, Q, Sum

from controlplane.core.page_registry import (
    REPORT_SECTIONS,
    Chart,
    IsOwned,
    ReportRow,
    ReportSection,
)

from .models import Departure, DepthMinute, Gap, LetterStream
from .monitoring import alarms, groups, streams
from .monitoring.groups import GroupFailures

MAX_ROWS = 50
MAX_GROUPS = 8
MAX_LABEL_LENGTH = 60
FIGURES = (
    "arrived",
    "retried",
    "failed_again",
    "discarded",
    "archived",
    "vanished",
    "deepest",
    "depth",
)
REMOVALS = {
    "retried": Q(action="retry"),
    "failed_again": Q(action="retry", failed_again_at__isnull=False),
    "discarded": Q(action__in=["discard", "purge"]),
    "archived": Q(action__in=["age", "length"]),
}


Week = dict[str, Any]
"""Arrivals, removals, maximum and present depth of a `stream` in the reported week."""


@REPORT_SECTIONS.add(68)
def dead_letters_section(
    start: datetime, end: datetime, now: datetime, is_owned: IsOwned = None
) -> ReportSection:
    """Return the section: a row for each stream, those with the most arrivals first."""
    weeks = [
        one
        for one in _load_weeks(start, min(end, now), now)
        if any(one[name] for name in FIGURES)
        and (is_owned is None or is_owned(one["stream"].resource))
    ]
    weeks.sort(key=lambda one: (-one["arrived"], -one["deepest"], str(one["stream"])))
    owned = None if is_owned is None else [one["stream"].pk for one in weeks]
    failed = groups.list_most_failed(start, end, MAX_GROUPS, owned) if weeks else []
    is_bad = any(one["stream"].alarmed_at or one["depth"] or one["vanished"] for one in weeks)
    return ReportSection(
        slug="dead-letters",
        title="Dead letters",
        summary=_summarize_weeks(weeks),
        tone="warn" if is_bad else "good",
        columns=("stream", *FIGURES),
        rows=tuple(
            ReportRow({**one, "stream": str(one["stream"])}, alarms.stream_path(one["stream"]))
            for one in weeks[:MAX_ROWS]
        ),
        total=len(weeks),
        headline=_choose_headline(weeks),
        charts=(_build_chart(failed),) if failed else (),
    )


def _load_weeks(start: datetime, end: datetime, now: datetime) -> list[Week]:
    shown = [one for one in streams.list_shown(now) if one.source == LetterStream.Source.STREAM]
    if not shown:
        return []
    minutes = DepthMinute.objects.filter(minute__gte=start, minute__lt=end).values("stream")
    depths = {
        row["stream"]: (int(row["arrived"] or 0), int(row["deepest"] or 0))
        for row in minutes.order_by().annotate(arrived=Sum("arrived"), deepest=Max("most"))
    }
    removals = _count_removals(start, end)
    gaps = Gap.objects.filter(noticed_at__gte=start, noticed_at__lt=end).values("stream")
    vanished = {row["stream"]: row["gone"] for row in gaps.order_by().annotate(gone=Sum("count"))}
    weeks = []
    for one in shown:
        arrived, deepest = depths.get(one.pk, (0, 0))
        removed = removals.get(one.pk, dict.fromkeys(REMOVALS, 0))
        gone = int(vanished.get(one.pk, 0))
        week = {"stream": one, "arrived": arrived, **removed, "vanished": gone}
        weeks.append({**week, "deepest": deepest, "depth": one.depth})
    return weeks


def _count_removals(start: datetime, end: datetime) -> dict[int, Mapping[str, int]]:
    """Return the numbers of removals by stream and kind, including letters restored later.

    Removals are selected by the time of their intent, which is indexed.
    """
    gone = Departure.objects.filter(intended_at__gte=start, intended_at__lt=end)
    gone = gone.exclude(state__in=[Departure.State.INTENDED, Departure.State.GONE])
    counts = {name: Count("pk", filter=which) for name, which in REMOVALS.items()}
    rows = gone.order_by().values("stream").annotate(**counts).values_list("stream", *REMOVALS)
    return {pk: dict(zip(REMOVALS, figures, strict=True)) for pk, *figures in rows}


def _summarize_weeks(weeks: list[Week]) -> str:
    total = {name: sum(one[name] for one in weeks) for name in FIGURES}
    arrived, lying = total["arrived"], total["depth"]
    retried, vanished = total["retried"], total["vanished"]
    if not arrived and not lying:
        return "No dead letters."
    filled = sum(one["arrived"] > 0 for one in weeks)
    in_streams = "1 stream" if filled == 1 else f"{filled:,} streams"
    text = f"{_count_letters(arrived)} arrived in {in_streams}"
    dropped = total["discarded"] + total["archived"]
    # Letters of an earlier week, or older than the discovery of their stream, did not "arrive".
    before = max(0, lying + retried + dropped + vanished - arrived)
    if before:
        text += f", in addition to {before:,} from before"
    failed_again = f" ({total['failed_again']:,} failed again)" if retried else ""
    text += f"; {retried:,} retried{failed_again}, {dropped:,} discarded or archived, "
    text += f"{lying:,} waiting now"
    if vanished:
        text += f". {_count_letters(vanished)} removed by other Redis clients"
    return f"{text}."


def _choose_headline(weeks: list[Week]) -> str:
    depth, vanished = (sum(one[name] for one in weeks) for name in ("depth", "vanished"))
    if depth or not vanished:
        return _count_letters(depth)
    return f"{_count_letters(vanished)} removed by other Redis clients"


def _build_chart(failed: list[GroupFailures]) -> Chart:
    bars = tuple((_group_label(one), float(one.arrived)) for one in failed)
    text = ", ".join(f"{label} {value:,.0f}" for label, value in bars)
    return Chart(
        title="Most frequent failures this week",
        unit="dead letters",
        alt=f"Dead letters that arrived, by error: {text}.",
        bars=bars,
    )


def _group_label(one: GroupFailures) -> str:
    parts = filter(None, (one.group.error_type, one.group.pattern))
    text = ": ".join(parts) or "no error given"
    return text if len(text) <= MAX_LABEL_LENGTH else f"{text[: MAX_LABEL_LENGTH - 1].rstrip()}…"


def _count_letters(count: int) -> str:
    return "1 dead letter" if count == 1 else f"{count:,} dead letters"
