from datetime import datetime

from controlplane.core.audit.models import AuditRound
from controlplane.core.page_registry import AttentionItem, attention_source


@attention_source(4, only_if=lambda _now: AuditRound.objects.exclude(problem=""))
def list_broken_trail(_now: datetime) -> list[AttentionItem]:
    state = AuditRound.objects.exclude(problem="").first()
    if state is None or state.broken_at is None:
        return []
    return [
        AttentionItem(
            kind="audit",
            severity="critical",
            title="The audit trail is not intact",
            detail=f"At {state.problem}. Keep what there is before anything else: see the runbook.",
            path="/runbooks/audit-chain-broken/",
            since=state.broken_at,
        )
    ]
