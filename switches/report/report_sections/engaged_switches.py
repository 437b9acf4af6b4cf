"""Report sections about switches that were engaged at the end of the week.

Reports generated later show the state at the week's end. Episodes that have ended since are marked,
and left out of sections that ask for action.
"""

import functools
import heapq
import operator
from collections.abc import Mapping
from datetime import datetime
from typing import Any

from django.contrib.postgres.aggregates import ArrayAgg
from django.db.models import Case, Count, F, Q, QuerySet, Subquery, Value, When

from controlplane.core import durations
from controlplane.core.audit.models import AuditEntry
from controlplane.core.page_registry import REPORT_SECTIONS, IsOwned, ReportSection
from controlplane.core.team_filter import keep_owned
from switches import neglected_episodes
from switches.models import Episode, SwitchState
from switches.ramps import descriptions
from switches.report.reason_quality import MIN_LISTED_POINTS, assess, assess_quickly
from switches.report.section_rows import (
    MAX_ROWS,
    build_section,
    engaged_by,
    episode_path,
    pluralize,
    read_first_rows,
    reason_of,
)
from switches.scopes import SCOPES

MANY_EXTENDS = 3
VAGUE_COLUMNS = ["pk", "switch_id", "reason", "engaged_by_type", "engaged_by_name", "engaged_at"]


def find_standing(end: datetime, now: datetime, is_owned: IsOwned = None) -> QuerySet[Episode]:
    """Return the episodes open at the end of the week, or now if the week is not over."""
    at = min(end, now)
    rows = Episode.objects.filter(engaged_at__lt=at).filter(
        Q(ended_at__isnull=True) | Q(ended_at__gte=at)
    )
    return keep_owned(rows, "switch_id", is_owned)


def find_still_open(end: datetime, now: datetime, is_owned: IsOwned = None) -> QuerySet[Episode]:
    """Return the episodes that were open at the end of the week and are open now."""
    return find_standing(end, now, is_owned).filter(ended_at__isnull=True)


@REPORT_SECTIONS.add(10)
def vague_section(
    _start: datetime, end: datetime, now: datetime, is_owned: IsOwned = None
) -> ReportSection:
    still_open = find_still_open(end, now, is_owned)
    reasons = list(still_open.values_list("pk", "reason"))
    quick = {reason: assess_quickly(reason).points for reason in {reason for _, reason in reasons}}
    rated = [(quick[reason], -pk, reason) for pk, reason in reasons]
    total = sum(points >= MIN_LISTED_POINTS for points, *_ in rated)
    # Word lookups are slow, so only candidates for the list are assessed fully.
    candidates = heapq.nlargest(2 * MAX_ROWS, rated)
    points = {-pk: assess(reason).points for _, pk, reason in candidates}
    vague = [pk for pk in points if points[pk] >= MIN_LISTED_POINTS]
    listed = sorted(
        still_open.filter(pk__in=vague).values_list(*VAGUE_COLUMNS, named=True),
        key=lambda episode: (-points[episode.pk], episode.engaged_at, episode.pk),
    )
    total = max(total, len(listed))
    return build_section(
        "vague_reasons",
        "Vague reasons",
        listed[:MAX_ROWS],
        episode_path,
        total=total,
        tone="warn" if total else "good",
        headline=pluralize(total, "vague reason"),
        summary=f"{pluralize(total, 'switch')} engaged for a vague reason: the next person can't "
        "tell when to release it. Ask who engaged it, then extend with a better reason.",
        empty="Every reason names a component, a number, or both.",
        switch="switch_id",
        reason=reason_of,
        what_is_missing=lambda episode: "; ".join(assess(episode.reason).why),
        engaged_by=engaged_by,
        engaged_at="engaged_at",
    )


@REPORT_SECTIONS.add(20)
def forgotten_section(
    _start: datetime, end: datetime, now: datetime, is_owned: IsOwned = None
) -> ReportSection:
    often = _extends_of_open(find_still_open(end, now, is_owned))
    signs = neglected_episodes.neglect_conditions(now)
    shows_any = functools.reduce(operator.or_, signs.values())
    points = sum(
        (
            Case(When(sign, then=Value(1)), default=Value(0))
            for sign in (*signs.values(), Q(switch_id__in=list(often)))
        ),
        start=Value(0),
    )
    still_open = find_still_open(end, now, is_owned).annotate(
        looked_at=neglected_episodes.LAST_TOUCHED
    )
    found = still_open.filter(shows_any).annotate(signs=points)
    episodes, counts = read_first_rows(found.order_by("-signs", "engaged_at", "pk"))
    total = counts["total"]
    return build_section(
        "forgotten",
        "Forgotten switches",
        episodes,
        episode_path,
        total=total,
        tone="bad" if total else "good",
        headline=pluralize(total, "forgotten switch"),
        summary=f"{pluralize(total, 'switch')} engaged without attention for 7 days. Release each "
        "one, or say why it stays.",
        empty="Every engaged switch was engaged, acknowledged or extended in the last 7 days.",
        switch="switch_id",
        why=lambda episode: "; ".join(_list_signs(episode, often, now)),
        reason=reason_of,
        engaged_by=engaged_by,
        stood_seconds=lambda episode: int((now - episode.engaged_at).total_seconds()),
    )


