"""The page *Needs attention*, with the escalations in progress."""

from typing import Any

from django.core.paginator import Paginator
from django.http import HttpResponse
from django.views.decorators.http import require_GET, require_POST

from controlplane.core.attention import services
from controlplane.core.clock import db_now
from controlplane.core.errors import Conflict, NotFound
from controlplane.core.escalations import services as escalations
from controlplane.core.escalations import summaries
from controlplane.core.http.permissions import actor_of
from controlplane.core.outbox import router
from controlplane.core.outbox.escalation import Escalation
from controlplane.core.page_responses import (
    PersonRequest,
    render_live,
    respond_done,
    show_refusal,
    signed_in,
)

SHOWN = 100
ESCALATIONS_SHOWN = 50


@signed_in
@require_GET
def attention_page(request: PersonRequest, template: str) -> HttpResponse:
    """Show a page of attention items and escalations, or the part that live updates replace."""
    return render_live(request, template, _build_context(request))


@signed_in
@require_POST
def acknowledge(request: PersonRequest, escalation_id: int) -> HttpResponse:
    """Acknowledge an escalation that has no page of its own."""
    try:
        known = escalations.acknowledge_one(
            escalation_id=escalation_id, actor=actor_of(request), now=db_now()
        )
    except (Conflict, NotFound) as refusal:
        return show_refusal(request, "Nothing to acknowledge", refusal, "attention_page")
    message = f"You acknowledged {summaries.format_title(known)}. Nobody is told for 24 hours."
    return respond_done(request, message, "/attention/")


def _build_context(request: PersonRequest) -> dict[str, Any]:
    now = db_now()
    overview = services.read_all(now)
    page = Paginator(overview.waiting, SHOWN).get_page(request.GET.get("page"))
    shown = services.Overview(tuple(page.object_list), overview.unread)
    open_rows = Escalation.objects.filter(closed_at=None).order_by("next_at", "id")
    shown_escalations = list(open_rows[:ESCALATIONS_SHOWN])
    notices = router.get().next_notices(shown_escalations, now)
    count = len(shown_escalations)
    return {
        "now": now,
        "page": page,
        "groups": shown.groups,
        "unread": overview.unread,
        "total": overview.total,
        "critical": overview.critical,
        "climbing": [_build_row(row, notices.get(row.pk)) for row in shown_escalations],
        "climbing_total": count if count < ESCALATIONS_SHOWN else open_rows.count(),
    }


def _build_row(escalation: Escalation, following: Any) -> dict[str, Any]:
    elsewhere = escalation.subject.partition(":")[0] in escalations.ACKNOWLEDGED_ELSEWHERE
    notified = escalation.facts.get(summaries.NOTIFIED, [])
    return {
        "row": escalation,
        "next": following,
        "title": summaries.format_title(escalation),
        "path": escalation.facts.get("path"),
        "told": notified[-1]["who"] if notified else [],
        "can_acknowledge": not elsewhere and escalation.acknowledged_at is None,
    }
