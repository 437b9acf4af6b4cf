"""What the screens of SLOs ask of people, but for the SLO itself. The rules are the services'."""

from django import forms

from controlplane.core.changes import RuleForm
from controlplane.core.reasons import MAX_CHARACTERS


class ReasonForm(RuleForm):
    """Only a reason, which the service may insist on."""

    renamed = {"comment": "reason"}

    reason = forms.CharField(max_length=MAX_CHARACTERS, required=False)


class ExclusionForm(RuleForm):
    """From when to when, in the person's own zone, and why."""

    starts_at = forms.DateTimeField(error_messages={"required": "Say when it began."})
    ends_at = forms.DateTimeField(error_messages={"required": "Say when it was over."})
    reason = forms.CharField(max_length=MAX_CHARACTERS, required=False)
