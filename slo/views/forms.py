"""Forms of the SLO pages, but for the SLO itself. The services validate them."""

from django import forms

from controlplane.core.change_views import ServiceForm
from controlplane.core.reasons import MAX_CHARACTERS


class OptionalReasonForm(ServiceForm):
    """Only a reason, which the service may require."""

    renamed = {"comment": "reason"}

    reason = forms.CharField(max_length=MAX_CHARACTERS, required=False)


class ExclusionForm(ServiceForm):
    """A span in the person's own zone, and a reason."""

    starts_at = forms.DateTimeField(error_messages={"required": "Say when it began."})
    ends_at = forms.DateTimeField(error_messages={"required": "Say when it was over."})
    reason = forms.CharField(max_length=MAX_CHARACTERS, required=False)
