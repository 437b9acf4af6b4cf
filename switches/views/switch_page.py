"""Page of one switch: state, actions and history."""

from datetime import datetime
from typing import Any

from django.http import HttpResponse
from django.views.decorators.http import require_GET

from controlplane.core import authority
from controlplane.core.actions import Action
from controlplane.core.approvals.models import Approval
from controlplane.core.audit import change_feed
from controlplane.core.audit.differences import compare_texts
from controlplane.core.audit.models import AuditEntry
from controlplane.core.comments.services import list_comments
from controlplane.core.http.permissions import actor_of
from controlplane.core.page_responses import PersonRequest, signed_in
from switches import board, comment_kinds, page_updates
from switches.blast import blast_radius
from switches.drills import presentation as drills
from switches.emergency.presentation import load_orders
from switches.episodes.descriptions import describe_next
from switches.models import Episode, Switch
from switches.ramps import timeline, views
from switches.scopes import GLOBAL
from switches.trips.views import switch_context

from .actions import read_switch
from .effect import build_calls, build_progress

EPISODES_SHOWN = 8
COMMENTS_SHOWN = 20
ENTRIES_SHOWN = 10


@signed_in
@require_GET
def switch_page(request: PersonRequest, scope: str, key: str) -> HttpResponse:
    head, now = page_updates.read_head_and_time()
    token = page_updates.build_minute_token(head, now)
    nothing_new = page_updates.respond_if_unchanged(request, token, now)
    if nothing_new is not None:
        return nothing_new
    switch = read_switch(scope, key)
    context = {"head": token, "live": True, **_build_context(request, switch, now)}
    return page_updates.render_page(request, "switch", context)


def _build_context(request: PersonRequest, switch: Switch, now: datetime) -> dict[str, Any]:
    approval = Approval.objects.filter(
        target=switch.pk, state="pending", expires_at__gt=now
    ).first()
    row = board.board_row(switch, request.user, now)
    blast = blast_radius(switch.pk, now)
    ramp = timeline.find_timeline(switch, row.episode, now)
    second = approval is not None or (switch.scope == GLOBAL.name and row.episode is not None)
    teams = authority.read_teams()
    return {
        "now": now,
        "switch": switch,
        "row": row,
        "episode": row.episode,
        "next": row.episode
        and describe_next(
            row.episode, now, is_reengaging=ramp is not None and ramp.state == "failed"
        ),
        "approval": approval,
        "teams": teams,
        "may_approve": teams.decide(actor_of(request), Action.APPROVE, switch.pk),
        "approvers": authority.who_may(Action.APPROVE, switch.pk, but=request.user.pk)
        if second
        else [],
        "blast": blast,
        "origin": request.build_absolute_uri("/")[:-1],
        **build_progress(switch, now),
        **build_calls(request, switch, now),
        **views.build_context(request, ramp, now),
        **switch_context(switch.pk),
        **drills.switch_context(switch, now),
        **_read_history(request, switch, row.episode),
        "alerts": row.episode
        and change_feed.list_alerts_after(
            row.episode.engaged_at,
            services=[service.id for service in blast.services],
            subjects=[switch.pk],
        ),
    }


def _read_history(
    request: PersonRequest, switch: Switch, current: Episode | None
) -> dict[str, Any]:
    """Return pages of ended episodes and audit entries, comments, and the latest episode."""
    ended = Episode.objects.filter(switch_id=switch.pk, ended_at__isnull=False).order_by("-id")
    latest = current or ended.first()
    entries = AuditEntry.objects.filter(target=switch.pk).order_by("-id")
    if before := page_updates.parse_id(request.GET.get("episodes_before", "")):
        ended = ended.filter(pk__lt=before)
    if before := page_updates.parse_id(request.GET.get("audit_before", "")):
        entries = entries.filter(pk__lt=before)
    shown_episodes, older_episodes = page_updates.take_page(ended, EPISODES_SHOWN)
    shown_entries, older_entries = page_updates.take_page(entries, ENTRIES_SHOWN)
    named = [one for one in (latest, *shown_episodes) if one is not None]
    commented = {str(one.pk) for one in named}
    return {
        "latest": latest,
        "open_orders": load_orders(switch.pk, named),
        "episodes": shown_episodes,
        "comments": list_comments(comment_kinds.KIND, commented)[:COMMENTS_SHOWN],
        "older_episodes": older_episodes,
        "entries": [(entry, compare_texts(entry.before, entry.after)) for entry in shown_entries],
        "older_entries": older_entries,
    }
