from collections.abc import Sequence
from datetime import datetime

from controlplane.core.audit.models import AuditRound
from controlplane.core.page_registry import AttentionItem, attention_rows


@attention_rows(4, lambda _now: AuditRound.objects.exclude(problem="").order_by("pk")[:1])
def list_broken_trail(_now: datetime, found: Sequence[AuditRound]) -> list[AttentionItem]:
    return [
        AttentionItem(
            kind="audit",
            severity="critical",
            title="The audit trail is broken",
            detail=f"At {state.problem}. Preserve the evidence first; the runbook has the steps.",
            path="/runbooks/audit-chain-broken/",
            since=state.broken_at,
        )
        for state in found
        if state.broken_at is not None
    ]
