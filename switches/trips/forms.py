"""Forms of the trips page; services validate the fields."""

from typing import Any

from django import forms

from controlplane.core.change_views import ServiceForm
from controlplane.core.reasons import MAX_CHARACTERS
from switches.models import TripPolicy
from switches.scopes import SCOPES


class DismissForm(ServiceForm):
    reason = forms.CharField(max_length=MAX_CHARACTERS, required=False)


class PolicyForm(ServiceForm):
    """Fields of one policy; `sources` has one pattern per line."""

    trigger = forms.CharField(max_length=200, required=False)
    title = forms.CharField(max_length=400, required=False)
    sources = forms.CharField(max_length=4000, required=False)
    scopes = forms.MultipleChoiceField(choices=SCOPES.choices, required=False)
    gate = forms.ChoiceField(choices=TripPolicy.Gate.choices, required=False)
    response = forms.CharField(max_length=400, required=False)
    budget_per_hour = forms.IntegerField(required=False)
    longest_minutes = forms.IntegerField(required=False)
    position = forms.IntegerField(required=False, min_value=1, max_value=1000)
    seen = forms.CharField(max_length=64, required=False)

    def service_arguments(self) -> dict[str, Any]:
        patterns = (line.strip() for line in self.given("sources").splitlines())
        return {
            "trigger": self.given("trigger").strip(),
            "title": self.given("title").strip(),
            "sources": [pattern for pattern in patterns if pattern],
            "scopes": list(self.cleaned_data.get("scopes") or []),
            "gate": self.given("gate"),
            "response": self.given("response").strip(),
            "budget_per_hour": self.cleaned_data.get("budget_per_hour"),
            "longest_minutes": self.cleaned_data.get("longest_minutes"),
        }


class TripSearch(forms.Form):
    """Filters of the list of trips; invalid filters are ignored."""

    q = forms.CharField(required=False, max_length=131)
    outcome = forms.CharField(required=False, max_length=10)
    before = forms.IntegerField(required=False, min_value=1, max_value=2**62)
