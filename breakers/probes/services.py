"""The periodic task that probes services that are due, records results and announces changes."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any

from django.db import transaction

from breakers import message_facts
from breakers.models import Probe, Service
from controlplane.core import runbooks
from controlplane.core.actors import system_actor
from controlplane.core.audit import services as audit
from controlplane.core.canonical import timestamp
from controlplane.core.outbox import services as outbox
from controlplane.core.sql import fetch_all

from . import prober
from .prober import ProbeResult

PROBE_INTERVAL = timedelta(seconds=10)
PROBE_CADENCE = 6 * PROBE_INTERVAL
"""Greatest age of a probe while services are probed, with a margin for slow ones."""
EARLY_TOLERANCE = timedelta(seconds=2)
"""Tolerance for ticks that run a little early."""
LEASE = timedelta(seconds=30)
MAX_AT_ONCE = 64
PROBES = system_actor("probes")
AWAY, BACK = "probe.away", "probe.back"
GRAVE_LEVEL = 2
MAX_FAILURES = 1_000_000

FAILURES_UNTIL_AWAY = 3
"""Consecutive failures after which a service is away; one success ends that."""

# Materialized, so that the plan can't evaluate it per row and claim more than the limit.
_CLAIM = """
    WITH due AS MATERIALIZED (
        SELECT p.service_id, s.probe_url FROM breakers_probe p
        JOIN breakers_service s ON s.slug = p.service_id
        WHERE s.probe_url <> '' AND (p.lease_until IS NULL OR p.lease_until <= %(now)s)
          AND (p.checked_at IS NULL OR p.checked_at <= %(due)s OR p.checked_at > %(now)s)
        ORDER BY p.checked_at NULLS FIRST, p.service_id LIMIT %(most)s
        FOR UPDATE OF p SKIP LOCKED
    )
    UPDATE breakers_probe AS probe SET lease_until = %(until)s
    FROM due WHERE probe.service_id = due.service_id
    RETURNING probe.service_id, due.probe_url
"""


@dataclass(frozen=True)
class ProbeState:
    """A service's state by its probes.

    `failures` counts consecutive failed probes; `since` is the time of the last change of
    `is_away`, None before the first probe.
    """

    is_away: bool = False
    failures: int = 0
    since: datetime | None = None


def probe_due_services(now: datetime) -> int:
    """Probe the services that are due; return how many went away or came back."""
    # Create and delete rows, so that exactly the services with a probe URL have one.
    Probe.objects.filter(service__probe_url="").delete()
    new = Service.objects.exclude(probe_url="").filter(probe=None)
    rows = [Probe(service_id=slug) for slug in new.values_list("pk", flat=True)]
    Probe.objects.bulk_create(rows, ignore_conflicts=True)
    urls = _claim_due(now)
    if not urls:
        return 0
    results = prober.probe_all(urls)
    return sum(_record_result(slug, result, now) for slug, result in sorted(results.items()))


def _claim_due(now: datetime) -> dict[str, str]:
    values: dict[str, Any] = {
        "now": now,
        "until": now + LEASE,
        "due": now - PROBE_INTERVAL + EARLY_TOLERANCE,
        "most": MAX_AT_ONCE,
    }
    return dict(fetch_all(_CLAIM, values))


@transaction.atomic
def _record_result(slug: str, result: ProbeResult, now: datetime) -> bool:
    """Record a service's probe if the lease still holds; return True if the state changed."""
    rows = Probe.objects.select_for_update(of=("self",)).select_related("service")
    probe = rows.filter(pk=slug, lease_until=now + LEASE).first()
    if probe is None:
        return False
    before = ProbeState(probe.is_away, probe.failures, probe.since)
    after = next_state(before, result.answered, now)
    probe.is_away, probe.since = after.is_away, after.since
    probe.failures = min(after.failures, MAX_FAILURES)
    probe.checked_at, probe.lease_until = now, None
    probe.took_ms, probe.error = result.took_ms, result.error
    probe.save()
    if after.is_away == before.is_away or result.answered is None:
        return False
    _announce(probe, before, now)
    return True


def _announce(probe: Probe, before: ProbeState, now: datetime) -> None:
    service, event = probe.service, AWAY if probe.is_away else BACK
    grave = probe.is_away and service.level >= GRAVE_LEVEL
    outbox.announce(
        event=event,
        event_key=f"{event}:{service.pk}:{timestamp(now)}",
        severity="critical" if grave else "",
        subject=message_facts.build_thread("service", service.pk),
        resource=f"service:{service.pk}",
        facts=_message_facts(probe, before),
        now=now,
    )
    audit.record(
        actor=PROBES,
        action="service.away" if probe.is_away else "service.back",
        target=f"service:{service.pk}",
        reason=probe.error,
        after={"failures": probe.failures, "level": service.level},
        now=now,
    )


def _message_facts(probe: Probe, before: ProbeState) -> Mapping[str, object]:
    service = probe.service
    own = runbooks.find_slug(kind="away", service=service.pk, subject=service.pk)
    return {
        "service": service.pk,
        "name": service.name,
        "said": f"{service.probe_url}: {probe.error}" if probe.error else None,
        "fails": "; ".join(service.loses) or None,
        "works": "; ".join(service.keeps) or None,
        "owner": service.owner or None,
        "runbook": service.runbook_url or runbooks.link_address(own) or None,
        "since_at": timestamp(before.since) if before.since else None,
        "path": "/breakers/infrastructure/",
    }


def next_state(state: ProbeState, answered: bool | None, now: datetime) -> ProbeState:
    """Return the service's state after a probe; `answered` is None if probing is not allowed."""
    if answered is None:
        return ProbeState()
    if answered:
        came_back = state.is_away or state.since is None
        return ProbeState(False, 0, now if came_back else state.since)
    failures = state.failures + 1
    if state.is_away or failures < FAILURES_UNTIL_AWAY:
        return replace(state, failures=failures)
    return ProbeState(True, failures, now)
