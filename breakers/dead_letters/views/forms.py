"""Forms of dead letter pages; the services validate their values."""

from typing import Any

from django import forms

from breakers.dead_letters.bulk import replays
from controlplane.core.change_views import ServiceForm
from controlplane.core.reasons import MAX_CHARACTERS


class LetterReasonForm(ServiceForm):
    reason = forms.CharField(max_length=MAX_CHARACTERS * 2, required=False)


class BulkForm(ServiceForm):
    """Form of a bulk job: rate, retry limit and reason."""

    renamed = {"rate_per_second": "rate", "waits_for": "waits_for"}

    reason = forms.CharField(max_length=MAX_CHARACTERS * 2, required=False)
    rate = forms.FloatField(
        required=False,
        min_value=replays.MIN_RATE_PER_SECOND,
        max_value=replays.MAX_RATE_PER_SECOND,
        error_messages={
            "invalid": "Write a number of letters a second.",
            "min_value": f"At least {replays.MIN_RATE_PER_SECOND:g} a second.",
            "max_value": f"At most {replays.MAX_RATE_PER_SECOND:g} a second.",
        },
    )
    most_retries = forms.IntegerField(
        required=False,
        min_value=1,
        max_value=replays.MAX_RETRIES_LIMIT,
        error_messages={"invalid": "Write a whole number."},
    )
    does_wait = forms.BooleanField(required=False)

    def limits(self) -> dict[str, Any]:
        """Return rate and retry limit, with defaults for empty or invalid input."""
        given = self.cleaned_data if self.is_bound else {}
        return {
            "rate_per_second": given.get("rate") or replays.RATE_PER_SECOND,
            "most_retries": given.get("most_retries") or replays.MAX_RETRIES,
        }

    def service_arguments(self) -> dict[str, Any]:
        arguments = {**self.limits(), "reason": self.get_text("reason")}
        if not self.cleaned_data.get("does_wait"):
            arguments["waits_for"] = []
        return arguments
