"""Forms to create, rotate, revoke and transfer tokens."""

from collections.abc import Sequence
from datetime import timedelta
from typing import Any

from django import forms

from controlplane.accounts.models.people import User
from controlplane.accounts.models.teams import Team
from controlplane.core.change_views import ServiceForm

# Scopes by area, each with its description.
AREAS: tuple[tuple[str, tuple[tuple[str, str], ...]], ...] = (
    (
        "Switches",
        (
            ("switches:read", "read switch states; services need it"),
            ("report:write", "report calls and breakers; services need it"),
            ("switches:write", "engage and release"),
            ("switches:trip", "trip switches from monitoring"),
            ("switches:emergency", "engage on any data plane, even while the console is down"),
            ("reports:read", "read the weekly reports"),
        ),
    ),
    (
        "Ramps",
        (("ramps:write", "start, advance and abort ramps"), ("gates:write", "set manual gates")),
    ),
    (
        "Breakers",
        (
            ("breakers:read", "read breakers and policies"),
            ("breakers:write", "force breakers, change policies"),
        ),
    ),
    (
        "Dead letters",
        (("dlq:read", "read letters"), ("dlq:write", "add, retry and discard letters")),
    ),
    ("SLOs", (("slo:read", "read SLOs and budgets"), ("slo:write", "send points, change SLOs"))),
    (
        "Configuration",
        (
            ("config:read", "export the whole configuration, with people's addresses"),
            ("config:write", "load the whole configuration"),
        ),
    ),
    ("Directory", (("scim", "provision people and groups by SCIM; it is a token's only scope"),)),
    ("Relays", (("relay", "follow a data plane, and report for the instances behind it"),)),
    (
        "Read-only",
        (("audit:read", "read the audit trail"), ("metrics:read", "scrape the metrics")),
    ),
)
LIFETIMES = (
    ("30", "30 days"),
    ("90", "90 days"),
    ("180", "180 days"),
    ("365", "a year"),
    ("", "never"),
)
OVERLAPS = (
    ("0", "at once"),
    ("1h", "after an hour"),
    ("24h", "after a day"),
    ("7d", "after 7 days"),
    ("30d", "after 30 days"),
)


class NewTokenForm(ServiceForm):
    name = forms.CharField(max_length=120)
    owner = forms.ModelChoiceField(User.objects.filter(is_active=True))
    scopes = forms.MultipleChoiceField(
        choices=[scope for _, scopes in AREAS for scope in scopes],
        error_messages={"required": "Choose at least one."},
    )
    services = forms.CharField(max_length=2000, required=False)
    team = forms.ModelChoiceField(Team.objects.order_by("name"), required=False)
    patterns = forms.CharField(max_length=5000, required=False)
    only_owned = forms.BooleanField(required=False)
    days = forms.ChoiceField(choices=LIFETIMES, required=False)

    def limit_to(self) -> list[str]:
        named: str = self.cleaned_data["services"]
        return named.replace(",", " ").split()

    def list_patterns(self) -> list[str]:
        listed: str = self.cleaned_data["patterns"]
        return listed.split()

    def lifetime(self) -> timedelta | None:
        days: str = self.cleaned_data["days"]
        return timedelta(days=int(days)) if days else None


class RotateForm(ServiceForm):
    overlap = forms.ChoiceField(choices=OVERLAPS)
    days = forms.ChoiceField(choices=[("", "as long as before"), *LIFETIMES[:-1]], required=False)

    def lifetime(self) -> timedelta | None:
        days: str = self.cleaned_data["days"]
        return timedelta(days=int(days)) if days else None


class RevokeForm(forms.Form):
    reason = forms.CharField(max_length=2000)


class HandOverForm(ServiceForm):
    owner = forms.ModelChoiceField(User.objects.none(), required=False)
    team = forms.ModelChoiceField(Team.objects.order_by("name"), required=False)

    def __init__(self, owners: Sequence[User], *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.fields["owner"] = forms.ModelChoiceField(
            User.objects.filter(pk__in=[each.pk for each in owners]), required=False
        )

    def clean(self) -> dict[str, Any]:
        values = super().clean() or self.cleaned_data
        if not self.errors and not (values["owner"] or values["team"]):
            self.add_error("owner", "Choose the new owner, or a team.")
        return values