@REPORT_SECTIONS.add(30)
def overdue_section(
    _start: datetime, end: datetime, now: datetime, is_owned: IsOwned = None
) -> ReportSection:
    found = find_standing(end, now, is_owned).filter(overdue_at__lt=min(end, now))
    episodes, counts = read_first_rows(found.order_by("expires_at", "pk"))
    total = counts["total"]
    return build_section(
        "overdue",
        "Overdue",
        episodes,
        episode_path,
        total=total,
        tone="bad" if total else "good",
        headline=pluralize(total, "overdue switch"),
        summary=f"{pluralize(total, 'switch')} past expiry and still engaged.",
        empty="No switch was past its expiry.",
        switch="switch_id",
        expired_at="expires_at",
        acknowledged_by=lambda episode: episode.acknowledged_by if episode.acknowledged_at else "",
        reason=reason_of,
        engaged_by=engaged_by,
        now=_describe_state,
    )


@REPORT_SECTIONS.add(50)
def active_section(
    _start: datetime, end: datetime, now: datetime, is_owned: IsOwned = None
) -> ReportSection:
    order = Case(
        *(When(switch__scope=scope, then=Value(n)) for n, scope in enumerate(SCOPES.names))
    )
    episodes, counts = read_first_rows(
        find_standing(end, now, is_owned).order_by(order, "engaged_at", "pk"),
        **{scope: Q(switch__scope=scope) for scope in SCOPES.names},
    )
    total = counts["total"]
    by_scope = ", ".join(f"{counts[scope]:,} {scope}" for scope in SCOPES.names if counts[scope])
    return build_section(
        "active",
        "Engaged at the end of the week" if end <= now else "Engaged now",
        episodes,
        episode_path,
        total=total,
        tone="warn" if total else "good",
        headline=pluralize(total, "engaged switch"),
        summary=f"{pluralize(total, 'switch')}: {by_scope}.",
        empty="No switch was engaged.",
        switch="switch_id",
        reason=reason_of,
        engaged_by=engaged_by,
        engaged_at="engaged_at",
        expires_at="expires_at",
        now=_describe_state,
    )


@REPORT_SECTIONS.add(60)
def permanent_section(
    _start: datetime, end: datetime, now: datetime, is_owned: IsOwned = None
) -> ReportSection:
    found = find_standing(end, now, is_owned).filter(permanent=True)
    rows, counts = read_first_rows(
        found.order_by(F("reconfirm_due_at").asc(nulls_first=True), "engaged_at"),
        late=neglected_episodes.unconfirmed_condition(now),
    )
    total, late = counts["total"], counts["late"]
    return build_section(
        "permanent",
        "Permanent",
        rows,
        episode_path,
        total=total,
        tone="bad" if late else "warn" if total else "good",
        headline=pluralize(total, "permanent switch"),
        summary=f"{pluralize(total, 'switch')} engaged without expiry, {late:,} of them not "
        "re-confirmed in time.",
        empty="No switch is engaged without expiry.",
        switch="switch_id",
        reason=reason_of,
        confirmed_at="reconfirmed_at",
        confirmed_by="reconfirmed_by",
        confirm_by_at="reconfirm_due_at",
        engaged_at="engaged_at",
    )


def _describe_state(episode: Episode) -> str:
    if episode.ended_at is not None:
        return "released since"
    if episode.state == SwitchState.RAMPING:
        return f"ramping, {descriptions.format_percent(episode.allow_percent)} allowed"
    return "overdue" if episode.overdue else episode.state.value


def _list_signs(episode: Any, often: Mapping[str, int], now: datetime) -> list[str]:
    why = []
    if episode.overdue_at is not None and episode.acknowledged_at is None:
        why.append(neglected_episodes.OVERDUE)
    unconfirmed = episode.reconfirm_due_at and episode.reconfirm_due_at <= now
    if episode.permanent and unconfirmed and not episode.allow_percent:
        why.append(neglected_episodes.UNCONFIRMED)
    if extends := often.get(episode.switch_id):
        why.append(f"extended {extends} times")
    if not episode.permanent and now - episode.looked_at >= neglected_episodes.NEGLECT_AFTER:
        alone = durations.format_readable(now - episode.looked_at)
        why.append(f"{neglected_episodes.LEFT_ALONE} for {alone}")
    return why


def _extends_of_open(episodes: QuerySet[Episode]) -> dict[str, int]:
    """Return by switch how often open episodes were extended, if often."""
    # Grouped before the episodes are read: few were extended often, and a join is slow.
    oldest = Subquery(episodes.order_by("engaged_at").values("engaged_at")[:1])
    extends = AuditEntry.objects.filter(action="switch.extended", at__gte=oldest).order_by()
    grouped = extends.values("target").annotate(count=Count("pk"), moments=ArrayAgg("at"))
    often = dict(grouped.filter(count__gte=MANY_EXTENDS).values_list("target", "moments"))
    began = episodes.order_by().filter(switch_id__in=often).values_list("switch_id", "engaged_at")
    times = {switch: sum(at >= since for at in often[switch]) for switch, since in began}
    return {switch: count for switch, count in times.items() if count >= MANY_EXTENDS}
