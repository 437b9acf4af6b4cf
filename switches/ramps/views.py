"""The pages of ramps: the list, one of them, and what people do with it."""

import functools
from collections.abc import Callable
from datetime import datetime
from typing import Any

from django.http import Http404, HttpResponse
from django.shortcuts import render
from django.urls import reverse
from django.views.decorators.http import require_GET, require_http_methods, require_POST

from controlplane.core.actors import Actor
from controlplane.core.browser import PersonRequest, done, show, signed_in
from controlplane.core.clock import db_now
from controlplane.core.errors import Conflict, Forbidden, InvalidInput
from controlplane.core.http.permissions import actor_of
from controlplane.core.jobs.models import Job
from switches import polling
from switches.confirmation import require_confirmation
from switches.forms import RampForm
from switches.models import Ramp

from . import actions, descriptions, timeline
from . import live_ramps as ramps

SHOWN = 50
LIVE_SHOWN = 200

Service = Callable[..., Ramp]


@signed_in
@require_GET
def ramps_page(request: PersonRequest) -> HttpResponse:
    """Live ones first, then those that are over, the latest first, older ones by `before`.

    Every move of a ramp writes an audit row; why one holds may change without. So while there are
    any the page is told anew each time.
    """
    head, now = polling.head_and_now()
    found = Ramp.objects.select_related("job", "episode").order_by("-job_id")
    under_way = list(found.filter(live=True)[:LIVE_SHOWN])
    nothing_new = None if under_way else polling.unchanged(request, head, now)
    if nothing_new is not None:
        return nothing_new
    before = request.GET.get("before", "")
    before = before if before.isascii() and before.isdigit() and len(before) < 19 else ""
    over = list(
        found.filter(live=False, **({"pk__lt": int(before)} if before else {}))[: SHOWN + 1]
    )
    context = {
        "live": True,
        "head": head,
        "now": now,
        "under_way": [] if before else [_line(ramp) for ramp in under_way],
        "over": [_line(ramp) for ramp in over[:SHOWN]],
        "older": over[SHOWN - 1].pk if len(over) > SHOWN else None,
        "newest": not before,
    }
    if request.htmx:
        return polling.render_part(request, "switches/_ramps.html", context, now)
    return polling.stamp_server_time(render(request, "switches/ramps.html", context), now)


@signed_in
@require_GET
def ramp_page(request: PersonRequest, ramp_id: int) -> HttpResponse:
    now = db_now()
    context = shown(request, timeline.of_ramp(_ramp(ramp_id), now), now)
    return polling.stamp_server_time(render(request, "switches/ramp.html", context), now)


@signed_in
@require_GET
def ramp_part(request: PersonRequest, ramp_id: int) -> HttpResponse:
    """The timeline by itself: verdicts change without an audit row, so it asks by itself."""
    now = db_now()
    context = shown(request, timeline.of_ramp(_ramp(ramp_id), now), now)
    return polling.stamp_server_time(render(request, "switches/_ramp.html", context), now)


def shown(request: PersonRequest, found: timeline.Timeline | None, now: datetime) -> dict[str, Any]:
    """What the timeline's template needs; `ramp` is None where there is none."""
    if found is None:
        return {"ramp": None}
    return {
        "ramp": found,
        "now": now,
        "may_decide": timeline.may_decide(found.approval, request.user),
    }


@signed_in
@require_POST
def abort(request: PersonRequest, ramp_id: int) -> HttpResponse:
    """At once and without a question: what it does is to stop, and that never waits."""
    ramp = _ramp(ramp_id)
    was_pending = ramp.job.state == Job.State.PENDING
    reason = request.POST.get("reason", "").replace("\x00", "").strip() or descriptions.ABORTED
    try:
        aborted = actions.abort(
            ramp_id=ramp_id, reason=reason, actor=actor_of(request), now=db_now()
        )
    except (Conflict, InvalidInput) as refusal:
        return _refused(request, ramp, "Not aborted", refusal)
    if was_pending:
        told = f"The ramp is withdrawn: {aborted.switch_id} stays engaged."
    else:
        version = aborted.switch.version
        told = f"0 % flows: {aborted.switch_id} is engaged again, as of version {version}."
    return done(request, told, _page_of_switch(ramp))


