"""Approvals page: pending requests and reviews, and past decisions."""

from collections import defaultdict
from collections.abc import Callable, Collection, Mapping
from typing import Any

from django.core.paginator import Paginator
from django.db.models import Q
from django.http import HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.views.decorators.http import require_GET, require_POST

from controlplane.core import authority
from controlplane.core.actions import Action
from controlplane.core.approvals import announcements, kinds, reviews, services
from controlplane.core.approvals.models import Approval
from controlplane.core.audit.differences import AuditChange, compare_fields
from controlplane.core.clock import db_now
from controlplane.core.errors import Conflict, DomainError, InvalidInput
from controlplane.core.http.confirmation import require_fresh
from controlplane.core.http.permissions import actor_of
from controlplane.core.page_responses import (
    PersonRequest,
    respond_done,
    show,
    show_refusal,
    signed_in,
)

BACK = "approvals_page"
PENDING_SHOWN = 100
DECIDED_SHOWN = 25
WHY_NOT = "Enter a reason to deny it: the requester needs to know what to do next."
OVERRIDE_ACTIONS = {"engage": "Engage", "extend": "Extend", "release": "Release"}
"""Labels of the actions of a break-glass override."""
STATE_LOOKS = {
    "approved": ("released", "check", "Approved"),
    "denied": ("quiet", "close", "Denied"),
    "expired": ("quiet", "clock", "Expired"),
    "void": ("quiet", "close", "Void"),
}


@signed_in
@require_GET
def approvals_page(request: PersonRequest) -> HttpResponse:
    """Show reviews, pending requests and a page of decisions, older than `?before=` if given.

    With `?id=`, redirect to the page that shows this approval.
    """
    now = db_now()
    before = _parse_id(request.GET.get("before", ""))
    decided = Approval.objects.exclude(state="pending").order_by("-id")
    if before is not None:
        decided = decided.filter(pk__lt=before)
    decisions = list(decided.select_related("requester")[: DECIDED_SHOWN + 1])
    live = Q(expires_at__gt=now) | Q(expires_at__isnull=True)
    of_reviews = Q(kind=Approval.Kind.BREAK_GLASS_REVIEW)
    pending = Approval.objects.select_related("requester").filter(live, state="pending")
    pending = pending.annotate(is_review=of_reviews).order_by("-is_review", "id")
    wanted = _parse_id(request.GET.get("id", ""))
    if wanted is not None:
        return _redirect_to_page(wanted, list(pending.values_list("pk", flat=True)))
    page = Paginator(pending, PENDING_SHOWN).get_page(request.GET.get("page"))
    cards = _build_cards(request, list(page.object_list))
    context = {
        "now": now,
        "waiting": page.paginator.count,
        "decidable": any(card["may_decide"] for card in cards),
        "page": page,
        "reviews": [card for card in cards if card["approval"].is_review],
        "pending": [card for card in cards if not card["approval"].is_review],
        "decided": [_describe_decision(approval) for approval in decisions[:DECIDED_SHOWN]],
        "older": decisions[DECIDED_SHOWN - 1].pk if len(decisions) > DECIDED_SHOWN else None,
        "newest": before is None,
    }
    return render(request, "core/approvals.html", context)


def _parse_id(text: str) -> int | None:
    return int(text) if text.isascii() and text.isdigit() and len(text) < 19 else None


