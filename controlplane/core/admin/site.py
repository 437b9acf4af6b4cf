"""Shared parts of the admin pages: the sign-in, read-only tables and bulk actions.

Only admins (`User.is_staff`) have access. The console's sign-in and preferences replace Django's
sign-in, sign-out and password pages, which would write no audit rows.
"""

from collections.abc import Callable
from typing import Any

import allauth.account.admin
import allauth.mfa.admin
import allauth.socialaccount.admin  # noqa: F401
import django.contrib.auth.admin  # noqa: F401
from allauth.account.models import EmailAddress
from allauth.mfa.models import Authenticator
from allauth.socialaccount.models import SocialAccount, SocialApp, SocialToken
from django.contrib import admin, messages
from django.contrib.auth.models import Group
from django.contrib.auth.views import redirect_to_login
from django.core.exceptions import PermissionDenied
from django.db.models import Model, QuerySet
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.views.decorators.cache import never_cache

from controlplane.core.errors import DomainError


def _sign_in(request: HttpRequest, extra_context: object = None) -> HttpResponse:
    """The admin's sign-in page: redirects to the console's, or refuses a signed-in non-admin."""
    if request.user.is_authenticated:
        raise PermissionDenied("The administration requires the role admin.")
    return redirect_to_login(request.GET.get("next", "/admin/"))


@never_cache
def _redirect_to_preferences(request: HttpRequest, extra_context: object = None) -> HttpResponse:
    return redirect("preferences")


admin.site.unregister(Group)  # Permissions follow from the role alone.
# Second factors and links to the provider are not for editing; they hold sealed secrets.
admin.site.unregister([Authenticator, EmailAddress, SocialAccount, SocialApp, SocialToken])
admin.site.site_header = "Switchgear administration"
admin.site.site_title = "Switchgear"
admin.site.index_title = "Tables"
admin.site.login = _sign_in  # type: ignore[method-assign]
admin.site.password_change = _redirect_to_preferences  # type: ignore[method-assign, assignment]
admin.site.password_change_done = _redirect_to_preferences  # type: ignore[method-assign, assignment]


class Table(admin.ModelAdmin):  # type: ignore[type-arg]
    """A `ModelAdmin` that accepts only filters of its `list_filter` from the query string.

    Django accepts filters on any column, so a user could guess a hidden value letter by letter.
    """

    def lookup_allowed(self, lookup: str, value: str, request: HttpRequest) -> bool:
        offered = [one for one in self.get_list_filter(request) if isinstance(one, str)]
        is_offered = any(lookup == one or lookup.startswith(f"{one}__") for one in offered)
        return is_offered and super().lookup_allowed(lookup, value, request)


class ReadOnly(Table):
    """An admin table whose rows can't be added, changed or deleted."""

    show_full_result_count = False
    list_per_page = 50

    def has_add_permission(self, request: HttpRequest, obj: Model | None = None) -> bool:
        return False

    has_change_permission = has_delete_permission = has_add_permission


def register_read_only(
    model: type[Model],
    columns: str,
    *,
    order: str = "",
    filters: str = "",
    search: str = "",
    related: str = "",
) -> None:
    """Register a read-only admin page for `model`; field names are separated by spaces."""
    options = {
        "list_display": columns,
        "ordering": order,
        "list_filter": filters,
        "search_fields": search,
        "list_select_related": related,
    }
    present = {name: tuple(names.split()) for name, names in options.items() if names}
    admin.site.register(model, type(f"{model.__name__}Admin", (ReadOnly,), present))


def apply_to_each(
    model_admin: "admin.ModelAdmin[Any]",
    request: HttpRequest,
    chosen: QuerySet[Any],
    carry_out: Callable[[Any], object],
    done: str,
) -> None:
    """Run `carry_out` on each selected row and show how many succeeded and which failed.

    `done` is the rest of the success message, which begins with the number of rows.
    """
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
