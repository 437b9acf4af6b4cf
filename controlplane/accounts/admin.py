"""Django admin of people, tokens and browser sessions."""

from typing import Any, ClassVar

from axes.models import AccessAttempt
from django import forms
from django.contrib import admin, messages
from django.contrib.auth.password_validation import validate_password
from django.db.models import Model, QuerySet
from django.http import HttpRequest
from django.shortcuts import redirect

from controlplane.accounts.authentication.views.sign_in import sign_out
from controlplane.accounts.models import (
    AuthorityRule,
    BrowserSession,
    Credentials,
    DirectoryGroup,
    DirectoryUser,
    EmergencyCode,
    Membership,
    Ownership,
    Team,
    Token,
    TokenCaller,
    User,
)
from controlplane.core.admin.site import ReadOnly, Table, apply_to_each, register_read_only
from controlplane.core.clock import db_now
from controlplane.core.errors import DomainError, InvalidInput
from controlplane.core.http.confirmation import require_fresh
from controlplane.core.http.permissions import actor_of

from .people import services as people
from .people.forms import remember_opened
from .tokens import services as tokens

admin.site.logout = lambda request, extra_context=None: sign_out(request)  # type: ignore[method-assign, assignment, return-value]


@admin.register(Token)
class TokenAdmin(ReadOnly):
    """Django admin of API tokens, which can be revoked here, but not created."""

    list_display = (
        "name", "prefix", "owner", "team", "scopes", "created_at", "expires_at", "revoked_at",
        "last_used_at",
    )  # fmt: skip
    list_select_related = ("owner", "team")
    exclude = ("digest",)
    search_fields = ("name", "=prefix", "owner__username")
    ordering = ("-id",)
    actions = ("revoke",)

    @admin.action(description="Revoke selected tokens", permissions=["view"])
    def revoke(self, request: HttpRequest, chosen: QuerySet[Token]) -> None:
        actor, now = actor_of(request), db_now()
        require_fresh(request, now, next_url=request.get_full_path())
        apply_to_each(
            self,
            request,
            chosen,
            lambda token: tokens.revoke_token(
                token=token, actor=actor, now=now, reason="Revoked in Django's admin."
            ),
            "revoked; programs that use them are refused within a second.",
        )


register_read_only(Credentials, "id revision")
register_read_only(
    TokenCaller,
    "id token service used_at refused_at",
    order="token service",
    search="=service",
    related="token",
)
register_read_only(
    Team,
    "id slug name parent member_group lead_group",
    order="slug",
    search="slug name",
    related="parent",
)
register_read_only(
    Membership, "id team user role source", order="id", filters="role source", related="team user"
)
register_read_only(Ownership, "id pattern team", order="pattern", search="pattern", related="team")
register_read_only(
    AuthorityRule, "id action kind relation role", order="action kind", filters="action"
)
register_read_only(DirectoryUser, "user external_id changed_at", order="user", related="user")
register_read_only(DirectoryGroup, "id name external_id changed_at", order="name", search="name")


@admin.register(EmergencyCode)
class EmergencyCodeAdmin(ReadOnly):
    list_display = ("user", "created_at", "revoked_at", "last_used_at")
    list_select_related = ("user",)
    exclude = ("salt", "digest")
    search_fields = ("user__username",)
    ordering = ("-id",)


@admin.register(BrowserSession)
class BrowserSessionAdmin(ReadOnly):
    list_display = ("user", "ip", "method", "started_at", "last_seen_at", "expire_date")
    list_select_related = ("user",)
    exclude = ("session_key", "session_data")
    search_fields = ("user__username", "=ip")
    ordering = ("-last_seen_at",)


@admin.register(AccessAttempt)
class AccessAttemptAdmin(ReadOnly):
    """Read-only Django admin of failed sign-ins; `manage.py person unlock` resets them."""

    list_display = ("username", "ip_address", "failures_since_start", "attempt_time")
    exclude = ("get_data", "post_data", "user_agent", "http_accept", "path_info")
    search_fields = ("username", "=ip_address")
    ordering = ("-attempt_time",)


