"""Prometheus metrics of the outbox."""

from collections.abc import Iterator
from datetime import datetime

from prometheus_client.core import Metric

from controlplane.core.exposition import make_gauge
from controlplane.core.metrics import DATABASE_METRICS
from controlplane.core.sql import fetch_all


@DATABASE_METRICS.add()
def collect_messages(now: datetime) -> Iterator[Metric]:
    ((pending, failed, superseded, oldest),) = fetch_all(
        "SELECT count(*) FILTER (WHERE state = 'pending'),"
        " count(*) FILTER (WHERE state = 'failed' AND discarded_at IS NULL),"
        " count(*) FILTER (WHERE state = 'superseded'),"
        " min(created_at) FILTER (WHERE state = 'pending')"
        " FROM core_outboxmessage WHERE NOT (state = 'sent')"
    )
    age = (now - oldest).total_seconds() if oldest else 0.0
    yield make_gauge("switchgear_outbox_pending", "Messages to be sent.", pending)
    yield make_gauge("switchgear_outbox_failed", "Messages that failed permanently.", failed)
    yield make_gauge(
        "switchgear_outbox_superseded",
        "Updates that were not sent because a later message has the newer state.",
        superseded,
    )
    yield make_gauge(
        "switchgear_outbox_oldest_pending_seconds", "Age of the oldest message to be sent.", age
    )
