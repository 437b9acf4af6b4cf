"""Django's admin over core's tables. History is only read; everything else goes through services.

Only admins enter (`User.is_staff`), by the same sign-in as every other page: the admin's own
sign-in, sign-out and password pages would leave no audit rows.
"""

from collections.abc import Callable
from typing import Any

import django.contrib.auth.admin  # noqa: F401 - registers Group, which then goes
from django import forms
from django.contrib import admin, messages
from django.contrib.auth.models import Group
from django.contrib.auth.password_validation import validate_password
from django.contrib.auth.views import redirect_to_login
from django.core.exceptions import PermissionDenied
from django.db.models import Model, QuerySet
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect

from controlplane.core.clock import db_now
from controlplane.core.errors import DomainError
from controlplane.core.http.authentication import actor_of
from controlplane.core.models import (
    Acknowledgement,
    AnsweredRequest,
    Approval,
    Attempt,
    AuditEntry,
    Credentials,
    Escalation,
    EscalationStep,
    Heartbeat,
    IdempotencyKey,
    Instance,
    OnCallMember,
    OutboxMessage,
    Pace,
    Route,
    Target,
    Thread,
    Tick,
    Token,
    User,
)
from controlplane.core.people import services as people
from controlplane.core.people.views import sign_out
from controlplane.core.tokens import services as tokens


def _sign_in(request: HttpRequest, extra_context: object = None) -> HttpResponse:
    """To the one sign-in; a person who is signed in already and no admin is told so."""
    if request.user.is_authenticated:
        raise PermissionDenied("The administration takes the role admin.")
    return redirect_to_login(request.GET.get("next", "/admin/"))


def _password(request: HttpRequest, extra_context: object = None) -> HttpResponse:
    return redirect("preferences")


def _sign_out(request: HttpRequest, extra_context: object = None) -> HttpResponse:
    return sign_out(request)


admin.site.unregister(Group)  # What a person may do follows from the role alone.
admin.site.site_header = "Switchgear administration"
admin.site.site_title = "Switchgear"
admin.site.index_title = "Tables"
admin.site.login = _sign_in  # type: ignore[method-assign]
admin.site.logout = _sign_out  # type: ignore[method-assign, assignment]
admin.site.password_change = _password  # type: ignore[method-assign, assignment]


class ReadOnly(admin.ModelAdmin):  # type: ignore[type-arg]
    """A table that is looked at: nothing is added, changed or deleted here."""

    show_full_result_count = False
    list_per_page = 50

    def has_add_permission(self, request: HttpRequest, obj: Model | None = None) -> bool:
        return False

    def has_change_permission(self, request: HttpRequest, obj: Model | None = None) -> bool:
        return False

    def has_delete_permission(self, request: HttpRequest, obj: Model | None = None) -> bool:
        return False


def each(
    model_admin: "admin.ModelAdmin[Any]",
    request: HttpRequest,
    chosen: QuerySet[Any],
    carry_out: Callable[[Any], object],
    done: str,
) -> None:
    """Carry out an action on each chosen row, and say how many went well and what did not."""
    count = 0
    for row in chosen:
        try:
            carry_out(row)
        except DomainError as error:
            model_admin.message_user(request, f"{row}: {error.detail}", messages.ERROR)
        else:
            count += 1
    if count:
        model_admin.message_user(request, f"{count} {done}", messages.SUCCESS)


@admin.register(AuditEntry)
class AuditEntryAdmin(ReadOnly):
    list_display = ("id", "at", "actor_type", "actor_name", "action", "target", "reason")
    search_fields = ("=target", "=action", "=actor_name")
    ordering = ("-id",)


@admin.register(OutboxMessage)
class OutboxMessageAdmin(ReadOnly):
    list_display = (
        "id", "event", "destination", "state", "attempts", "next_attempt_at", "last_error",
    )  # fmt: skip
    list_filter = ("state", "destination")
    ordering = ("-id",)


@admin.register(Attempt)
class AttemptAdmin(ReadOnly):
    list_display = ("id", "message", "number", "started_at", "finished_at", "outcome", "error")
    list_filter = ("outcome",)
    list_select_related = ("message",)
    ordering = ("-id",)


@admin.register(Thread)
class ThreadAdmin(ReadOnly):
    list_display = ("id", "destination", "subject", "channel", "ts", "created_at")
    search_fields = ("=subject",)
    ordering = ("-id",)


@admin.register(Pace)
class PaceAdmin(ReadOnly):
    list_display = ("destination", "paced_until", "keep_away_until")
    ordering = ("destination",)


@admin.register(Target)
class TargetAdmin(ReadOnly):
    """Edited on the targets page; secrets are shown nowhere."""

    list_display = ("id", "name", "kind", "user", "email", "slack_user_id", "address")
    exclude = ("webhook_secret", "webhook_url")
    list_filter = ("kind",)
    list_select_related = ("user",)
    ordering = ("name",)


@admin.register(OnCallMember)
class OnCallMemberAdmin(ReadOnly):
    list_display = ("id", "rotation", "position", "person")
    list_select_related = ("rotation", "person")
    ordering = ("rotation", "position")


@admin.register(EscalationStep)
class EscalationStepAdmin(ReadOnly):
    list_display = ("id", "escalation", "position", "after_minutes", "target")
    list_select_related = ("escalation", "target")
    ordering = ("escalation", "position")


@admin.register(Route)
class RouteAdmin(ReadOnly):
    list_display = ("id", "event", "scope", "severity", "target", "created_at")
    list_select_related = ("target",)
    ordering = ("id",)


