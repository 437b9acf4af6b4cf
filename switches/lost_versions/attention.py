"""Items of the attention page about changes that PostgreSQL has lost."""

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Any

from django.db.models import Count, Min, QuerySet, Value

from controlplane.core.page_registry import LINK, AttentionAction, AttentionItem, attention_rows
from switches.models import LostVersion, Publication

from .decisions import find_undecided
from .reconciliation import PAGE, find_open

COMMAND = 'manage.py epoch begin --reason "…"'
GRACE = timedelta(seconds=10)


def _count_undecided(_now: datetime) -> QuerySet[Any, Any]:
    rows = find_undecided().order_by().values(one=Value(1))
    counted = rows.annotate(count=Count("pk"), since=Min("lost_version__closed_at"))
    return counted.filter(count__gt=0)


def _find_waiting(now: Any) -> QuerySet[LostVersion]:
    epochs = Publication.objects.values("epoch")
    waiting = find_open().filter(received_at__lte=now - GRACE, epoch__in=epochs)
    return waiting.order_by("-version", "pk")[:1]


@attention_rows(2, _find_waiting)
def list_waiting(_now: datetime, found: Sequence[LostVersion]) -> list[AttentionItem]:
    return [
        AttentionItem(
            kind="versions_lost",
            severity="critical",
            title="PostgreSQL has lost changes: services get no changes until a new epoch begins",
            detail=f"{lost.plane} serves version {lost.version}, which PostgreSQL does not have."
            " If this is the right database, begin a new epoch on the server:"
            f" {COMMAND}. Everything that was engaged is then engaged again.",
            path="/docs/restore/#begin-a-new-epoch",
            since=lost.received_at,
            subjects=(f"lost-version:{lost.pk}",),
        )
        for lost in found
    ]


@attention_rows(3, _count_undecided)
def list_lost_changes(_now: datetime, found: Sequence[Any]) -> list[AttentionItem]:
    return [
        AttentionItem(
            kind="changes_lost",
            severity="critical",
            title=("1 change was" if one["count"] == 1 else f"{one['count']} changes were")
            + " lost: keep the switches engaged?",
            detail="PostgreSQL lost changes that data planes had, for example in a failover. The"
            " switches stay engaged until you release them.",
            path=PAGE,
            since=one["since"],
            actions=(AttentionAction("Open lost changes", PAGE, "switches:read", "engaged", LINK),),
        )
        for one in found
    ]
