"""Forms of the drills page; services validate the fields."""

from typing import Any

from django import forms

from controlplane.core.change_views import ServiceForm
from controlplane.core.reasons import MAX_CHARACTERS
from switches.episodes import live_drills


class BeginForm(ServiceForm):
    """Fields of a new drill and its optional schedule."""

    renamed = {"scope": "switch", "key": "switch"}

    switch = forms.CharField(max_length=200, required=False)
    mode = forms.ChoiceField(
        choices=[(mode, mode) for mode in live_drills.MODES], initial=live_drills.LIVE
    )
    reason = forms.CharField(max_length=MAX_CHARACTERS * 2, required=False)
    every = forms.CharField(max_length=20, required=False)

    def service_arguments(self) -> dict[str, Any]:
        scope, _, key = self.given("switch").strip().partition(":")
        return {
            "scope": scope,
            "key": key,
            "mode": self.given("mode"),
            "reason": self.given("reason"),
        }


class MarkForm(ServiceForm):
    pattern = forms.CharField(max_length=300, required=False)


class CancelForm(ServiceForm):
    reason = forms.CharField(max_length=MAX_CHARACTERS, required=False)
