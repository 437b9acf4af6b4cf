"""What a person types to sign in, and may change about themselves."""

from typing import Any, cast
from zoneinfo import available_timezones

from django import forms
from django.contrib.auth.forms import AuthenticationForm, UsernameField

# Aliases such as `US/Pacific` or `GB` stay valid, but nobody has to scroll past them.
REGIONS = (
    "Africa/", "America/", "Antarctica/", "Arctic/", "Asia/", "Atlantic/", "Australia/", "Europe/",
    "Indian/", "Pacific/",
)  # fmt: skip


class SignInForm(AuthenticationForm):
    """Django's own, but a name that is too long for any column never reaches one."""

    username = UsernameField(max_length=150)


class PreferencesForm(forms.Form):
    """Name and time zone. The form only checks; the service writes."""

    display_name = forms.CharField(max_length=150, required=False)
    time_zone = forms.ChoiceField()

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        field = cast(forms.ChoiceField, self.fields["time_zone"])
        field.choices = zone_choices(self.initial.get("time_zone", "UTC"))


def zone_choices(present: str) -> list[tuple[str, str]]:
    """The time zones to choose from, and the one that is chosen already."""
    zones = {zone for zone in available_timezones() if zone.startswith(REGIONS)}
    return [(zone, zone.replace("_", " ")) for zone in sorted(zones | {"UTC", present})]
