"""Django admin of switches; services perform every change, so no state is edited directly."""

from typing import Any

from django.contrib import admin, messages
from django.db.models import Model, QuerySet, URLField
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.template.response import TemplateResponse

from controlplane.core import reasons
from controlplane.core.admin import ReadOnly, Table, apply_to_each
from controlplane.core.clock import db_now
from controlplane.core.errors import DomainError
from controlplane.core.http.permissions import actor_of
from switches import services
from switches.drills import admin as drills_admin  # noqa: F401 - its tables join these
from switches.models import Episode, Publication, Rule, Switch, Trip, TripPolicy, WeeklyReport
from switches.ramps import admin as ramps_admin  # noqa: F401
from switches.scopes import GLOBAL

from .confirmation import require_confirmation
from .services.registration import DESCRIPTIVE


@admin.register(Publication)
class PublicationAdmin(ReadOnly):
    list_display = ("id", "epoch", "version", "published_at")


@admin.register(Episode)
class EpisodeAdmin(ReadOnly):
    list_display = (
        "id", "switch", "engaged_by_name", "engaged_at", "expires_at", "permanent", "on_expiry",
        "overdue_at", "ended_at", "ended_how", "ended_by",
    )  # fmt: skip
    list_filter = ("ended_how", "permanent", "on_expiry")
    search_fields = ("switch__id", "reason", "=engaged_by_name")
    list_select_related = ("switch",)
    ordering = ("-id",)


@admin.register(Rule)
class RuleAdmin(ReadOnly):
    list_display = ("name", "kind", "switches", "n", "created_by", "changed_at")
    list_filter = ("kind",)
    ordering = ("name",)


@admin.register(TripPolicy)
class TripPolicyAdmin(ReadOnly):
    list_display = ("position", "trigger", "sources", "scopes", "gate", "budget_per_hour")
    ordering = ("position",)


@admin.register(Trip)
class TripAdmin(ReadOnly):
    list_display = ("id", "at", "switch", "source", "fingerprint", "outcome", "repeats", "by")
    list_filter = ("outcome",)
    search_fields = ("=switch", "=fingerprint")
    ordering = ("-id",)


@admin.register(WeeklyReport)
class WeeklyReportAdmin(ReadOnly):
    list_display = ("week", "generated_at", "final", "sent_at", "signed_by", "signed_at")
    ordering = ("-week",)


@admin.register(Switch)
class SwitchAdmin(Table):
    """Switches whose owner, description and runbook can be edited."""

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

    @admin.action(description="Release the chosen switches…")
    def release(self, request: HttpRequest, chosen: QuerySet[Switch]) -> HttpResponse | None:
        """Ask for a justification on a separate page, then release each selected switch."""
        if chosen.filter(scope=GLOBAL.name).exists():
            require_confirmation(request, GLOBAL.name, db_now(), next_url=request.get_full_path())
        given = request.POST.get("justification", "").strip()
        problems = reasons.find_text_problems(given) if "justification" in request.POST else []
        if "justification" not in request.POST or problems:
            context = {
                **self.admin_site.each_context(request),
                "title": "Release switches",
                "opts": self.opts,
                "chosen": chosen,
                "justification": given,
                "problems": problems,
            }
            return TemplateResponse(request, "admin/release_switches.html", context)
        actor, now = actor_of(request), db_now()
        apply_to_each(
            self,
            request,
            chosen,
            lambda switch: services.release(
                scope=switch.scope, key=switch.key, justification=given, actor=actor, now=now
            ),
            "released by ramp, or asked for where that takes a second person.",
        )
        return None

    @admin.action(description="Acknowledge the chosen switches")
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
