"""Utilization of bulkheads, over all instances of a service."""

from collections.abc import Iterator
from datetime import datetime

from breakers import message_facts
from breakers.sql import fetch_all
from controlplane.core.instances.queries import HEARD_WITHIN
from controlplane.core.threshold_metrics import MetricQuery, MetricReading, count, percent

MAX_SUBJECT_LENGTH = 250
TO_DO = "See what takes so long, or raise its limit."

_BULKHEADS = """
    SELECT i.service, i.service || '/' || held.key, sum((held.value ->> 'in_flight')::float),
           sum((held.value ->> 'limit')::float), count(*)
    FROM core_instance i, jsonb_each(i.resilience -> 'bulkheads') AS held
    WHERE i.reported_at >= %(fresh)s AND (held.value ->> 'limit')::float > 0
    GROUP BY 1, 2 ORDER BY 2
"""


def read_concurrency(asked: MetricQuery, now: datetime) -> Iterator[MetricReading]:
    """Yield the calls in flight relative to the limit, by bulkhead."""
    for service, name, in_flight, limit, instances in fetch_all(
        _BULKHEADS, {"fresh": now - HEARD_WITHIN}
    ):
        subject = message_facts.shorten_with_digest(name, MAX_SUBJECT_LENGTH)
        yield MetricReading(
            subject=subject,
            value=in_flight / limit,
            beyond=asked.beyond(in_flight, limit),
            samples=instances,
            said=f"The bulkhead {subject} is {percent(in_flight / limit)} full "
            f"({asked.allowed(percent)}; {count(instances)} instances)",
            path=message_facts.BOARD_PATH,
            service=service,
            evidence={"in_flight": in_flight, "limit": limit, "instances": instances},
            thread=message_facts.build_thread("bulkhead", subject),
            facts={"to_do": TO_DO},
        )
