"""Forms of the Targets page: they build an :class:`Asked`, which the services validate."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, cast

from django import forms
from django.utils import timezone

from controlplane.accounts.models.people import User
from controlplane.accounts.people.forms import list_zone_choices
from controlplane.core import clock
from controlplane.core.change_views import ServiceForm
from controlplane.core.message_templates import MESSAGE_TEMPLATES, SEVERITIES
from controlplane.core.scopes import SCOPES
from controlplane.notify.models.targets import Target
from controlplane.notify.transports import registry
from controlplane.notify.transports.channel_settings import Field

from .fields import MAX_MEMBERS, MAX_STEPS, Asked
from .resources import settings_digest

BLANK_ROWS = 2
Choices = list[tuple[str, str]]


@dataclass(frozen=True)
class SettingField:
    """A transport's field with its bound form field and the displayable current value."""

    bound: forms.BoundField
    field: Field
    present: str


class TargetForm(ServiceForm):
    """The fields of every kind of target."""

    name = forms.CharField(max_length=80)
    description = forms.CharField(max_length=300, required=False)
    seen = forms.CharField(max_length=64, required=False)

    def asked(self, kind: str) -> Asked:
        return Asked(name=self.given("name"), kind=kind, description=self.given("description"))


class PersonForm(TargetForm):
    user = forms.ChoiceField(required=False)
    email = forms.CharField(max_length=254, required=False)
    slack_user_id = forms.CharField(max_length=40, required=False)

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        names = list(User.objects.order_by("username").values_list("username", flat=True))
        _choices(self, "user", [("", "nobody's: only what is written here"), *_same(names)])

    def asked(self, kind: str) -> Asked:
        return Asked(
            name=self.given("name"),
            kind=kind,
            description=self.given("description"),
            user=self.given("user"),
            email=self.given("email"),
            slack_user_id=self.given("slack_user_id"),
        )


class ChannelForm(TargetForm):
    """An address, and the fields of all transports that have settings of their own."""

    address = forms.CharField(max_length=200, required=False)

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        for transport in registry.channel_transports():
            for field in transport.settings.fields if transport.settings else ():
                self.fields[field.name] = _form_field(field)

    @property
    def address_examples(self) -> list[str]:
        """The examples of an address's accepted forms."""
        return [form for one in registry.channel_transports() for form in one.address_examples]

    @property
    def setting_fields(self) -> list[SettingField]:
        """The transports' fields; flags only for a channel that already has the transport."""
        own = registry.transport_for(str(self.initial.get("address", "")))
        masked = self.initial.get("masked_settings", {})
        return [
            SettingField(self[field.name], field, masked.get(field.name) or "")
            for transport in registry.channel_transports()
            for field in (transport.settings.fields if transport.settings else ())
            if not field.is_flag or transport == own
        ]

    def asked(self, kind: str) -> Asked:
        return Asked(
            name=self.given("name"),
            kind=kind,
            description=self.given("description"),
            address=self.given("address"),
            settings={
                one.field.name: value
                for one in self.setting_fields
                if (value := self.cleaned_data.get(one.field.name))
            },
        )


class OnCallForm(TargetForm):
    """A rotation: its members in order, with two blank rows to add more."""

    rotation_days = forms.IntegerField(min_value=1, max_value=366, required=False)
    rotation_starts_at = forms.CharField(max_length=40, required=False)
    time_zone = forms.ChoiceField(required=False)
    members = forms.CharField(required=False)  # Holds the errors of the rows.

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        _choices(self, "time_zone", list_zone_choices(str(self.initial.get("time_zone", "UTC"))))
        people = Target.objects.filter(kind=Target.Kind.PERSON).order_by("name")
        choices = [("", "–"), *((str(one.pk), one.name) for one in people)]
        present = [str(pk) for pk in self.initial.get("member_ids", [])]
        rows = min(_rows(self, "member", len(present)), MAX_MEMBERS)
        for row in range(rows):
            first = present[row] if row < len(present) else ""
            self.fields[f"member_{row}"] = forms.ChoiceField(
                choices=choices, required=False, initial=first
            )

    @property
    def member_fields(self) -> list[forms.BoundField]:
        return [self[name] for name in self.fields if name.startswith("member_")]

    def clean_rotation_starts_at(self) -> datetime | None:
        """Parse the local time in the rotation's time zone, which is another field of the form."""
        return _local(self.given("rotation_starts_at"), str(self.data.get("time_zone", "UTC")))

    def asked(self, kind: str) -> Asked:
        chosen = [self.given(field.name) for field in self.member_fields]
        return Asked(
            name=self.given("name"),
            kind=kind,
            description=self.given("description"),
            members=[int(pk) for pk in chosen if pk],
            rotation_days=self.cleaned_data.get("rotation_days"),
            rotation_starts_at=self.cleaned_data.get("rotation_starts_at"),
            time_zone=self.given("time_zone"),
        )


