"""Django admin of switches; every change calls a function of :mod:`switches.services`."""

from typing import Any

from django.contrib import admin, messages
from django.db.models import Model, QuerySet, URLField
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.template.response import TemplateResponse

from controlplane.core import reasons
from controlplane.core.admin import Table, apply_to_each, register_read_only
from controlplane.core.clock import db_now
from controlplane.core.errors import DomainError
from controlplane.core.http.permissions import actor_of
from switches import services
from switches.models import (
    Drill,
    DrillMark,
    DrillSchedule,
    EmergencyOrder,
    Episode,
    LostChange,
    LostVersion,
    Publication,
    PublishedVersion,
    Ramp,
    Rule,
    Switch,
    TeamReport,
    Trip,
    TripPolicy,
    WeeklyReport,
)
from switches.scopes import GLOBAL

from .confirmation import require_confirmation
from .services.registration import DESCRIPTIVE

register_read_only(Publication, "id epoch version published_at", order="id")
register_read_only(
    Episode,
    "id switch engaged_by_name engaged_at expires_at permanent on_expiry overdue_at ended_at "
    "ended_how ended_by",
    order="-id",
    filters="ended_how permanent on_expiry",
    search="switch__id reason =engaged_by_name",
    related="switch",
)
register_read_only(
    EmergencyOrder,
    "id at action switch by_name plane state received_at closed_at",
    order="-at",
    filters="action state",
    search="=switch =by_name",
)
register_read_only(
    PublishedVersion, "version epoch published_at timeline", order="-id", search="=version"
)
register_read_only(
    LostVersion,
    "version epoch published_at plane received_at closed_at closed_version",
    order="-id",
)
register_read_only(
    LostChange,
    "id lost_version episode was_engaged description kept_at kept_by",
    order="-id",
    related="lost_version episode",
)
register_read_only(Rule, "name kind switches n created_by changed_at", order="name", filters="kind")
register_read_only(
    TripPolicy, "position trigger sources scopes gate budget_per_hour", order="position"
)
register_read_only(
    Trip,
    "id at switch source fingerprint outcome repeats by",
    order="-id",
    filters="outcome",
    search="=switch =fingerprint",
)
register_read_only(
    WeeklyReport, "week generated_at final sent_at signed_by signed_at", order="-week"
)
register_read_only(
    TeamReport,
    "week team generated_at final sent_at signed_by signed_at",
    order="-week",
    filters="team",
)
register_read_only(
    Ramp,
    "job switch episode requested_by_name automatic live blind_since",
    order="-job_id",
    filters="live automatic",
    search="=switch__id",
    related="job switch episode",
)
register_read_only(
    Drill,
    "job switch mode scheduled live passed engaged_at released_at",
    order="-job_id",
    filters="mode passed live",
    search="=switch__id",
    related="job switch",
)
register_read_only(DrillMark, "pattern created_at created_by", order="pattern")
register_read_only(
    DrillSchedule,
    "switch mode every_days next_at reason created_by",
    order="next_at",
    related="switch",
)


@admin.register(Switch)
class SwitchAdmin(Table):
    """Admin pages of switches; only owner, description and runbook can be edited."""

    list_display = ("id", "state_now", "owner", "version", "last_proven_at", "registered_at")
    list_filter = ("scope",)
    search_fields = ("id", "owner", "description")
    ordering = ("id",)
    fields = ("id", "state_now", *DESCRIPTIVE, "version", "last_proven_at", "registered_at")
    readonly_fields = ("id", "state_now", "version", "last_proven_at", "registered_at")
    actions = ("release", "acknowledge")
    formfield_overrides = {URLField: {"assume_scheme": "https"}}

    def has_add_permission(self, request: HttpRequest) -> bool:
        return False

    def has_delete_permission(self, request: HttpRequest, obj: Model | None = None) -> bool:
        return False

    def get_queryset(self, request: HttpRequest) -> QuerySet[Switch]:
        return Switch.objects.with_open_episode()

    @admin.display(description="state")
    def state_now(self, switch: Switch) -> str:
        episode = switch.episode
        return "overdue" if episode and episode.overdue else switch.state.value

    def save_model(self, request: HttpRequest, obj: Switch, form: Any, change: bool) -> None:
        changes = {name: form.cleaned_data[name] for name in form.changed_data}
        if changes:
            services.describe(
                scope=obj.scope, key=obj.key, changes=changes, actor=actor_of(request), now=db_now()
            )

    def changeform_view(self, request: HttpRequest, *args: Any, **kwargs: Any) -> Any:
        try:
            return super().changeform_view(request, *args, **kwargs)
        except DomainError as error:
            self.message_user(request, error.detail, messages.ERROR)
            return redirect(request.path)

    @admin.action(description="Release selected switches…")
    def release(self, request: HttpRequest, chosen: QuerySet[Switch]) -> HttpResponse | None:
        """Ask for a justification on a separate page, then release each selected switch."""
        if chosen.filter(scope=GLOBAL.name).exists():
            require_confirmation(request, GLOBAL.name, db_now(), next_url=request.get_full_path())
        justification = request.POST.get("justification", "").strip()
        problems = (
            reasons.find_text_problems(justification) if "justification" in request.POST else []
        )
        if "justification" not in request.POST or problems:
            context = {
                **self.admin_site.each_context(request),
                "title": "Release switches",
                "opts": self.opts,
                "chosen": chosen,
                "justification": justification,
                "problems": problems,
            }
            return TemplateResponse(request, "admin/release_switches.html", context)
        actor, now = actor_of(request), db_now()
        apply_to_each(
            self,
            request,
            chosen,
            lambda switch: services.release(
                scope=switch.scope,
                key=switch.key,
                justification=justification,
                actor=actor,
                now=now,
            ),
            "released by ramp, or requested where a second person must approve.",
        )
        return None

    @admin.action(description="Acknowledge selected switches")
    def acknowledge(self, request: HttpRequest, chosen: QuerySet[Switch]) -> None:
        actor, now = actor_of(request), db_now()
        apply_to_each(
            self,
            request,
            chosen,
            lambda switch: services.acknowledge(
                scope=switch.scope, key=switch.key, actor=actor, now=now
            ),
            "acknowledged.",
        )
