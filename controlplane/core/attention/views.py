"""The page *Needs attention*, with the acknowledged escalations."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from operator import itemgetter
from typing import Any

from django.core.paginator import Paginator
from django.http import HttpResponse
from django.urls import reverse
from django.views.decorators.http import require_GET, require_POST

from controlplane.core.actors import Actor
from controlplane.core.attention import services
from controlplane.core.audit.change_feed import ChangeSummary, summarize_changes_before
from controlplane.core.authority import Teams, read_teams
from controlplane.core.clock import db_now
from controlplane.core.errors import Conflict, NotFound
from controlplane.core.escalations import services as escalations
from controlplane.core.escalations import summaries
from controlplane.core.http.permissions import actor_of
from controlplane.core.outbox.escalation import Escalation
from controlplane.core.page_registry import POST, AttentionAction, AttentionItem
from controlplane.core.page_responses import (
    PersonRequest,
    render_live,
    respond_done,
    show_refusal,
    signed_in,
)
from controlplane.core.team_filter import build_filter_context, read_team_filter, split_by_team

SHOWN = 100
ESCALATIONS_SHOWN = 50


@signed_in
@require_GET
def attention_page(request: PersonRequest, template: str) -> HttpResponse:
    """Show a page of attention items, or the part that live updates replace."""
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
    message = (
        f"You acknowledged {summaries.format_title(known)}. Escalation is paused for 24 hours."
    )
    return respond_done(request, message, "/attention/")


def _build_context(request: PersonRequest) -> dict[str, Any]:
    now = db_now()
    overview = services.read_all(now).shown_to(request.user.pk)
    teams = read_teams()
    team_filter = read_team_filter(request, teams)
    selected, hidden = overview.split_by_team(team_filter)
    page = Paginator(selected.waiting, SHOWN).get_page(request.GET.get("page"))
    shown = services.Overview(tuple(page.object_list), overview.unread)
    subjects = {subject for item in shown.waiting for subject in item.subjects}
    open_rows = Escalation.objects.filter(closed_at=None).order_by("next_at", "id")
    by_subject = {row.subject: row for row in open_rows.filter(subject__in=subjects)}
    listed = {subject for item in overview.waiting for subject in item.subjects}
    known = open_rows.filter(acknowledged_at__isnull=False).exclude(subject__in=listed)
    known = known.order_by("acknowledged_at", "id")
    pairs, known_hidden = split_by_team(
        team_filter, known.values_list("pk", "resource"), itemgetter(1)
    )
    actor = actor_of(request)
    changes = _summarize_changes(shown.waiting)
    return {
        "now": now,
        "page": page,
        "groups": [
            (severity, [_build_line(item, by_subject, changes, actor, teams) for item in items])
            for severity, items in shown.groups
        ],
        **build_filter_context(team_filter, len(hidden.waiting) + known_hidden),
        "critical_hidden": hidden.critical,
        "unread": overview.unread,
        "total": overview.total,
        "listed": len(overview.waiting),
        "critical": overview.critical,
        "personal": overview.personal,
        "acknowledged": [
            {
                "row": row,
                "title": summaries.format_title(row),
                "path": row.facts.get("path"),
            }
            for row in known.filter(pk__in=[pk for pk, _ in pairs[:ESCALATIONS_SHOWN]])
        ],
        "acknowledged_total": len(pairs),
    }


def _summarize_changes(items: Sequence[AttentionItem]) -> dict[datetime, ChangeSummary]:
    """Return the changes in the hour before each of the items that show them, by `since`."""
    times = sorted({item.since for item in items if item.changes_path})
    return dict(zip(times, summarize_changes_before(times), strict=True))


def _build_line(
    item: AttentionItem,
    escalations_by_subject: Mapping[str, Escalation],
    changes: Mapping[datetime, ChangeSummary],
    actor: Actor,
    teams: Teams,
) -> dict[str, Any]:
    found = (escalations_by_subject.get(subject) for subject in item.subjects)
    escalation = next((one for one in found if one is not None), None)
    actions = services.permitted_actions(item, actor, teams)
    notified = escalation.facts.get(summaries.NOTIFIED, []) if escalation else []
    is_elsewhere = any(
        one.partition(":")[0] in escalations.ACKNOWLEDGED_ELSEWHERE for one in item.subjects
    )
    may_acknowledge = actor.may("switches:write") and not is_elsewhere
    if escalation and may_acknowledge and escalation.acknowledged_at is None:
        acknowledge_path = reverse("escalation_acknowledge", args=[escalation.pk])
        if acknowledge_path not in {one.path for one in actions}:
            one = AttentionAction("Acknowledge", acknowledge_path, "switches:write", "eye", POST)
            actions = (*actions, one)
    return {
        "item": item,
        "owner": teams.owner_of(item.resource),
        "actions": actions,
        "changes": changes.get(item.since) if item.changes_path else None,
        "escalation": escalation,
        "notified": notified[-1]["who"] if notified else [],
    }