class EscalationForm(TargetForm):
    """An escalation's steps: minutes and target."""

    steps = forms.CharField(required=False)  # Holds the errors of the rows.

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        others = Target.objects.exclude(kind=Target.Kind.ESCALATION).order_by("name")
        choices = [("", "–"), *((str(one.pk), one.name) for one in others)]
        present = list(self.initial.get("step_rows", []))
        self.row_count = min(_rows(self, "target", len(present)), MAX_STEPS)
        for row in range(self.row_count):
            after, target = present[row] if row < len(present) else (None, "")
            self.fields[f"after_{row}"] = forms.IntegerField(
                min_value=0, max_value=100_000, required=False, initial=after
            )
            self.fields[f"target_{row}"] = forms.ChoiceField(
                choices=choices, required=False, initial=str(target)
            )

    @property
    def step_fields(self) -> list[tuple[forms.BoundField, forms.BoundField]]:
        return [(self[f"after_{row}"], self[f"target_{row}"]) for row in range(self.row_count)]

    def clean(self) -> dict[str, Any]:
        for after, target in self.step_fields:
            given = self.cleaned_data.get(after.name) is not None
            if after.name not in self.errors and given != bool(self.given(target.name)):
                self.add_error("steps", "A step has both: after how many minutes, and whom.")
        return self.cleaned_data

    def asked(self, kind: str) -> Asked:
        steps = [
            (self.cleaned_data[after.name], int(self.given(target.name)))
            for after, target in self.step_fields
            if self.given(target.name)
        ]
        return Asked(
            name=self.given("name"),
            kind=kind,
            description=self.given("description"),
            steps=sorted(steps, key=lambda step: step[0]),
        )


class RouteForm(ServiceForm):
    event = forms.CharField(max_length=64, required=False)
    scope = forms.ChoiceField(required=False)
    severity = forms.ChoiceField(required=False)
    target = forms.ChoiceField()

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        _choices(self, "scope", [("", "any scope"), *_same(SCOPES.names)])
        _choices(self, "severity", [("", "any severity"), *_same(SEVERITIES)])
        targets = Target.objects.order_by("name")
        _choices(self, "target", [(str(one.pk), one.name) for one in targets])

    @property
    def events(self) -> list[str]:
        """The known events, with the pattern of each family."""
        families = {f"{event.partition('.')[0]}.*" for event in MESSAGE_TEMPLATES}
        return ["*", *sorted({*families, *MESSAGE_TEMPLATES})]


FORMS: Mapping[str, type[TargetForm]] = {
    "person": PersonForm,
    "channel": ChannelForm,
    "on_call": OnCallForm,
    "escalation": EscalationForm,
}


def initial(target: Target) -> dict[str, Any]:
    """Return the initial values of a target's form."""
    known = {
        "name": target.name,
        "description": target.description,
        "seen": settings_digest(target),
        "user": target.user.username if target.user else "",
        "email": target.email,
        "slack_user_id": target.slack_user_id,
        "address": target.address,
        **registry.visible_settings(target),
        "masked_settings": registry.masked_settings(target),
        "rotation_days": target.rotation_days or 7,
        "time_zone": target.time_zone,
        "member_ids": [row.person_id for row in target.members.order_by("position")],
        "step_rows": [
            (row.after_minutes, row.target_id) for row in target.steps.order_by("position")
        ],
    }
    if target.rotation_starts_at is not None:
        local = timezone.localtime(
            target.rotation_starts_at, clock.load_time_zone(target.time_zone)
        )
        known["rotation_starts_at"] = f"{local:%Y-%m-%dT%H:%M}"
    return known


def _form_field(field: Field) -> forms.Field:
    if field.is_flag:
        return forms.BooleanField(required=False)
    if field.choices:
        return forms.ChoiceField(required=False, choices=field.choices)
    return forms.CharField(max_length=2000, required=False)


def _same(names: Sequence[str]) -> Choices:
    return [(name, name) for name in names]


def _choices(form: forms.Form, name: str, choices: Choices) -> None:
    cast(forms.ChoiceField, form.fields[name]).choices = choices


def _rows(form: forms.Form, prefix: str, present: int) -> int:
    """Return the number of rows: the present ones and two blank, or as many as were posted."""
    sent = [name for name in form.data if name.startswith(f"{prefix}_")]
    return max(present + BLANK_ROWS, len(sent), 3)


def _local(text: str, zone: str) -> datetime | None:
    if not text:
        return None
    try:
        naive = datetime.fromisoformat(text)
    except ValueError as error:
        raise forms.ValidationError("A day and a time, as 2026-11-23T09:00.") from error
    return naive.replace(tzinfo=clock.load_time_zone(zone)) if naive.tzinfo is None else naive
