"""Forms of the Notifications page, which build a :class:`TargetRequest` for the services."""

from collections.abc import Mapping
from datetime import datetime
from typing import Any, cast

from django import forms
from django.db.models import QuerySet
from django.utils import timezone

from controlplane.accounts.models.people import User
from controlplane.accounts.people.forms import list_zone_choices
from controlplane.core import clock
from controlplane.core.change_views import ServiceForm
from controlplane.core.message_templates import MESSAGE_TEMPLATES, SEVERITIES
from controlplane.core.scopes import SCOPES
from controlplane.notify.models.targets import Target
from controlplane.notify.transports import destinations
from controlplane.notify.transports.base import Transport

from .fields import MAX_MEMBERS, MAX_STEPS, TargetRequest
from .resources import settings_digest

BLANK_ROWS = 2


class TargetForm(ServiceForm):
    """Base form, with the fields that targets of all kinds have."""

    name = forms.CharField(max_length=80)
    description = forms.CharField(max_length=300, required=False)
    seen = forms.CharField(max_length=64, required=False)

    def read_request(self, kind: str) -> TargetRequest:
        name, description = self.get_text("name"), self.get_text("description")
        return TargetRequest(name=name, kind=kind, description=description, **self.own_fields())

    def own_fields(self) -> dict[str, Any]:
        """Return the :class:`TargetRequest` arguments that only this kind of target has."""
        return {}


class PersonTargetForm(TargetForm):
    user = forms.ChoiceField(
        required=False,
        choices=lambda: [
            ("", "No account: use only the addresses below"),
            *User.objects.order_by("username").values_list("username", "username"),
        ],
    )
    email = forms.CharField(max_length=254, required=False)
    slack_user_id = forms.CharField(max_length=40, required=False)

    def own_fields(self) -> dict[str, Any]:
        return {name: self.get_text(name) for name in ("user", "email", "slack_user_id")}


class ChannelForm(TargetForm):
    """Form for a channel of one transport: its address, and the settings of that transport.

    The initial value `transport` is the key of the transport that the form is for; the address
    that was submitted counts more.
    """

    address = forms.CharField(max_length=200, required=False)

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.transport = self._find_transport()
        for field in self.transport.settings.fields if self.transport.settings else ():
            if field.is_flag:
                form_field: forms.Field = forms.BooleanField(required=False)
            elif field.choices:
                form_field = forms.ChoiceField(required=False, choices=field.choices)
            else:
                form_field = forms.CharField(max_length=2000, required=False)
            self.fields[field.name] = form_field

    def _find_transport(self) -> Transport:
        choices = destinations.channel_transports()
        initial = self.initial
        for text in (self.data.get("address"), initial.get("transport"), initial.get("address")):
            if (found := destinations.transport_for(str(text or ""))) in choices:
                return found
        return choices[0]

    @property
    def transports(self) -> list[Transport]:
        return list(destinations.channel_transports())

    @property
    def fixed_address(self) -> str:
        """The address of every channel of the transport; empty if each channel has its own."""
        return (
            self.transport.key if self.transport.address_examples == (self.transport.key,) else ""
        )

    @property
    def typed_address(self) -> str:
        """The address to show; empty if it is one of another transport."""
        address = str(self["address"].value() or "")
        found = destinations.transport_for(address)
        return "" if found != self.transport and found.address_examples else address

    @property
    def setting_fields(self) -> list[dict[str, Any]]:
        """The settings of the transport, as dicts with `field`, `bound` and `present`.

        `bound` is the form field of the setting `field`, and `present` its current value, masked if
        it is secret. Boolean flags are included only for a channel that has this transport already.
        """
        own = destinations.transport_for(str(self.initial.get("address", "")))
        masked = self.initial.get("masked_settings", {})
        return [
            {"field": field, "bound": self[field.name], "present": masked.get(field.name) or ""}
            for field in (self.transport.settings.fields if self.transport.settings else ())
            if not field.is_flag or self.transport == own
        ]

    def own_fields(self) -> dict[str, Any]:
        return {
            "address": self.get_text("address"),
            "settings": {
                name: value
                for one in self.setting_fields
                if (value := self.cleaned_data.get(name := one["field"].name))
            },
        }


