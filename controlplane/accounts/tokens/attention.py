"""Instances that two processes or two tokens report as."""

from collections import defaultdict
from datetime import datetime, timedelta

from django.db.models import QuerySet

from controlplane.accounts.models.tokens import Token
from controlplane.core.instances.models import Instance
from controlplane.core.page_registry import AttentionItem, attention_source

SHOWN_FOR = timedelta(minutes=15)
MAX_INSTANCES = 500


def contested_rows(now: datetime) -> QuerySet[Instance]:
    return Instance.objects.filter(contested_at__gte=now - SHOWN_FOR)


@attention_source(70, only_if=contested_rows)
def contested(now: datetime) -> list[AttentionItem]:
    """Return one line for each service with instances that were contested in the last 15 min."""
    rows = contested_rows(now).order_by("contested_at", "id")[:MAX_INSTANCES]
    by_service: dict[str, list[Instance]] = defaultdict(list)
    for row in rows.only("id", "service", "contested_at", "reported"):
        by_service[row.service].append(row)
    ids = {int(one[0]) for row in rows for one in row.reported.get("tokens", ())}
    names = dict(Token.objects.filter(pk__in=ids).values_list("pk", "name")) if ids else {}
    return [_waiting(service, found, names, now) for service, found in by_service.items()]


def _waiting(
    service: str, found: list[Instance], names: dict[int, str], now: datetime
) -> AttentionItem:
    more = f" and {len(found) - 1} more" if len(found) > 1 else ""
    used = {
        names[one[0]] for row in found for one in row.reported.get("tokens", ()) if one[0] in names
    }
    tokens = f" Tokens used: {', '.join(sorted(used))}." if used else ""
    return AttentionItem(
        kind="instance_contested",
        severity="warning",
        title=f"{found[0].id}{more}: reported by more than one process or token",
        detail=f"Only one of them is shown for {service}, and the other's reports are ignored."
        f"{tokens} Give each process its own instance name; revoke unexpected tokens.",
        path="/tokens/",
        since=min(row.contested_at or now for row in found),
    )