@admin.register(Escalation)
class EscalationAdmin(ReadOnly):
    list_display = (
        "id", "subject", "severity", "opened_at", "step", "notices", "next_at", "acknowledged_by",
        "closed_at",
    )  # fmt: skip
    list_filter = ("severity",)
    search_fields = ("=subject",)
    ordering = ("-id",)


@admin.register(AnsweredRequest)
class AnsweredRequestAdmin(ReadOnly):
    list_display = ("digest", "at")
    ordering = ("-at",)


@admin.register(Approval)
class ApprovalAdmin(ReadOnly):
    """Decided on the approvals page, where the rules of who may are."""

    list_display = ("id", "kind", "target", "state", "requested_by", "requested_at", "decided_by")
    list_filter = ("state", "kind")
    ordering = ("-id",)


@admin.register(IdempotencyKey)
class IdempotencyKeyAdmin(ReadOnly):
    list_display = ("id", "actor", "method", "path", "key", "status", "created_at")
    search_fields = ("=key", "=actor")
    ordering = ("-id",)


@admin.register(Instance)
class InstanceAdmin(ReadOnly):
    list_display = (
        "id", "heard_at", "applied_epoch", "applied_version", "reported_at", "config_version",
    )  # fmt: skip
    search_fields = ("=id", "=service")
    ordering = ("id",)


@admin.register(Acknowledgement)
class AcknowledgementAdmin(ReadOnly):
    list_display = ("id", "acknowledged_at", "instance", "epoch", "version")
    search_fields = ("=instance",)
    ordering = ("-id",)


@admin.register(Credentials)
class CredentialsAdmin(ReadOnly):
    list_display = ("id", "revision")


@admin.register(Tick)
class TickAdmin(ReadOnly):
    list_display = ("name", "ran_at", "ran_by")


@admin.register(Heartbeat)
class HeartbeatAdmin(ReadOnly):
    list_display = ("name", "at")


@admin.register(Token)
class TokenAdmin(ReadOnly):
    """Tokens are made by `manage.py token create`, which prints them once; here they end."""

    list_display = (
        "name", "prefix", "owner", "scopes", "created_at", "expires_at", "revoked_at",
        "last_used_at",
    )  # fmt: skip
    list_select_related = ("owner",)
    exclude = ("digest",)
    search_fields = ("name", "=prefix", "owner__username")
    ordering = ("-id",)
    actions = ("revoke",)

    @admin.action(description="Revoke the chosen tokens", permissions=["view"])
    def revoke(self, request: HttpRequest, chosen: QuerySet[Token]) -> None:
        actor, now = actor_of(request), db_now()
        each(
            self,
            request,
            chosen,
            lambda token: tokens.revoke(
                token=token, actor=actor, now=now, reason="Revoked in the administration."
            ),
            "revoked; programs that use them are refused within a second.",
        )


class UserForm(forms.ModelForm):  # type: ignore[type-arg]
    """A person; the password is only ever written, never shown."""

    new_password = forms.CharField(
        required=False,
        strip=False,
        widget=forms.PasswordInput(attrs={"autocomplete": "new-password"}),
        help_text="Needed for a new person; empty leaves a present one's password as it is.",
    )

    class Meta:
        model = User
        fields = ("username", "display_name", "email", "role", "time_zone", "is_active")

    def clean_new_password(self) -> str:
        given: str = self.cleaned_data["new_password"]
        if given:
            validate_password(given, self.instance)
        elif self.instance._state.adding:
            raise forms.ValidationError("Give a first password.")
        return given


@admin.register(User)
class UserAdmin(admin.ModelAdmin):  # type: ignore[type-arg]
    form = UserForm
    list_display = ("username", "display_name", "role", "time_zone", "is_active", "last_login")
    list_filter = ("role", "is_active")
    search_fields = ("username", "display_name", "email")
    ordering = ("username",)
    actions = ("deactivate",)

    def has_delete_permission(self, request: HttpRequest, obj: Model | None = None) -> bool:
        """Who did something stays known: people are deactivated, never deleted."""
        return False

    def get_readonly_fields(self, request: HttpRequest, obj: User | None = None) -> tuple[str, ...]:
        return ("username", "last_login", "created_at") if obj else ()

    def save_model(self, request: HttpRequest, obj: User, form: Any, change: bool) -> None:
        actor, now = actor_of(request), db_now()
        given = dict(form.cleaned_data)
        password = given.pop("new_password")
        if not change:
            active = given.pop("is_active")
            made = people.create_user(password=password, actor=actor, now=now, **given)
            obj.pk = made.pk
            obj._state.adding = False
            if not active:
                people.change_user(user=made, actor=actor, now=now, is_active=False)
            return
        changes = {name: given[name] for name in form.changed_data if name in given}
        if changes:
            people.change_user(user=obj, actor=actor, now=now, **changes)
        if password:
            people.set_password(user=obj, password=password, actor=actor, now=now)

    def changeform_view(self, request: HttpRequest, *args: Any, **kwargs: Any) -> Any:
        """A rule that refuses, such as the last admin's, is told on the form's own page."""
        try:
            return super().changeform_view(request, *args, **kwargs)
        except DomainError as error:
            self.message_user(request, error.detail, messages.ERROR)
            return redirect(request.path)

    @admin.action(description="Deactivate the chosen people")
    def deactivate(self, request: HttpRequest, chosen: QuerySet[User]) -> None:
        actor, now = actor_of(request), db_now()
        each(
            self,
            request,
            chosen,
            lambda user: people.change_user(user=user, actor=actor, now=now, is_active=False),
            "deactivated; they and their tokens are refused from now on.",
        )