def _redirect_to_page(approval_id: int, pending: list[int]) -> HttpResponse:
    """Redirect to the page of pending requests, or else of decisions, that shows an approval."""
    if approval_id in pending:
        query = {"page": pending.index(approval_id) // PENDING_SHOWN + 1}
    else:
        query = {"before": approval_id + 1}
    return redirect(reverse("approvals_page", query=query, fragment=f"approval-{approval_id}"))


@signed_in
@require_GET
def decide(request: PersonRequest, approval_id: int) -> HttpResponse:
    """Show one pending request or review with the forms to decide it, as a page or in a dialog."""
    approval = services.get_approval(approval_id)
    if approval.state != Approval.State.PENDING:
        error = Conflict(f"{approval.summary}: this is already {approval.state}.")
        return show_refusal(request, "Nothing to decide", error, BACK)
    (card,) = _build_cards(request, [approval])
    context = {
        "card": card,
        "review": approval.kind == Approval.Kind.BREAK_GLASS_REVIEW,
        "place": "dialog",
        "now": db_now(),
    }
    return show(request, "core/approval.html", context)


@signed_in
@require_POST
def approve(request: PersonRequest, approval_id: int) -> HttpResponse:
    if services.requires_confirmation(services.get_approval(approval_id)):
        require_fresh(request, db_now(), next_url=announcements.PAGE)
    return _decide(request, approval_id, services.approve)


@signed_in
@require_POST
def deny(request: PersonRequest, approval_id: int) -> HttpResponse:
    """Deny a request. A comment is required, except for requesters who withdraw their own."""
    approval = services.get_approval(approval_id)
    is_review = approval.kind == Approval.Kind.BREAK_GLASS_REVIEW
    is_pending = approval.state == Approval.State.PENDING and not is_review
    if is_pending and _may_decide(request, approval) and not _read_comment(request):
        return show_refusal(request, "Not denied", DomainError(WHY_NOT), BACK, status=422)
    return _decide(request, approval_id, services.deny)


@signed_in
@require_POST
def sign(request: PersonRequest, approval_id: int) -> HttpResponse:
    return _decide(request, approval_id, reviews.sign)


@signed_in
@require_POST
def edit(request: PersonRequest, approval_id: int) -> HttpResponse:
    """Replace the user's own request by one with the submitted reason."""
    reason = request.POST.get("reason", "").replace("\x00", "")
    try:
        approval = services.edit_request(
            approval_id=approval_id, reason=reason, actor=actor_of(request), now=db_now()
        )
    except (Conflict, InvalidInput) as error:
        return show_refusal(request, "Not changed", error, BACK)
    return respond_done(request, f"{approval.summary}: requested again.", announcements.PAGE)


def _decide(
    request: PersonRequest, approval_id: int, decide: Callable[..., Approval]
) -> HttpResponse:
    try:
        approval = decide(
            approval_id, comment=_read_comment(request), actor=actor_of(request), now=db_now()
        )
    except Conflict as conflict:
        return show_refusal(request, "Not decided", conflict, BACK)
    is_review = approval.kind == Approval.Kind.BREAK_GLASS_REVIEW
    word = "signed" if is_review else announcements.get_outcome(approval)
    return respond_done(request, f"{approval.summary}: {word}.", announcements.PAGE)


def _read_comment(request: PersonRequest) -> str:
    return request.POST.get("comment", "").replace("\x00", "").strip()[:2000]


def _may_decide(request: PersonRequest, approval: Approval) -> bool:
    """Return True if the user may decide a request of somebody else."""
    decision = authority.decide(actor_of(request), Action.APPROVE, kinds.get_resource(approval))
    return decision.is_allowed and approval.requester_id != request.user.pk


def _build_cards(request: PersonRequest, approvals: Collection[Approval]) -> list[dict[str, Any]]:
    by_kind: dict[str, list[Approval]] = defaultdict(list)
    for approval in approvals:
        by_kind[approval.kind].append(approval)
    changes = {
        approval.pk: list_changes(kind, diff)
        for kind, group in by_kind.items()
        for approval, diff in zip(group, kinds.get_kind(kind).describe_changes(group), strict=True)
    }
    actor, teams = actor_of(request), authority.read_teams()
    cards = []
    for approval in approvals:
        decision = teams.decide(actor, Action.APPROVE, kinds.get_resource(approval))
        card = {
            "approval": approval,
            "changes": changes[approval.pk],
            "about": kinds.get_target(approval),
            "replaced": approval.replaces_id,
            "may_decide": decision.is_allowed,
            "owner": decision.owner,
            "why_not": decision.detail if teams else "",
        }
        cards.append(card)
    return cards


def _describe_decision(approval: Approval) -> dict[str, Any]:
    tone, icon, word = STATE_LOOKS[approval.state]
    if approval.kind == Approval.Kind.BREAK_GLASS_REVIEW:
        word = "Signed"
    elif announcements.get_outcome(approval) == "withdrawn":
        word = "Withdrawn"
    return {"approval": approval, "tone": tone, "icon": icon, "word": word}


def list_changes(kind: str, diff: Mapping[str, Any]) -> list[AuditChange]:
    """Return a change for each field of a request's `diff`, to be shown on the page.

    A list of two values is the value before and after; any other value is shown as unchanged. A
    break-glass review has the overridden rules and the action.
    """
    if kind == Approval.Kind.BREAK_GLASS_REVIEW:
        rules = diff.get("rules") or [diff.get("rule", "")]
        shown = {
            "overridden rule" if len(rules) == 1 else "overridden rules": ", ".join(rules),
            "action": OVERRIDE_ACTIONS.get(diff.get("did", ""), diff.get("did")),
        }
        return compare_fields(shown, shown)
    pairs = {
        name: value if isinstance(value, list) and len(value) == 2 else (value, value)
        for name, value in diff.items()
        # The page shows a list of objects, such as steps, as a table.
        if not (isinstance(value, list) and any(isinstance(item, dict) for item in value))
        and value not in (None, [None, None])
    }
    before = {name: _format_value(value) for name, (value, _) in pairs.items()}
    after = {name: _format_value(value) for name, (_, value) in pairs.items()}
    return compare_fields(before, after)


def _format_value(value: Any) -> Any:
    """Return the value to show: yes or no for a boolean, one text for a list of texts."""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, list) and value and all(isinstance(one, str) for one in value):
        return ", ".join(value)
    return value
