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
    pks = [int(pk) for pk in jobs if pk.isascii() and pk.isdigit() and int(pk) <= MAX_PK]
    rows = Job.objects.filter(pk__in=pks, replay__isnull=False).select_related("replay__stream")
    return {
        **_read_streams([one for one in ids if not one.startswith((JOB, SERVER))], now),
        **{jobs[str(row.pk)]: replay_resource(row, now) for row in rows.prefetch_related("steps")},
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


topics.register("dlq", scope="dlq:read", event="dlq.changed", read=read_topics)
