"""The jobs page: progress, and pausing, resuming or cancelling a job."""

from dataclasses import dataclass
from datetime import datetime
from typing import Any
from urllib.parse import urlencode

from django import forms
from django.db.models import Q, QuerySet
from django.http import HttpResponse
from django.shortcuts import render
from django.urls import reverse
from django.views.decorators.http import require_GET, require_http_methods

from controlplane.core.actors import Actor
from controlplane.core.canonical import timestamp
from controlplane.core.clock import db_now
from controlplane.core.errors import Conflict, InvalidInput
from controlplane.core.http.permissions import actor_of
from controlplane.core.jobs import control, kinds, watch
from controlplane.core.jobs.models import Job
from controlplane.core.page_responses import PersonRequest, done, show, signed_in

SHOWN = 50
MAX_REASON_LENGTH = 2000
LIVE = "live"
FEW = 10
CHOICES = {
    LIVE: "Live",
    Job.State.COMPLETED.value: "Completed",
    Job.State.FAILED.value: "Failed",
    Job.State.CANCELLED.value: "Cancelled",
}
DONE = {"pause": "is paused", "resume": "goes on", "cancel": "is cancelled"}


class ReasonForm(forms.Form):
    reason = forms.CharField(
        max_length=MAX_REASON_LENGTH, error_messages={"required": "Say why: it is kept."}
    )


@dataclass(frozen=True)
class Line:
    """A job as a row: `rate` is items per second, `verbs` the allowed actions."""

    job: Job
    title: str
    path: str
    is_stuck: bool
    rate: float | None
    verbs: tuple[str, ...]


@signed_in
@require_GET
def jobs_page(request: PersonRequest) -> HttpResponse:
    now = db_now()
    return _stamped(render(request, "core/jobs.html", _context(request, now)), now)


@signed_in
@require_GET
def jobs_rows(request: PersonRequest) -> HttpResponse:
    """Render the live part. Progress writes no audit row, so it is read anew each time."""
    now = db_now()
    return _stamped(render(request, "core/_jobs.html", _context(request, now)), now)


@signed_in
@require_http_methods(["GET", "POST"])
def pause(request: PersonRequest, job_id: int) -> HttpResponse:
    return _intervene(request, job_id, "pause")


@signed_in
@require_http_methods(["GET", "POST"])
def resume(request: PersonRequest, job_id: int) -> HttpResponse:
    return _intervene(request, job_id, "resume")


@signed_in
@require_http_methods(["GET", "POST"])
def cancel(request: PersonRequest, job_id: int) -> HttpResponse:
    return _intervene(request, job_id, "cancel")


def _intervene(request: PersonRequest, job_id: int, verb: str) -> HttpResponse:
    """Show the dialog that asks for a reason, or carry out the action."""
    job, actor, now = control.get_job(job_id), actor_of(request), db_now()
    kind = kinds.get_kinds().get(job.kind)
    actor.require(kind.scope if kind else "switches:write")
    title = f"{kind.title if kind else job.kind} {job.pk}"
    form = ReasonForm(request.POST if request.method == "POST" else None)
    if form.is_valid():
        reason = form.cleaned_data["reason"].replace("\r\n", "\n")
        try:
            control.intervene(job_id=job_id, verb=verb, reason=reason, actor=actor, now=now)
        except InvalidInput as error:
            form.add_error("reason", [text for texts in error.errors.values() for text in texts])
        except Conflict as conflict:
            told = {"heading": "Nothing was changed", "detail": conflict.detail}
            return show(request, "core/notice.html", {**told, "back": "jobs_page"}, status=409)
        else:
            return done(request, f"{title} {DONE[verb]}.", reverse("jobs_page"))
    context = {
        "job": job,
        "title": title,
        "verb": verb,
        "form": form,
        "url": reverse(f"job_{verb}", args=[job_id]),
    }
    return show(request, "core/job_do.html", context, status=422 if form.is_bound else 200)


def _context(request: PersonRequest, now: datetime) -> dict[str, Any]:
    wanted = _read_filters(request)
    found = list(_filter_jobs(wanted).order_by("-id")[: SHOWN + 1])
    actor = actor_of(request)
    return {
        "now": now,
        "lines": [_line(job, actor, now) for job in found[:SHOWN]],
        "older": found[SHOWN - 1].pk if len(found) > SHOWN else None,
        "newest": not wanted["before"],
        "wanted": wanted,
        "narrowed": any(wanted[name] for name in ("state", "kind", "q")),
        "asked": urlencode({name: value for name, value in wanted.items() if value}),
        "choices": CHOICES.items(),
        "kinds": [(kind.name, kind.title) for kind in kinds.get_kinds().values()],
        "live_total": Job.objects.filter(finished_at=None).count(),
        "stuck": watch.filter_stuck_jobs(Job.objects.all(), now).count(),
    }


def _read_filters(request: PersonRequest) -> dict[str, str]:
    """Return the filters of the URL; invalid ones are ignored."""
    state, kind = request.GET.get("state", ""), request.GET.get("kind", "")
    before = request.GET.get("before", "")
    return {
        "state": state if state in CHOICES else "",
        "kind": kind if kind in kinds.get_kinds() else "",
        "q": request.GET.get("q", "").replace("\x00", "").strip()[:200],
        "before": before if before.isascii() and before.isdigit() and len(before) < 19 else "",
    }


def _filter_jobs(wanted: dict[str, str]) -> QuerySet[Job]:
    jobs = Job.objects.all()
    if wanted["state"] == LIVE:
        jobs = jobs.filter(finished_at=None)
    elif wanted["state"]:
        jobs = jobs.filter(state=wanted["state"])
    if wanted["kind"]:
        jobs = jobs.filter(kind=wanted["kind"])
    if wanted["q"]:
        jobs = jobs.filter(Q(subject__icontains=wanted["q"]) | Q(created_by__icontains=wanted["q"]))
    if wanted["before"]:
        jobs = jobs.filter(pk__lt=int(wanted["before"]))
    return jobs


def _line(job: Job, actor: Actor, now: datetime) -> Line:
    kind = kinds.get_kinds().get(job.kind)
    may = actor.may(kind.scope if kind else "switches:write")
    return Line(
        job=job,
        title=kind.title if kind else job.kind,
        path=kind.path(job) if kind else "",
        is_stuck=watch.is_stuck(job, now),
        rate=_rate(job, now),
        verbs=_list_actions(job) if may else (),
    )


def _list_actions(job: Job) -> tuple[str, ...]:
    if job.state in {Job.State.RUNNING, Job.State.HOLDING}:
        return ("pause", "cancel")
    if job.state == Job.State.PAUSED:
        return ("resume", "cancel")
    return ("cancel",) if job.is_live else ()


def _rate(job: Job, now: datetime) -> float | None:
    """Return items per second since the start; None if there are too few."""
    if job.started_at is None or job.total < FEW or not job.done:
        return None
    until = job.finished_at or job.checkpoint_at or now
    seconds = (until - job.started_at).total_seconds()
    return job.done / seconds if seconds > 0 else None


def _stamped(response: HttpResponse, now: datetime) -> HttpResponse:
    """Add the server's time, for countdowns and `as of`."""
    response["Switchgear-Now"] = timestamp(now)
    return response
