"""Pages of ramps: the list, one ramp, and dialogs for actions."""

from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Any

from django.http import Http404, HttpResponse
from django.urls import reverse
from django.views.decorators.http import require_GET, require_http_methods, require_POST
from django_htmx.http import trigger_client_event

from controlplane.core import authority
from controlplane.core.actions import Action
from controlplane.core.audit import change_feed
from controlplane.core.audit.models import AuditEntry
from controlplane.core.change_views import submitted_data
from controlplane.core.clock import db_now
from controlplane.core.errors import Conflict, Forbidden, InvalidInput
from controlplane.core.http.permissions import actor_of
from controlplane.core.instances.exports import load_checking_services
from controlplane.core.jobs.models import Job
from controlplane.core.page_responses import (
    PersonRequest,
    render_live,
    respond_done,
    show,
    signed_in,
)
from switches import page_updates
from switches.confirmation import require_confirmation
from switches.forms import ReasonForm
from switches.models import Ramp

from . import actions, descriptions, phases, timeline
from . import live_ramps as ramps

PAGE = "switches/ramp.html"
ENDED = "ramp-ended"
SHOWN = 50
LIVE_SHOWN = 200

SERVICES: Mapping[str, Callable[..., Ramp]] = {
    "pause": actions.pause,
    "resume": actions.resume,
    "advance": actions.advance,
}


@signed_in
@require_GET
def ramps_page(request: PersonRequest) -> HttpResponse:
    """List live ramps, then ended ones, newest first; `before` pages through older ones.

    While ramps are live, the page is always rendered, because a hold's reason may change
    without an audit row.
    """
    head, now = page_updates.read_head_and_time()
    found = Ramp.objects.select_related("job", "episode").order_by("-job_id")
    under_way = list(found.filter(live=True)[:LIVE_SHOWN])
    nothing_new = None if under_way else page_updates.respond_if_unchanged(request, head, now)
    if nothing_new is not None:
        return nothing_new
    before = page_updates.parse_id(request.GET.get("before", ""))
    ended = found.filter(live=False)
    rows, older = page_updates.take_page(ended.filter(pk__lt=before) if before else ended, SHOWN)
    context = {
        "live": True,
        "head": head,
        "now": now,
        "under_way": [] if before else [_build_row(ramp) for ramp in under_way],
        "ended": [_build_row(ramp) for ramp in rows],
        "older": older,
        "newest": not before,
    }
    return page_updates.render_page(request, "ramps", context)


@signed_in
@require_GET
def ramp_page(request: PersonRequest, ramp_id: int, template: str = PAGE) -> HttpResponse:
    """Render a ramp's page; with the timeline's template, only the part that the page polls.

    The part of an ended ramp makes the page refresh its other parts.
    """
    now = db_now()
    ramp = _get_ramp(ramp_id)
    context = build_context(request, timeline.build_timeline(ramp, now), now)
    if template == PAGE:
        context |= _changes_context(ramp, now)
        context["phases"] = phases.load_phases(ramp, now)
        context["next_action"] = _find_next_action(ramp)
    response = render_live(request, template, context)
    return response if template == PAGE or ramp.live else trigger_client_event(response, ENDED)


def _find_next_action(ramp: Ramp) -> str:
    """Return what people can do with the switch of an ended ramp: `release`, `engage` or empty."""
    if ramps.find_live_ramp(ramp.switch_id) is not None:
        return ""
    return "engage" if ramp.switch.episode is None else "release"


def _changes_context(ramp: Ramp, now: datetime) -> dict[str, Any]:
    """Return the changes in the hour before the ramp was held or ended, else in the last hour."""
    job = ramp.job
    moment, event = job.finished_at, "it ended"
    if job.state == Job.State.HOLDING:
        held = AuditEntry.objects.filter(target=ramp.switch_id, action="ramp.held")
        moment, event = held.order_by("-id").values_list("at", flat=True).first(), "it was held"
    targets = [ramp.switch_id, *_list_gate_targets(ramp)]
    services = load_checking_services(ramp.switch_id)
    return {
        "changes": change_feed.list_changes_before(
            moment or now, services=services, targets=targets
        ),
        "changes_heading": f"Changes in the hour before {event}"
        if moment
        else "Changes in the last hour",
    }


def _list_gate_targets(ramp: Ramp) -> list[str]:
    """Return the audit targets of the SLOs and dependencies that the ramp's gates read."""
    gates = [gate for step in ramp.plan for gate in step.get("gates", ())]
    return [
        f"{kind}:{gate[kind]}" for gate in gates for kind in ("slo", "dependency") if kind in gate
    ]


