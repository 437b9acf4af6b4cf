"""Form for the contacts of a team."""

from collections.abc import Mapping
from typing import Any, cast

from django import forms
from django.http import Http404, HttpResponse
from django.urls import reverse

from controlplane.accounts.models.teams import Team
from controlplane.core import authority
from controlplane.core.actions import Action
from controlplane.core.change_views import ServiceForm, submitted_data
from controlplane.core.clock import db_now
from controlplane.core.errors import Conflict, InvalidInput
from controlplane.core.http.permissions import actor_of
from controlplane.core.message_templates import SEVERITIES
from controlplane.core.page_responses import PersonRequest, page_view, respond_done, show
from controlplane.notify.models.targets import Target

from . import contact_services as contacts
from .forms import BLANK_ROWS
from .team_contacts import CHANNEL, ESCALATION, KINDS_OF_TARGETS, ON_CALL


class ContactsForm(ServiceForm):
    """Form with blank rows for more channels; its values are names of targets."""

    seen = forms.CharField(max_length=64, required=False)
    on_call = forms.ChoiceField(required=False)
    channels = forms.CharField(required=False)  # Holds the errors of the rows.
    escalation = forms.ChoiceField(required=False)

    def __init__(self, present: Mapping[str, Any], data: Any) -> None:
        initial = {**present, "seen": contacts.get_revision(present)}
        super().__init__(data, initial=initial)
        for name, kind, empty in (
            ("on_call", ON_CALL, "The person on call for the team above"),
            ("escalation", ESCALATION, "None: the person on call, immediately"),
        ):
            field = cast(forms.ChoiceField, self.fields[name])
            field.choices = [("", empty), *_list_choices(kind)]
        channels = [("", "–"), *_list_choices(CHANNEL)]
        sent = [name for name in self.data if name.startswith("channel_")]
        rows = max(len(present["channels"]) + BLANK_ROWS, len(sent))
        for row in range(min(rows, contacts.MAX_CHANNELS)):
            first = present["channels"][row] if row < len(present["channels"]) else ""
            self.fields[f"channel_{row}"] = forms.ChoiceField(
                choices=channels, required=False, initial=first
            )

    @property
    def channel_fields(self) -> list[forms.BoundField]:
        return [self[name] for name in self.fields if name.startswith("channel_")]

    def read_contacts(self) -> dict[str, Any]:
        chosen = [self.get_text(field.name) for field in self.channel_fields]
        return {
            "on_call": self.get_text("on_call") or None,
            "channels": [name for name in chosen if name],
            "escalation": self.get_text("escalation") or None,
            "seen": self.get_text("seen"),
        }


@page_view("GET", "POST")
def change_contacts(request: PersonRequest, slug: str) -> HttpResponse:
    team = Team.objects.filter(slug=slug).first()
    if team is None:
        raise Http404
    actor, now = actor_of(request), db_now()
    authority.require(actor, Action.EDIT, f"team:{slug}")
    form = ContactsForm(contacts.read_document(slug), submitted_data(request))
    back = reverse("team_page", args=[slug])
    if form.is_valid():
        try:
            contacts.set_contacts(slug=slug, **form.read_contacts(), actor=actor, now=now)
        except InvalidInput as error:
            form.add_service_errors(error.errors)
        except Conflict as conflict:
            form.add_error(None, conflict.detail)
        else:
            return respond_done(request, f"The contacts of {team.name} are saved.", back)
    status = 422 if form.is_bound else 200
    context = {"form": form, "team": team, "back": back}
    return show(request, "notify/team_contacts_form.html", context, status=status)


def _list_choices(kind: str) -> list[tuple[str, str]]:
    """Return the names of the targets that may be contacts of this kind."""
    rows = Target.objects.filter(kind__in=KINDS_OF_TARGETS[kind])
    names = rows.exclude(name__in=SEVERITIES).order_by("name").values_list("name", flat=True)
    return [(name, name) for name in names]
