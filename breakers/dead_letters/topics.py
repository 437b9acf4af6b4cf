"""Live update topic `dlq`: streams, bulk jobs and servers."""

from collections.abc import Sequence
from datetime import datetime
from typing import Any

from django.db.models import Q
from rest_framework import serializers

from breakers.dead_letters.sources import configured_sources
from controlplane.core.http.resources import Resource, TimestampField
from controlplane.core.jobs.models import Job
from controlplane.core.live import topics

from .models import LetterServer, LetterStream
from .resources import replay_resource, stream_resources

JOB, SERVER = "job:", "server:"
MAX_PK = 2**63 - 1


def read_topics(ids: Sequence[str], now: datetime) -> dict[str, dict[str, Any]]:
    """Return the current resources of streams, bulk jobs and servers, by topic id.

    Examples of ids are `default/axiom:dlq:events`, `job:17` and `server:default`. A server's name
    has no colon, so ids are unambiguous.
    """
    jobs = {one.removeprefix(JOB): one for one in ids if one.startswith(JOB)}
    servers = {one.removeprefix(SERVER): one for one in ids if one.startswith(SERVER)}
    return {
        **_read_streams([one for one in ids if not one.startswith((JOB, SERVER))], now),
        **_read_jobs(jobs, now),
        **{
            servers[row.name]: ServerResource.render(row)
            for row in LetterServer.objects.filter(pk__in=servers)
        },
    }


class ServerResource(Resource[LetterServer]):
    server = serializers.CharField(source="name")
    away = serializers.BooleanField(source="is_away")
    since = TimestampField(allow_null=True)
    asked_at = TimestampField(allow_null=True)


def _read_streams(ids: Sequence[str], now: datetime) -> dict[str, dict[str, Any]]:
    matching = Q(pk=None)
    for one in ids:
        server, _, name = one.partition("/")
        matching |= Q(server=server, name=name)
    sources = configured_sources()
    rows = [
        row
        for row in LetterStream.objects.filter(matching)
        if row.source == LetterStream.Source.OUTBOX or sources.origin_of(row.name) is not None
    ]
    resources = stream_resources(rows, now)
    return {str(row): one for row, one in zip(rows, resources, strict=True)}


def _read_jobs(ids: dict[str, str], now: datetime) -> dict[str, dict[str, Any]]:
    pks = [int(pk) for pk in ids if pk.isascii() and pk.isdigit() and int(pk) <= MAX_PK]
    jobs = Job.objects.filter(pk__in=pks, replay__isnull=False).select_related("replay__stream")
    jobs = jobs.prefetch_related("steps")
    return {ids[str(job.pk)]: replay_resource(job, now) for job in jobs}


topics.register("dlq", scope="dlq:read", event="dlq.changed", read=read_topics)
