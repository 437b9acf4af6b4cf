from collections.abc import Iterator
from datetime import datetime

from prometheus_client.core import Metric

from controlplane.core import exposition
from controlplane.core.audit.models import AuditRound
from controlplane.core.metrics import DATABASE_METRICS


@DATABASE_METRICS.add()
def collect_audit_metrics(now: datetime) -> Iterator[Metric]:
    state = AuditRound.objects.first()
    if state is None:
        return
    yield exposition.make_gauge(
        "switchgear_audit_intact",
        "1 if the audit trail is intact, 0 if a verification found a broken row.",
        0 if state.problem else 1,
    )
    yield exposition.make_gauge(
        "switchgear_audit_verified_age_seconds",
        "Seconds since the whole audit trail was last found intact.",
        (now - (state.whole_at or state.begun_at)).total_seconds(),
    )