def build_context(
    request: PersonRequest, shown: timeline.Timeline | None, now: datetime
) -> dict[str, Any]:
    """Return template context for a timeline; its `ramp` is None if there is no timeline."""
    if shown is None:
        return {"ramp": None}
    teams, actor, switch_id = authority.read_teams(), actor_of(request), shown.ramp.switch_id
    allowed = {
        action: teams.decide(actor, action, switch_id)
        for action in (Action.RELEASE, Action.RELEASE_AT_ONCE, Action.APPROVE)
    }
    is_own = shown.approval is not None and shown.approval.requester_id == request.user.pk
    return {
        "ramp": shown,
        "now": now,
        "may_resume": allowed[Action.RELEASE],
        "may_skip": allowed[Action.RELEASE_AT_ONCE].is_allowed,
        "may_decide": allowed[Action.APPROVE].is_allowed and not is_own,
    }


@signed_in
@require_POST
def abort(request: PersonRequest, ramp_id: int) -> HttpResponse:
    ramp = _get_ramp(ramp_id)
    was_pending = ramp.job.state == Job.State.PENDING
    reason = request.POST.get("reason", "").replace("\x00", "").strip() or descriptions.ABORTED
    try:
        aborted = actions.abort(
            ramp_id=ramp_id, reason=reason, actor=actor_of(request), now=db_now()
        )
    except (Conflict, InvalidInput) as refusal:
        return _show_refusal(request, ramp, "Not aborted", refusal)
    if was_pending:
        message = f"Ramp withdrawn: {aborted.switch_id} stays engaged."
    else:
        version = aborted.switch.version
        message = f"Ramp aborted: {aborted.switch_id} is engaged again, in version {version}."
    return respond_done(
        request,
        message,
        reverse("switch_page", args=[ramp.switch.scope, ramp.switch.key]),
        shown_on=_list_pages(ramp),
    )


@signed_in
@require_http_methods(["GET", "POST"])
def intervene(request: PersonRequest, ramp_id: int, verb: str) -> HttpResponse:
    """Show the form to pause, resume or advance a ramp, and carry it out on POST.

    The form to advance names the shown step, so that a repeated request skips one step only.
    """
    ramp, actor, now = _get_ramp(ramp_id), actor_of(request), db_now()
    actor.require("ramps:write")
    authority.require(actor, actions.REQUIRED_ACTIONS[verb], ramp.switch_id)
    arguments: dict[str, Any] = {}
    if verb == "advance":
        require_confirmation(request, ramp.switch.scope, now)
        arguments["step_index"] = page_updates.parse_id(request.POST.get("step", ""))
    form = ReasonForm(submitted_data(request))
    if form.is_valid():
        reason = form.get_text("reason")
        try:
            SERVICES[verb](ramp_id=ramp_id, reason=reason, actor=actor, now=now, **arguments)
        except InvalidInput as error:
            form.add_service_errors(error.errors)
        except (Conflict, Forbidden) as refusal:
            return _show_refusal(request, ramp, "Nothing changed", refusal)
        else:
            done = _describe_done(verb, _get_ramp(ramp_id))
            url = reverse("ramp_page", args=[ramp_id])
            return respond_done(request, done, url, shown_on=_list_pages(ramp))
    context = {
        "verb": verb,
        "form": form,
        "url": reverse(f"ramp_{verb}", args=[ramp_id]),
        **build_context(request, timeline.build_timeline(ramp, now), now),
    }
    return show(request, "switches/ramp_action.html", context, status=422 if form.is_bound else 200)


def _list_pages(ramp: Ramp) -> list[str]:
    """Return the paths of the pages that show a ramp."""
    return [
        reverse("ramp_page", args=[ramp.pk]),
        reverse("switch_page", args=[ramp.switch.scope, ramp.switch.key]),
    ]


def _describe_done(verb: str, ramp: Ramp) -> str:
    share = descriptions.format_percent(ramp.episode.allow_percent)
    if verb == "pause":
        return f"Paused: {ramp.switch_id} stays at {share}. A failing gate still ends the ramp."
    if verb == "resume":
        return f"Ramp of {ramp.switch_id} resumed."
    if not ramp.live:
        return f"{ramp.switch_id} released: services are told to allow its traffic."
    return f"Step {ramp.job.step_index + 1} of {ramp.switch_id} started at {share}."


def _build_row(ramp: Ramp) -> dict[str, Any]:
    job = ramp.job
    return {
        "ramp": ramp,
        "job": job,
        "state": ramps.STATES[job.state],
        "share": ramps.get_percent(ramp),
        "number": job.step_index + 1,
        "steps": len(ramp.plan),
    }


def _show_refusal(
    request: PersonRequest, ramp: Ramp, heading: str, error: Conflict | Forbidden | InvalidInput
) -> HttpResponse:
    context = {"heading": heading, "detail": error.detail, "target": ramp.switch_id}
    # htmx dialogs show 409 responses, but not 403.
    status = 409 if isinstance(error, Forbidden) else error.status
    return show(request, "core/notice.html", context, status=status)


def _get_ramp(ramp_id: int) -> Ramp:
    rows = Ramp.objects.select_related("job", "episode", "switch")
    ramp = rows.filter(pk=ramp_id).first() if ramp_id < 2**63 else None
    if ramp is None:
        raise Http404
    return ramp