class UserForm(forms.ModelForm):  # type: ignore[type-arg]
    """Django admin's form of a person; it can set the password, but never shows it."""

    new_password = forms.CharField(
        required=False,
        strip=False,
        widget=forms.PasswordInput(attrs={"autocomplete": "new-password"}),
        help_text="Required for a new person. Leave empty to keep an existing password.",
    )

    class Meta:
        model = User
        fields = (
            "username", "display_name", "email", "slack_user_id", "role", "time_zone", "is_active",
        )  # fmt: skip
        help_texts: ClassVar[dict[str, str]] = {
            "slack_user_id": "Slack member ID (profile, ⋮, Copy member ID). "
            "Slack buttons pressed by this member count as this person's actions.",
            "email": "Address for messages to this person.",
        }

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        remember_opened(self)

    def clean_slack_user_id(self) -> str:
        try:
            return people.validate_slack_user_id(
                self.cleaned_data["slack_user_id"],
                of=None if self.instance._state.adding else self.instance,
            )
        except InvalidInput as error:
            raise forms.ValidationError(error.errors["slack_user_id"]) from error

    def clean_new_password(self) -> str:
        password: str = self.cleaned_data["new_password"]
        if password:
            validate_password(password, self.instance)
        elif self.instance._state.adding:
            raise forms.ValidationError("Enter a first password.")
        return password


@admin.register(User)
class UserAdmin(Table):
    form = UserForm
    list_display = (
        "username", "display_name", "role", "email", "slack_user_id", "time_zone", "is_active",
        "last_login",
    )  # fmt: skip
    list_filter = ("role", "is_active")
    search_fields = ("username", "display_name", "email", "=slack_user_id")
    ordering = ("username",)
    actions = ("deactivate",)

    def has_delete_permission(self, request: HttpRequest, obj: Model | None = None) -> bool:
        """Return False: audit entries refer to people, who are deactivated instead of deleted."""
        return False

    def get_readonly_fields(self, request: HttpRequest, obj: User | None = None) -> tuple[str, ...]:
        return ("username", "last_login", "created_at") if obj else ()

    def save_model(self, request: HttpRequest, obj: User, form: Any, change: bool) -> None:
        actor, now = actor_of(request), db_now()
        values = dict(form.cleaned_data)
        password = values.pop("new_password")
        if not change:
            active = values.pop("is_active")
            created = people.create_user(
                password=password, must_change_password=True, actor=actor, now=now, **values
            )
            obj.pk = created.pk
            obj._state.adding = False
            if not active:
                people.change_user(user=created, actor=actor, now=now, is_active=False)
            return
        changes = {name: values[name] for name in form.changed_data if name in values}
        if changes:
            people.change_user(user=obj, actor=actor, now=now, **changes)
        if password:
            people.set_password(
                user=obj,
                password=password,
                must_change=obj.pk != actor.user_id,
                actor=actor,
                now=now,
            )

    def changeform_view(self, request: HttpRequest, *args: Any, **kwargs: Any) -> Any:
        """Show or save the form of a person; if the change is refused, show it with the reason."""
        # Otherwise, another person at an open browser could create an admin or set a password.
        require_fresh(request, db_now())
        try:
            return super().changeform_view(request, *args, **kwargs)
        except DomainError as error:
            self.message_user(request, error.detail, messages.ERROR)
            return redirect(request.path)

    @admin.action(description="Deactivate selected people")
    def deactivate(self, request: HttpRequest, chosen: QuerySet[User]) -> None:
        actor, now = actor_of(request), db_now()
        require_fresh(request, now, next_url=request.get_full_path())
        apply_to_each(
            self,
            request,
            chosen,
            lambda user: people.change_user(user=user, actor=actor, now=now, is_active=False),
            "deactivated; they and their tokens are refused from now on.",
        )
