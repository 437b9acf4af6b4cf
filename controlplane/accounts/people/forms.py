"""Forms for signing in, preferences, and the administration of people."""

from collections.abc import Sequence
from functools import cache
from typing import Any, cast
from zoneinfo import available_timezones

from django import forms
from django.contrib.auth.forms import AuthenticationForm, SetPasswordForm, UsernameField

from controlplane.accounts.models.people import User
from controlplane.core.change_views import ServiceForm
from controlplane.core.roles import Role

# Aliases such as `US/Pacific` or `GB` stay valid, but aren't listed.
REGIONS = (
    "Africa/", "America/", "Antarctica/", "Arctic/", "Asia/", "Atlantic/", "Australia/", "Europe/",
    "Indian/", "Pacific/",
)  # fmt: skip


class SignInForm(AuthenticationForm):
    """Django's sign-in form, with the user name limited to the length of its column."""

    username = UsernameField(max_length=150)


class NewPasswordForm(SetPasswordForm):  # type: ignore[type-arg]
    """Django's form for a new password; it refuses the present one if someone else knows that."""

    def clean_new_password1(self) -> str:
        password: str = self.cleaned_data["new_password1"]
        if self.user.must_change_password and self.user.check_password(password):
            raise forms.ValidationError("This is the password you were given. Choose another one.")
        return password


class PreferencesForm(ServiceForm):
    display_name = forms.CharField(max_length=150, required=False)
    time_zone = forms.ChoiceField()

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        field = cast(forms.ChoiceField, self.fields["time_zone"])
        field.choices = list_zone_choices(self.initial.get("time_zone", "UTC"))


ABOUT_ROLES = {
    Role.VIEWER: "sees everything, changes nothing",
    Role.OPERATOR: "engages and releases switches, handles ramps and dead letters",
    Role.APPROVER: "also approves requests of others",
    Role.ADMIN: "also manages people, tokens and rules",
}


class PersonForm(PreferencesForm):
    """An admin's form of a person; only fields that the admin has changed are saved."""

    email = forms.EmailField(required=False)
    slack_user_id = forms.CharField(max_length=40, required=False)
    role = forms.ChoiceField(choices=[(role.value, words) for role, words in ABOUT_ROLES.items()])

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        remember_opened(self)

    def opened_with(self) -> list[tuple[str, Any]]:
        """Return names and values of the hidden fields: the values when the form was opened."""
        names = [(field.html_initial_name, field.initial) for field in self]
        return [(name, self.data.get(name, initial)) for name, initial in names]


class NewPersonForm(PersonForm):
    username = UsernameField(max_length=150)


class LeavingForm(forms.Form):
    """A form to choose who takes over the tokens of a person to be deactivated, if anybody."""

    heir = forms.ModelChoiceField(User.objects.none(), required=False)

    def __init__(self, heirs: Sequence[User], *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        field = cast("forms.ModelChoiceField[User]", self.fields["heir"])
        field.queryset = User.objects.filter(pk__in=[each.pk for each in heirs])


def remember_opened(form: forms.BaseForm) -> None:
    """Let the form render each field's initial value in a hidden field, to detect changes."""
    for field in form.fields.values():
        field.show_hidden_initial = True


def list_zone_choices(present: str) -> list[tuple[str, str]]:
    return [
        (zone, zone.replace("_", " ")) for zone in sorted(_list_regional_zones() | {"UTC", present})
    ]


@cache
def _list_regional_zones() -> frozenset[str]:
    """Return the time zones with a name such as `Europe/Berlin`; cached, as listing is slow."""
    return frozenset(zone for zone in available_timezones() if zone.startswith(REGIONS))
