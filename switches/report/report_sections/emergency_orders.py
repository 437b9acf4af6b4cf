"""Report section about the emergency orders of the week."""

from datetime import datetime

from django.db.models import Q

from controlplane.core.actors import label_of
from controlplane.core.page_registry import REPORT_SECTIONS, IsOwned, ReportSection
from controlplane.core.team_filter import keep_owned
from switches.models import EmergencyOrder
from switches.report.section_rows import (
    build_section,
    pluralize,
    read_first_rows,
    reason_of,
    switch_path,
)

State = EmergencyOrder.State
RESULTS = {
    State.RECEIVED: "not reconciled",
    State.RECONCILED: "engaged",
    State.ATTACHED: "attached to an engagement",
    State.REFUSED: "refused",
    State.WITHDRAWN: "withdrawn",
    State.LATE_WITHDRAWAL: "withdrawn too late",
}
UNUSUAL = Q(state__in=[State.RECEIVED, State.REFUSED, State.LATE_WITHDRAWAL])


@REPORT_SECTIONS.add(45)
def emergency_orders_section(
    start: datetime, end: datetime, _now: datetime, is_owned: IsOwned = None
) -> ReportSection:
    """List the orders by the time when the database got them, which may be after their week."""
    orders = EmergencyOrder.objects.filter(received_at__gte=start, received_at__lt=end)
    orders = keep_owned(orders, "switch", is_owned)
    rows, counts = read_first_rows(orders.order_by("at", "pk"), unusual=UNUSUAL)
    total, unusual = counts["total"], counts["unusual"]
    return build_section(
        "emergency_orders",
        "Emergency orders",
        rows,
        lambda order: switch_path(order.switch),
        total=total,
        tone="warn" if total else "good",
        headline=pluralize(total, "emergency order"),
        summary=f"{pluralize(total, 'emergency order')} on data planes; {unusual:,} refused,"
        " withdrawn too late or not reconciled.",
        empty="No emergency orders.",
        switch="switch",
        result=lambda order: RESULTS[order.state],
        why=reason_of,
        by=lambda order: label_of(order.by_type, order.by_name),
        plane="plane",
        ordered_at="at",
    )
