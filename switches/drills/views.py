"""Page of drills, and forms to start and cancel drills and to mark instances."""

from collections.abc import Callable
from typing import Any

from django import forms
from django.http import Http404, HttpResponse
from django.urls import reverse
from django.views.decorators.http import require_GET, require_http_methods, require_POST

from controlplane.core.change_views import ServiceForm, attempt_change, submitted_data
from controlplane.core.clock import db_now
from controlplane.core.errors import DomainError
from controlplane.core.http.permissions import actor_of
from controlplane.core.page_responses import (
    PersonRequest,
    respond_done,
    show,
    show_refusal,
    signed_in,
)
from controlplane.core.reasons import MAX_CHARACTERS
from switches import page_updates
from switches.drills import marked_instances, presentation, queries, services
from switches.episodes import live_drills
from switches.models import Drill, DrillMark, DrillSchedule

SHOWN = 25
MARKS_SHOWN = 200
UNPROVEN_SHOWN = 50
CHOICES_SHOWN = 200
REPEATS = (
    ("", "Never"),
    ("7d", "Every week"),
    ("14d", "Every 2 weeks"),
    ("30d", "Every 30 days"),
    ("90d", "Every 90 days"),
)


class BeginForm(ServiceForm):
    """Fields of a new drill and its optional schedule."""

    renamed = {"scope": "switch", "key": "switch"}

    switch = forms.CharField(max_length=200, required=False)
    mode = forms.ChoiceField(
        choices=[(mode, mode) for mode in live_drills.MODES], initial=live_drills.LIVE
    )
    reason = forms.CharField(max_length=MAX_CHARACTERS * 2, required=False)
    every = forms.CharField(max_length=20, required=False)

    def service_arguments(self) -> dict[str, Any]:
        scope, _, key = self.get_text("switch").strip().partition(":")
        return {
            "scope": scope,
            "key": key,
            "mode": self.get_text("mode"),
            "reason": self.get_text("reason"),
        }


class MarkForm(ServiceForm):
    pattern = forms.CharField(max_length=300, required=False)


class CancelForm(ServiceForm):
    reason = forms.CharField(max_length=MAX_CHARACTERS, required=False)


@signed_in
@require_GET
def drills_page(request: PersonRequest) -> HttpResponse:
    head, now = page_updates.read_head_and_time()
    token = page_updates.build_minute_token(head, now)
    nothing_new = page_updates.respond_if_unchanged(request, token, now)
    if nothing_new is not None:
        return nothing_new
    before = page_updates.parse_id(request.GET.get("before", ""))
    rows = Drill.objects.select_related("job").prefetch_related("job__steps").order_by("-job_id")
    drills, older = page_updates.take_page(rows.filter(pk__lt=before) if before else rows, SHOWN)
    marks = list(DrillMark.objects.order_by("pattern")[: MARKS_SHOWN + 1])
    counts = marked_instances.count_by_pattern([mark.pattern for mark in marks], now)
    unproven = queries.find_unproven(now).order_by("pk")
    context = {
        "now": now,
        "head": token,
        "live": True,
        "drills": [presentation.build_drill_row(drill) for drill in drills],
        "older": older,
        "newest": not before,
        "marks": [(mark, counts[mark.pattern]) for mark in marks[:MARKS_SHOWN]],
        "more_marks": len(marks) > MARKS_SHOWN,
        "schedules": DrillSchedule.objects.select_related("switch").order_by("next_at", "pk"),
        "unproven": list(unproven[:UNPROVEN_SHOWN]),
        "unproven_total": unproven.count(),
    }
    return page_updates.render_page(request, "drills", context)


@signed_in
@require_http_methods(["GET", "POST"])
def new_drill(request: PersonRequest) -> HttpResponse:
    actor = actor_of(request)
    actor.require("switches:write")
    form = BeginForm(
        submitted_data(request), initial={"switch": request.GET.get("switch", "")[:200]}
    )
    now = db_now()

    def begin_drill() -> HttpResponse:
        every = form.get_text("every").strip() or None
        arguments = form.service_arguments()
        drill = services.begin_and_schedule(**arguments, every=every, actor=actor, now=now)
        path = f"{reverse('drills_page')}#drill-{drill.pk}"
        return respond_done(request, f"Drill of {drill.switch_id} started.", path)

    def get_context() -> dict[str, Any]:
        marked = marked_instances.read_marks()
        return {
            "marked": bool(marked),
            "present": marked_instances.list_reporting_instances(marked, now),
            "drillable": queries.list_released_switch_ids(CHOICES_SHOWN),
            "repeats": REPEATS,
        }

    return _handle_form(request, form, begin_drill, "switches/drill_new.html", get_context)


@signed_in
@require_http_methods(["GET", "POST"])
def cancel_drill(request: PersonRequest, drill_id: int) -> HttpResponse:
    actor = actor_of(request)
    actor.require("switches:write")
    drill = Drill.objects.select_related("job").filter(pk=drill_id).first()
    if drill is None:
        raise Http404
    form = CancelForm(submitted_data(request))

    def cancel() -> HttpResponse:
        reason = form.get_text("reason")
        services.cancel_drill(drill_id=drill_id, reason=reason, actor=actor, now=db_now())
        message = f"Drill of {drill.switch_id} canceled; its instances are released."
        return respond_done(request, message, reverse("drills_page"))

    return _handle_form(
        request, form, cancel, "switches/drill_cancel.html", lambda: {"drill": drill}
    )


@signed_in
@require_http_methods(["GET", "POST"])
def new_mark(request: PersonRequest) -> HttpResponse:
    actor = actor_of(request)
    services.require_approver(actor)
    form = MarkForm(submitted_data(request))

    def mark() -> HttpResponse:
        pattern = form.get_text("pattern")
        row, _ = services.mark_instances(pattern=pattern, actor=actor, now=db_now())
        message = f"{row.pattern} added to drills."
        return respond_done(request, message, reverse("drills_page"))

    def get_context() -> dict[str, Any]:
        return {"choices": marked_instances.list_choices(db_now(), CHOICES_SHOWN)}

    return _handle_form(request, form, mark, "switches/drill_mark.html", get_context)


@signed_in
@require_POST
def remove_mark(request: PersonRequest) -> HttpResponse:
    pattern = request.POST.get("pattern", "")
    done = f"{pattern} removed from drills."
    return _remove(request, done, services.remove_mark, pattern=pattern)


@signed_in
@require_POST
def remove_schedule(request: PersonRequest) -> HttpResponse:
    scope, _, key = request.POST.get("switch", "").partition(":")
    done = f"Schedule of {scope}:{key} removed."
    return _remove(request, done, services.remove_schedule, scope=scope, key=key)


def _remove(
    request: PersonRequest, done: str, service: Callable[..., None], **arguments: str
) -> HttpResponse:
    try:
        service(**arguments, actor=actor_of(request), now=db_now())
    except DomainError as error:
        return show_refusal(request, "Nothing changed", error, "drills_page")
    return respond_done(request, done, reverse("drills_page"))


def _handle_form(
    request: PersonRequest,
    form: ServiceForm,
    act: Callable[[], HttpResponse],
    template: str,
    get_context: Callable[[], dict[str, Any]] = dict,
) -> HttpResponse:
    """Call `act` for a valid form; show a form that is new or invalid, or that `act` refuses."""

    def show_form(refused: str = "") -> HttpResponse:
        context = {"form": form, "refused": refused, **get_context()}
        status = 409 if refused else 422 if form.is_bound else 200
        return show(request, template, context, status=status)

    response = attempt_change(form, act, lambda error: show_form(error.detail))
    return show_form() if response is None else response
