"""The item in *Needs attention* that says that the audit trail failed its verification."""

from datetime import datetime

from django.db.models import QuerySet

from controlplane.core.audit.models import AuditRound
from controlplane.core.page_registry import AttentionItem, attention_source


def _broken_rounds(_now: datetime) -> QuerySet[AuditRound]:
    return AuditRound.objects.exclude(problem="")


@attention_source(4, only_if=_broken_rounds)
def broken(_now: datetime) -> list[AttentionItem]:
    here = AuditRound.objects.exclude(problem="").first()
    if here is None or here.broken_at is None:
        return []
    return [
        AttentionItem(
            kind="audit",
            severity="critical",
            title="The audit trail is not intact",
            detail=f"At {here.problem}. Keep what there is before anything else: see the runbook.",
            path="/runbooks/audit-chain-broken/",
            since=here.broken_at,
        )
    ]
