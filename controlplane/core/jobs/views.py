"""Jobs page, and its forms to pause, resume or cancel a job."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any
from urllib.parse import urlencode

from django import forms
from django.db.models import Q, QuerySet
from django.http import HttpResponse
from django.urls import reverse
from django.views.decorators.http import require_GET, require_http_methods

from controlplane.core import authority
from controlplane.core.actors import Actor
from controlplane.core.authority import Teams, read_teams
from controlplane.core.change_views import ServiceForm, handle_change, submitted_data
from controlplane.core.clock import db_now
from controlplane.core.http.permissions import actor_of
from controlplane.core.jobs import control, kinds, stuck_jobs
from controlplane.core.jobs.models import Job
from controlplane.core.jobs.resources import measure_rate
from controlplane.core.page_responses import (
    PersonRequest,
    render_live,
    show_refusal,
    signed_in,
)

SHOWN = 50
MAX_REASON_LENGTH = 2000
LIVE = "live"
MIN_ITEMS = 10
"""Jobs with fewer items show no rate."""
CHOICES = {
    LIVE: "Active",
    Job.State.COMPLETED.value: "Completed",
    Job.State.FAILED.value: "Failed",
    Job.State.CANCELLED.value: "Cancelled",
}
VERBS: Mapping[str, Sequence[str]] = {
    Job.State.PENDING: ("cancel",),
    Job.State.RUNNING: ("pause", "cancel"),
    Job.State.HOLDING: ("pause", "cancel"),
    Job.State.PAUSED: ("resume", "cancel"),
}
DONE = {"pause": "paused", "resume": "resumed", "cancel": "cancelled"}


class JobReasonForm(ServiceForm):
    reason = forms.CharField(
        max_length=MAX_REASON_LENGTH,
        error_messages={"required": "Enter a reason for the audit trail."},
    )


@signed_in
@require_GET
def jobs_page(request: PersonRequest, template: str) -> HttpResponse:
    """Render `template`: the jobs page, or only its table, which the page polls for progress."""
    return render_live(request, template, _build_context(request))


@signed_in
@require_http_methods(["GET", "POST"])
def intervene(request: PersonRequest, job_id: int, verb: str) -> HttpResponse:
    """Show a form that asks for the reason; after a valid POST, apply `verb` to the job.

    `verb` is `pause`, `resume` or `cancel`.
    """
    job = control.get_job(job_id)
    authority.require(actor_of(request), *kinds.get_action(job, verb))
    title, url = f"{kinds.get_title(job)} {job.pk}", reverse(f"job_{verb}", args=[job_id])
    form = JobReasonForm(submitted_data(request))

    def carry_out(actor: Actor, now: datetime) -> str:
        reason = form.get_text("reason")
        control.intervene(job_id=job_id, verb=verb, reason=reason, actor=actor, now=now)
        return f"{title} {DONE[verb]}."

    return handle_change(
        *(request, form, carry_out),
        scope=kinds.get_scope(job),
        template="core/job_action.html",
        context=lambda _now: {"job": job, "title": title, "verb": verb, "url": url},
        back=reverse("jobs_page"),
        refused=lambda error: show_refusal(request, "Nothing changed", error, "jobs_page"),
    )


def _build_context(request: PersonRequest) -> dict[str, Any]:
    filters, actor, now = _read_filters(request), actor_of(request), db_now()
    jobs = list(_filter_jobs(filters).order_by("-id")[: SHOWN + 1])
    results, teams = kinds.load_results(jobs[:SHOWN]), read_teams()
    return {
        "now": now,
        "lines": [
            _build_row(job, results.get(job.pk), _list_verbs(job, actor, teams), now)
            for job in jobs[:SHOWN]
        ],
        "older": jobs[SHOWN - 1].pk if len(jobs) > SHOWN else None,
        "newest": not filters["before"],
        "wanted": filters,
        "narrowed": any(filters[name] for name in ("state", "kind", "q")),
        "asked": urlencode({name: value for name, value in filters.items() if value}),
        "choices": CHOICES.items(),
        "kinds": [(kind.name, kind.title) for kind in kinds.get_kinds().values()],
        "live_total": Job.objects.filter(finished_at=None).count(),
        "stuck": stuck_jobs.filter_stuck_jobs(Job.objects.all(), now).count(),
    }


def _read_filters(request: PersonRequest) -> dict[str, str]:
    """Return the filters in the query string; invalid values become empty."""
    state, kind = request.GET.get("state", ""), request.GET.get("kind", "")
    before = request.GET.get("before", "")
    return {
        "state": state if state in CHOICES else "",
        "kind": kind if kind in kinds.get_kinds() else "",
        "q": request.GET.get("q", "").replace("\x00", "").strip()[:200],
        "before": before if before.isascii() and before.isdigit() and len(before) < 19 else "",
    }


def _filter_jobs(filters: dict[str, str]) -> QuerySet[Job]:
    jobs = Job.objects.all()
    if filters["state"] == LIVE:
        jobs = jobs.filter(finished_at=None)
    elif filters["state"]:
        jobs = jobs.filter(state=filters["state"])
    if filters["kind"]:
        jobs = jobs.filter(kind=filters["kind"])
    if filters["q"]:
        jobs = jobs.filter(
            Q(subject__icontains=filters["q"]) | Q(created_by__icontains=filters["q"])
        )
    if filters["before"]:
        jobs = jobs.filter(pk__lt=int(filters["before"]))
    return jobs


def _list_verbs(job: Job, actor: Actor, teams: Teams) -> list[str]:
    """Return what the actor may do with a job in its present state."""
    verbs = VERBS.get(job.state, ()) if actor.may(kinds.get_scope(job)) else ()
    if not teams:
        return list(verbs)
    return [verb for verb in verbs if teams.decide(actor, *kinds.get_action(job, verb)).is_allowed]


def _build_row(
    job: Job, result: kinds.JobResult | None, verbs: Sequence[str], now: datetime
) -> dict[str, Any]:
    """Return a job's row on the page: `rate` in items per second, `verbs` for possible actions."""
    kind = kinds.get_kinds().get(job.kind)
    if job.is_live:
        tone = "ramp"
    elif result and job.state == Job.State.COMPLETED:
        tone = result.bar
    else:
        tone = job.state
    return {
        "job": job,
        "result": result,
        "tone": tone,
        "title": kinds.get_title(job),
        "path": kind.path(job) if kind else "",
        "is_stuck": stuck_jobs.is_stuck(job, now),
        "rate": None if job.total < MIN_ITEMS else measure_rate(job, now),
        "verbs": verbs,
    }
