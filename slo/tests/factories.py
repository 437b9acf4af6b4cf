"""People, SLOs and counters for tests."""

from collections.abc import Iterable
from typing import Any

from controlplane.core.actors import Actor
from controlplane.core.clock import db_now
from controlplane.core.roles import ALL_SCOPES, Role
from controlplane.tests.rows import insert
from slo.models import CounterMinute, Sli, Slo
from slo.objectives import services

ADMIN = Actor(type="user", name="ada", role=Role.ADMIN, scopes=ALL_SCOPES)
OPERATOR = Actor(type="user", name="olga", role=Role.OPERATOR, scopes=ALL_SCOPES)
VIEWER = Actor(type="user", name="vera", role=Role.VIEWER, scopes=frozenset({"slo:read"}))
REASON = "oracle answers 502 since the 02:10 deploy"


def slo(name: str = "core-availability", **fields: Any) -> Slo:
    """Create an SLO with its counters.

    99.9 % over 30 days with the usual rules, unless `fields` differ.
    """
    document = {"service": "core", "kind": "availability", "target": 0.999, **fields}
    return services.put_slo(name=name, fields=document, actor=ADMIN, now=db_now())


def counted(of: Slo, rows: Iterable[tuple[int, float, float]]) -> Sli:
    """Store cumulative counters at the end of each minute: (minute, good, total).

    Every minute after the first one is covered, also those between two rows.
    """
    sli = Sli.objects.get(slo=of)
    ordered = sorted(rows)
    first = ordered[0][0]
    insert(
        CounterMinute,
        ("sli_id", "minute", "good", "total", "covered"),
        ((sli.pk, minute, good, total, minute - first) for minute, good, total in ordered),
    )
    sli.first, sli.last = first, ordered[-1][0]
    sli.save(update_fields=["first", "last"])
    return sli
