"""The live topic of dead letters."""

from collections.abc import Sequence
from datetime import datetime
from typing import Any

from django.db.models import Q

from breakers.dead_letters import resources
from breakers.dead_letters.bulk import replays
from breakers.dead_letters.sources import configured_sources
from controlplane.core.canonical import timestamp
from controlplane.core.jobs.models import Job
from controlplane.core.live import topics

from .models import LetterServer, LetterStream
from .monitoring import streams

JOB, SERVER = "job:", "server:"
MAX_PK = 2**63 - 1


def read_topics(ids: Sequence[str], now: datetime) -> dict[str, dict[str, Any]]:
    """Return the present resources of streams, bulk jobs and servers.

    Their ids are `default/axiom:dlq:events`, `job:17` and `server:default`. Server names have no
    colon, so the ids are unambiguous.
    """
    jobs = {one.removeprefix(JOB): one for one in ids if one.startswith(JOB)}
    away = {one.removeprefix(SERVER): one for one in ids if one.startswith(SERVER)}
    return {
        **_streams([one for one in ids if not one.startswith((JOB, SERVER))], now),
        **_jobs(jobs, now),
        **_servers(away),
    }


def _streams(ids: Sequence[str], now: datetime) -> dict[str, dict[str, Any]]:
    wanted = Q(pk=None)
    for one in ids:
        server, _, name = one.partition("/")
        wanted |= Q(server=server, name=name)
    sources = configured_sources()
    rows = [
        row
        for row in LetterStream.objects.filter(wanted)
        if row.source == LetterStream.Source.OUTBOX or sources.origin_of(row.name) is not None
    ]
    shown = resources.stream_resources(rows, streams.growth_per_minute(rows, now))
    return {str(row): one for row, one in zip(rows, shown, strict=True)}


def _jobs(ids: dict[str, str], now: datetime) -> dict[str, dict[str, Any]]:
    pks = [int(pk) for pk in ids if pk.isascii() and pk.isdigit() and int(pk) <= MAX_PK]
    jobs = Job.objects.filter(pk__in=pks, replay__isnull=False).select_related("replay__stream")
    found = jobs.prefetch_related("steps")
    return {ids[str(job.pk)]: replays.replay_resource(job, now) for job in found}


def _servers(ids: dict[str, str]) -> dict[str, dict[str, Any]]:
    return {ids[row.name]: server_resource(row) for row in LetterServer.objects.filter(pk__in=ids)}


def server_resource(row: LetterServer) -> dict[str, Any]:
    """Return a server's availability."""
    return {
        "server": row.name,
        "away": row.is_away,
        "since": timestamp(row.since) if row.since else None,
        "asked_at": timestamp(row.asked_at) if row.asked_at else None,
    }


topics.register("dlq", scope="dlq:read", event="dlq.changed", read=read_topics)