class OnCallForm(TargetForm):
    """Form for a rotation: its members in order, with blank rows for more members."""

    rotation_days = forms.IntegerField(min_value=1, max_value=366, required=False)
    rotation_starts_at = forms.CharField(max_length=40, required=False)
    time_zone = forms.ChoiceField(required=False)
    members = forms.CharField(required=False)  # Holds the errors of the rows.

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        zones = list_zone_choices(str(self.initial.get("time_zone", "UTC")))
        cast(forms.ChoiceField, self.fields["time_zone"]).choices = zones
        people = _list_targets(Target.objects.filter(kind=Target.Kind.PERSON))
        present = [str(pk) for pk in self.initial.get("member_ids", [])]
        rows = min(_count_rows(self, "member", len(present)), MAX_MEMBERS)
        for row in range(rows):
            first = present[row] if row < len(present) else ""
            field = forms.ChoiceField(choices=[("", "–"), *people], required=False, initial=first)
            self.fields[f"member_{row}"] = field

    @property
    def member_fields(self) -> list[forms.BoundField]:
        return [self[name] for name in self.fields if name.startswith("member_")]

    def clean_rotation_starts_at(self) -> datetime | None:
        if not (text := self.get_text("rotation_starts_at")):
            return None
        try:
            starts_at = datetime.fromisoformat(text)
        except ValueError as error:
            raise forms.ValidationError(
                "Enter a day and time, such as 2026-11-23T09:00."
            ) from error
        if starts_at.tzinfo is None:
            zone = clock.load_time_zone(str(self.data.get("time_zone", "UTC")))
            starts_at = starts_at.replace(tzinfo=zone)
        return starts_at

    def own_fields(self) -> dict[str, Any]:
        chosen = [self.get_text(field.name) for field in self.member_fields]
        return {
            "members": [int(pk) for pk in chosen if pk],
            "rotation_days": self.cleaned_data.get("rotation_days"),
            "rotation_starts_at": self.cleaned_data.get("rotation_starts_at"),
            "time_zone": self.get_text("time_zone"),
        }


class EscalationForm(TargetForm):
    steps = forms.CharField(required=False)  # Holds the errors of the rows.

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        others = _list_targets(Target.objects.exclude(kind=Target.Kind.ESCALATION))
        present = list(self.initial.get("step_rows", []))
        self.row_count = min(_count_rows(self, "target", len(present)), MAX_STEPS)
        for row in range(self.row_count):
            after, target = present[row] if row < len(present) else (None, "")
            self.fields[f"after_{row}"] = forms.IntegerField(
                min_value=0, max_value=100_000, required=False, initial=after
            )
            self.fields[f"target_{row}"] = forms.ChoiceField(
                choices=[("", "–"), *others], required=False, initial=str(target)
            )

    @property
    def step_fields(self) -> list[tuple[forms.BoundField, forms.BoundField]]:
        return [(self[f"after_{row}"], self[f"target_{row}"]) for row in range(self.row_count)]

    def clean(self) -> dict[str, Any]:
        for after, target in self.step_fields:
            given = self.cleaned_data.get(after.name) is not None
            if after.name not in self.errors and given != bool(self.get_text(target.name)):
                self.add_error("steps", "A step needs both a delay and a target.")
        return self.cleaned_data

    def own_fields(self) -> dict[str, Any]:
        steps = [
            (self.cleaned_data[after.name], int(self.get_text(target.name)))
            for after, target in self.step_fields
            if self.get_text(target.name)
        ]
        return {"steps": sorted(steps, key=lambda step: step[0])}


class RouteForm(ServiceForm):
    event = forms.CharField(max_length=64, required=False)
    scope = forms.ChoiceField(
        required=False, choices=lambda: [("", "any scope"), *SCOPES.choices()]
    )
    severity = forms.ChoiceField(
        required=False, choices=[("", "any severity"), *((name, name) for name in SEVERITIES)]
    )
    target = forms.ChoiceField(choices=lambda: _list_targets(Target.objects.all()))

    @property
    def events(self) -> list[str]:
        """All events, and a pattern for each family of events."""
        families = {f"{event.partition('.')[0]}.*" for event in MESSAGE_TEMPLATES}
        return ["*", *sorted({*families, *MESSAGE_TEMPLATES})]


FORMS: Mapping[str, type[TargetForm]] = {
    "person": PersonTargetForm,
    "channel": ChannelForm,
    "on_call": OnCallForm,
    "escalation": EscalationForm,
}


def initial_values(target: Target) -> dict[str, Any]:
    known = {
        "name": target.name,
        "description": target.description,
        "seen": settings_digest(target),
        "user": target.user.username if target.user else "",
        "email": target.email,
        "slack_user_id": target.slack_user_id,
        "address": target.address,
        **destinations.visible_settings(target),
        "masked_settings": destinations.masked_settings(target),
        "rotation_days": target.rotation_days or 7,
        "time_zone": target.time_zone,
        "member_ids": [row.person_id for row in target.members.order_by("position")],
        "step_rows": [
            (row.after_minutes, row.target_id) for row in target.steps.order_by("position")
        ],
    }
    if target.rotation_starts_at is not None:
        zone = clock.load_time_zone(target.time_zone)
        local = timezone.localtime(target.rotation_starts_at, zone)
        known["rotation_starts_at"] = f"{local:%Y-%m-%dT%H:%M}"
    return known


def _list_targets(targets: QuerySet[Target]) -> list[tuple[str, str]]:
    return [(str(one.pk), one.name) for one in targets.order_by("name")]


def _count_rows(form: forms.Form, prefix: str, present: int) -> int:
    """Return how many rows to show: all submitted ones; the present ones and some blank ones."""
    sent = [name for name in form.data if name.startswith(f"{prefix}_")]
    return max(present + BLANK_ROWS, len(sent), 3)
