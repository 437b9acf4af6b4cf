"""Inbox page: all streams, the outbox, and the most frequent errors of the week."""

from collections.abc import Collection
from datetime import UTC, datetime, timedelta
from operator import attrgetter
from typing import Any

from django.db.models import Q
from django.http import HttpResponse
from django.views.decorators.http import require_GET

from breakers.dead_letters.bulk.replays import KIND
from breakers.dead_letters.favorite_kinds import KIND as FAVORITE
from breakers.dead_letters.models import LetterServer, Replay
from breakers.dead_letters.monitoring import groups, streams
from breakers.dead_letters.sources import configured_sources
from breakers.views import live
from controlplane.core.authority import read_teams
from controlplane.core.clock import db_now
from controlplane.core.favorites import services as favorites
from controlplane.core.jobs.models import Job
from controlplane.core.page_responses import PersonRequest, signed_in
from controlplane.core.team_filter import build_filter_context, read_team_filter, split_by_team

DAYS = 7
MAX_FAILED = 8
REPLAYS_SHOWN = 5
RECENT = timedelta(days=1)
"""Time for which finished bulk jobs are shown with their result."""


@signed_in
@require_GET
def inbox_page(request: PersonRequest) -> HttpResponse:
    now = db_now()
    shown = streams.list_shown(now)
    chosen = favorites.read_filter(request, FAVORITE)
    starred = favorites.load_viewer_keys(request).get(FAVORITE, ())
    teams = read_teams()
    team_filter = read_team_filter(request, teams)
    starred_only = [one for one in shown if chosen is None or str(one) in chosen]
    listed, hidden = split_by_team(team_filter, starred_only, attrgetter("resource"))
    listed.sort(key=lambda one: (one.alarmed_at is None, str(one) not in starred))
    growth = streams.growth_per_minute(shown, now)
    present = [one for one in shown if one.gone_at is None]
    is_recent = Q(job__state__in=Job.LIVE) | Q(job__finished_at__gte=now - RECENT)
    jobs = Replay.objects.filter(is_recent, job__kind=KIND).select_related("job", "stream")
    selected = None
    if not team_filter.is_all:
        selected = [one.pk for one in shown if team_filter.includes(one.resource)]
        jobs = jobs.filter(stream__in=selected)
    context = {
        **build_filter_context(team_filter, hidden),
        "now": now,
        "known": len(shown),
        "lines": [
            (one, growth.get(one.pk) if one.sampled_at else None, teams.owner_of(one.resource))
            for one in listed
        ],
        "favorites": chosen,
        "deepest": max((one.depth for one in present), default=0),
        "total": sum(one.depth for one in present),
        "filled": sum(1 for one in present if one.depth),
        "alarmed": sum(1 for one in present if one.alarmed_at),
        "week": _most_failed(now, selected),
        "replays": list(jobs.order_by("-job_id")[: REPLAYS_SHOWN + 1]),
        **server_context(),
    }
    return live.render_page(request, "dead_letters/inbox", context)


def server_context() -> dict[str, Any]:
    """Return the configured servers and patterns, and their state, for templates."""
    sources = configured_sources()
    rows = {one.name: one for one in LetterServer.objects.filter(name__in=sources.servers)}
    servers = [rows.get(name) or LetterServer(name=name) for name in sources.servers]
    return {
        "servers": servers,
        "away": [one for one in servers if one.is_away],
        "several_servers": len(servers) > 1,
        "patterns": sources.patterns,
        "looked_at": max((one.asked_at for one in servers if one.asked_at), default=None),
        "kept_days": sources.kept_days,
        "most_kept": sources.most_kept,
    }


def _most_failed(now: datetime, selected: Collection[int] | None) -> dict[str, Any]:
    """Return the groups with the most arrivals in the last seven days (UTC), today included.

    `selected` are the ids of the streams; None selects all.
    """
    today = now.astimezone(UTC).replace(hour=0, minute=0, second=0, microsecond=0)
    since = today - timedelta(days=DAYS - 1)
    days = [(since + timedelta(days=place)).date() for place in range(DAYS)]
    failing = [
        {
            "group": one.group,
            "arrived": one.arrived,
            "days": [one.days.get(day, 0) for day in days],
            "url": f"{one.group.stream.page_url}?tab=messages&fingerprint={one.group.fingerprint}",
        }
        for one in groups.list_most_failed(since, today + timedelta(days=1), MAX_FAILED, selected)
        if one.arrived
    ]
    return {"failing": failing, "days": days, "most": failing[0]["arrived"] if failing else 0}