@signed_in
@require_http_methods(["GET", "POST"])
def pause(request: PersonRequest, ramp_id: int) -> HttpResponse:
    return _do(request, ramp_id, "pause", actions.pause, _paused)


@signed_in
@require_http_methods(["GET", "POST"])
def resume(request: PersonRequest, ramp_id: int) -> HttpResponse:
    return _do(request, ramp_id, "resume", actions.resume, _resumed)


@signed_in
@require_http_methods(["GET", "POST"])
def advance(request: PersonRequest, ramp_id: int) -> HttpResponse:
    """The form names the step that was seen, so that one sent twice passes one step."""
    sent = request.POST.get("step", "")
    step = int(sent) if sent.isascii() and sent.isdigit() and len(sent) < 9 else None
    service = functools.partial(actions.advance, step_index=step)
    return _do(request, ramp_id, "advance", service, _advanced)


def _do(
    request: PersonRequest, ramp_id: int, verb: str, service: Service, told: Callable[[Ramp], str]
) -> HttpResponse:
    """Show the dialog that asks why, or carry it out."""
    ramp, actor, now = _ramp(ramp_id), actor_of(request), db_now()
    _may(actor, verb)
    if verb == "advance":
        require_confirmation(request, ramp.switch.scope, now)
    form = RampForm(request.POST if request.method == "POST" else None)
    if form.is_valid():
        try:
            given = form.given("reason")
            changed = service(ramp_id=ramp_id, reason=given, actor=actor, now=now)
        except InvalidInput as error:
            form.take(error.errors)
        except (Conflict, Forbidden) as refusal:
            return _refused(request, ramp, "Nothing was changed", refusal)
        else:
            return done(request, told(changed), reverse("ramp_page", args=[ramp_id]))
    context = {
        "verb": verb,
        "form": form,
        "url": reverse(f"ramp_{verb}", args=[ramp_id]),
        **shown(request, timeline.of_ramp(ramp, now), now),
    }
    return show(request, "switches/ramp_do.html", context, status=422 if form.is_bound else 200)


def _may(actor: Actor, verb: str) -> None:
    actor.require("ramps:write")
    if verb == "advance" and actor.role not in actions.LET_GO_ON:
        raise Forbidden("To pass over a dwell or a gate takes the role of an approver.")


def _paused(ramp: Ramp) -> str:
    share = descriptions.percent(_present(ramp).episode.allow_percent)
    return f"Paused: {ramp.switch_id} stays at {share}. A gate that fails still ends the ramp."


def _resumed(ramp: Ramp) -> str:
    return f"The ramp of {ramp.switch_id} goes on where it was."


def _advanced(ramp: Ramp) -> str:
    present = _present(ramp)
    if not present.live:
        return f"{ramp.switch_id} is released: services are told to let traffic flow."
    share = descriptions.percent(present.episode.allow_percent)
    return f"On to step {present.job.step_index + 1}: {share} of {ramp.switch_id} flows."


def _present(ramp: Ramp) -> Ramp:
    """As it is after a change."""
    return Ramp.objects.select_related("job", "episode").get(pk=ramp.pk)


def _line(ramp: Ramp) -> dict[str, Any]:
    job = ramp.job
    return {
        "ramp": ramp,
        "job": job,
        "state": ramps.STATES[job.state],
        "share": timeline.share_of(ramp),
        "number": job.step_index + 1,
        "steps": len(ramp.plan),
    }


def _refused(
    request: PersonRequest, ramp: Ramp, heading: str, error: Conflict | Forbidden | InvalidInput
) -> HttpResponse:
    context = {"heading": heading, "detail": error.detail, "target": ramp.switch_id}
    # 403 would show nothing in a dialog, where only what was refused by the state is expected.
    status = 409 if isinstance(error, Forbidden) else error.status
    return show(request, "core/notice.html", context, status=status)


def _ramp(ramp_id: int) -> Ramp:
    rows = Ramp.objects.select_related("job", "episode", "switch")
    ramp = rows.filter(pk=ramp_id).first() if ramp_id < 2**63 else None
    if ramp is None:
        raise Http404
    return ramp


def _page_of_switch(ramp: Ramp) -> str:
    return reverse("switch_page", args=[ramp.switch.scope, ramp.switch.key])
