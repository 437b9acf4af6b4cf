"""The approvals page: pending requests and reviews, and past decisions."""

from collections import defaultdict
from collections.abc import Callable, Iterable
from typing import Any

from django.core.paginator import Paginator
from django.db.models import Q
from django.http import HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_GET, require_POST

from controlplane.core.approvals import kinds, notes, reviews, services
from controlplane.core.approvals.differences import list_changes
from controlplane.core.approvals.models import Approval
from controlplane.core.clock import db_now
from controlplane.core.errors import Conflict, DomainError, InvalidInput
from controlplane.core.http.confirmation import require_fresh
from controlplane.core.http.permissions import actor_of
from controlplane.core.page_responses import PersonRequest, done, show, signed_in

PENDING_SHOWN = 100
DECIDED_SHOWN = 25
WHY_NOT = "Say why you deny it: whoever asked has to know what to do next. Nothing was decided."
STATE_LOOKS = {
    "approved": ("released", "check", "Approved"),
    "denied": ("quiet", "close", "Denied"),
    "expired": ("quiet", "clock", "Expired"),
    "void": ("quiet", "close", "Void"),
}


@signed_in
@require_GET
def approvals_page(request: PersonRequest) -> HttpResponse:
    """List reviews and pending requests, then the latest decisions; older ones by `before`."""
    now = db_now()
    before = request.GET.get("before", "")
    decided = Approval.objects.exclude(state="pending").order_by("-id")
    if before.isascii() and before.isdigit() and len(before) < 19:
        decided = decided.filter(pk__lt=int(before))
    found = list(decided.select_related("requester")[: DECIDED_SHOWN + 1])
    live = Q(expires_at__gt=now) | Q(expires_at__isnull=True)
    of_reviews = Q(kind=Approval.Kind.BREAK_GLASS_REVIEW)
    pending = Approval.objects.select_related("requester").filter(live, state="pending")
    pending = pending.annotate(is_review=of_reviews)
    page = Paginator(pending.order_by("-is_review", "id"), PENDING_SHOWN).get_page(
        request.GET.get("page")
    )
    cards = _cards(page.object_list)
    context = {
        "now": now,
        "waiting": page.paginator.count,
        "page": page,
        "reviews": [card for card in cards if card["approval"].is_review],
        "pending": [card for card in cards if not card["approval"].is_review],
        "decided": [_line(approval) for approval in found[:DECIDED_SHOWN]],
        "older": found[DECIDED_SHOWN - 1].pk if len(found) > DECIDED_SHOWN else None,
        "newest": not before,
    }
    return render(request, "core/approvals.html", context)


@signed_in
@require_POST
def approve(request: PersonRequest, approval_id: int) -> HttpResponse:
    if services.reaches_far(services.find(approval_id)):
        require_fresh(request, db_now(), next_url=notes.PAGE)
    return _decide(request, approval_id, services.approve)


@signed_in
@require_POST
def deny(request: PersonRequest, approval_id: int) -> HttpResponse:
    """Deny a request. A reason is required, except to withdraw one's own request."""
    approval = services.find(approval_id)
    review = approval.kind == Approval.Kind.BREAK_GLASS_REVIEW
    waits = approval.state == Approval.State.PENDING and not review
    others = request.user.may_approve and approval.requester_id != request.user.pk
    if waits and others and not _comment(request):
        return _refused(request, "Not denied", DomainError(WHY_NOT), 422)
    return _decide(request, approval_id, services.deny)


@signed_in
@require_POST
def sign(request: PersonRequest, approval_id: int) -> HttpResponse:
    """Sign a review."""

    def signed(*, approval_id: int, **given: Any) -> Approval:
        return reviews.sign(review_id=approval_id, **given)

    return _decide(request, approval_id, signed)


@signed_in
@require_POST
def edit(request: PersonRequest, approval_id: int) -> HttpResponse:
    """Change the reason of one's own request, which is requested anew."""
    reason = request.POST.get("reason", "").replace("\x00", "")
    try:
        approval = services.edit(
            approval_id=approval_id, reason=reason, actor=actor_of(request), now=db_now()
        )
    except (Conflict, InvalidInput) as error:
        return _refused(request, "Not changed", error)
    return done(request, f"{approval.summary}: asked anew.", notes.PAGE)


def _decide(
    request: PersonRequest, approval_id: int, decide: Callable[..., Approval]
) -> HttpResponse:
    try:
        approval = decide(
            approval_id=approval_id,
            comment=_comment(request),
            actor=actor_of(request),
            now=db_now(),
        )
    except Conflict as conflict:
        return _refused(request, "Not decided", conflict)
    review = approval.kind == Approval.Kind.BREAK_GLASS_REVIEW
    word = "signed" if review else notes.get_outcome(approval)
    return done(request, f"{approval.summary}: {word}.", notes.PAGE)


def _comment(request: PersonRequest) -> str:
    return request.POST.get("comment", "").replace("\x00", "").strip()[:2000]


def _refused(
    request: PersonRequest, heading: str, error: DomainError, status: int | None = None
) -> HttpResponse:
    context = {"heading": heading, "detail": error.detail, "back": "approvals_page"}
    return show(request, "core/notice.html", context, status=status or error.status)


def _cards(approvals: Iterable[Approval]) -> list[dict[str, Any]]:
    by_kind: dict[str, list[Approval]] = defaultdict(list)
    for approval in (found := list(approvals)):
        by_kind[approval.kind].append(approval)
    changes = {
        one.pk: list_changes(kind, said)
        for kind, them in by_kind.items()
        for one, said in zip(them, kinds.get_kind(kind).in_words(them), strict=True)
    }
    return [
        {
            "approval": approval,
            "changes": changes[approval.pk],
            "about": notes.get_target(approval),
            "replaced": approval.replaces_id,
        }
        for approval in found
    ]


def _line(approval: Approval) -> dict[str, Any]:
    tone, icon, word = STATE_LOOKS[approval.state]
    if approval.kind == Approval.Kind.BREAK_GLASS_REVIEW:
        word = "Signed"
    elif notes.get_outcome(approval) == "withdrawn":
        word = "Withdrawn"
    return {"approval": approval, "tone": tone, "icon": icon, "word": word}
