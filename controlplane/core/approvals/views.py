"""The approvals page: what waits for a second person, and what was decided."""

from django.http import HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_GET, require_POST

from controlplane.core.approvals import services
from controlplane.core.approvals.models import Approval
from controlplane.core.browser import PersonRequest, done, show, signed_in
from controlplane.core.clock import db_now
from controlplane.core.errors import Conflict
from controlplane.core.http.authentication import actor_of

DECIDED_SHOWN = 25


@signed_in
@require_GET
def approvals_page(request: PersonRequest) -> HttpResponse:
    """Pending first; then the latest decisions, older ones by `before`."""
    now = db_now()
    before = request.GET.get("before", "")
    decided = Approval.objects.exclude(state="pending").order_by("-id")
    if before.isascii() and before.isdigit() and len(before) < 19:
        decided = decided.filter(pk__lt=int(before))
    shown = list(decided[: DECIDED_SHOWN + 1])
    pending = Approval.objects.filter(state="pending", expires_at__gt=now).order_by("id")
    context = {
        "now": now,
        "pending": list(pending),
        "decided": shown[:DECIDED_SHOWN],
        "older": shown[DECIDED_SHOWN - 1].pk if len(shown) > DECIDED_SHOWN else None,
        "newest": not before,
    }
    return render(request, "core/approvals.html", context)


@signed_in
@require_POST
def approve(request: PersonRequest, approval_id: int) -> HttpResponse:
    return _decide(request, approval_id, "approve")


@signed_in
@require_POST
def deny(request: PersonRequest, approval_id: int) -> HttpResponse:
    return _decide(request, approval_id, "deny")


def _decide(request: PersonRequest, approval_id: int, verdict: str) -> HttpResponse:
    decide = services.approve if verdict == "approve" else services.deny
    comment = request.POST.get("comment", "").replace("\x00", "").strip()[:2000]
    try:
        approval = decide(
            approval_id=approval_id, comment=comment, actor=actor_of(request), now=db_now()
        )
    except Conflict as conflict:
        context = {"heading": "Not decided", "detail": conflict.detail, "back": "approvals_page"}
        return show(request, "core/notice.html", context, status=409)
    own = approval.requester_id == request.user.pk
    word = "withdrawn" if own else approval.state
    return done(request, f"{approval.summary}: {word}.", "/approvals/")
