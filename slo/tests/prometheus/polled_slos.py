"""SLOs with counters on a fake Prometheus, and what was counted of them."""

from datetime import UTC, datetime, timedelta

from slo.arithmetic.minutes import last_ended
from slo.counters import reader
from slo.models import Sli
from slo.tests.factories import slo

BEGAN = datetime(2026, 3, 1, 12, 0, 10, tzinfo=UTC)
FIRST = last_ended(BEGAN)
MINUTE = timedelta(minutes=1)


def source(server, **more):
    return {"type": "prometheus", "url": server.url, "good": "good", "total": "total", **more}


def asked_slo(server, name="api", **more):
    return Sli.objects.get(slo=slo(name, source=source(server, **more)))


def counts(sli, minutes):
    counts = reader.load_counts({sli.pk: set(minutes)})
    return [counts[sli.pk, minute] for minute in minutes]


def asked_minutes(server, query="total"):
    return [at // 60 for received, at in server.requests if received == query]
