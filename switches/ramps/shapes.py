"""Serializers of ramps for request validation and the OpenAPI document."""

from typing import Any

from rest_framework import serializers

from controlplane.core.gates.kinds import GATE_KINDS
from controlplane.core.gates.questions import FAIL, NO_DATA, PASS, WAITING
from controlplane.core.http.fields import Filters, MutationBody, StrictIntegerField, Text
from switches.models import Ramp

from . import live_ramps, resources

LIVE = "live"
VERDICTS = (PASS, FAIL, NO_DATA, WAITING)
STATES = (*live_ramps.STATES.values(),)


class GateTypeField(serializers.ChoiceField):
    """The name of a registered gate kind; kinds are read when the serializer is built."""

    def __init__(self, **options: Any) -> None:
        passes = "; ".join(f"`{kind.name}`: {kind.passes_when}" for kind in GATE_KINDS.values())
        super().__init__(list(GATE_KINDS), help_text=f"Passes when … {passes}.", **options)


class GateShape(serializers.Serializer[Any]):
    """A gate of a plan and its latest result; further fields depend on the gate type."""

    type = GateTypeField()
    summary = serializers.CharField(help_text="Description of the gate.")
    verdict = serializers.ChoiceField(VERDICTS)
    evidence = serializers.DictField()
    checked_at = serializers.DateTimeField(allow_null=True)


class RampStepShape(serializers.Serializer[Any]):
    percent = serializers.FloatField(min_value=0.01, max_value=100)
    state = serializers.ChoiceField(sorted(set(resources.STEP_STATES.values())))
    attempts = serializers.IntegerField()
    started_at = serializers.DateTimeField(allow_null=True)
    dwell_seconds = serializers.FloatField()
    dwell_until = serializers.DateTimeField(allow_null=True)
    max_hold_seconds = serializers.FloatField()
    finished_at = serializers.DateTimeField(allow_null=True)
    error = serializers.CharField()
    gates = GateShape(many=True)


class SideEffectShape(serializers.Serializer[Any]):
    """A publication or message caused by a ramp, unique by its key."""

    key = serializers.CharField()
    name = serializers.CharField()
    attempted_at = serializers.DateTimeField(allow_null=True)
    done_at = serializers.DateTimeField(allow_null=True, help_text="Null until known to be done.")


class RampShape(serializers.Serializer[Ramp]):
    id = serializers.IntegerField()
    switch = serializers.CharField()
    episode = serializers.IntegerField()
    state = serializers.ChoiceField(STATES)
    automatic = serializers.BooleanField(
        help_text="True if the ramp started at the expiry of its episode."
    )
    requested_by = serializers.CharField()
    justification = serializers.CharField()
    overridden = serializers.ListField(
        child=serializers.CharField(), help_text="Safety rules that the release overrode."
    )
    plan = serializers.ListField(
        child=serializers.DictField(), help_text="The plan with all defaults filled in."
    )
    step_index = serializers.IntegerField(help_text="Index of the current step, from 0.")
    allow_percent = serializers.FloatField(
        min_value=0, max_value=100, help_text="Share allowed now, or at the end of the ramp."
    )
    steps = RampStepShape(many=True)
    approval = serializers.IntegerField(
        allow_null=True, help_text="Pending approval of the release or of the current manual gate."
    )
    hold_reason = serializers.CharField()
    blind_since = serializers.DateTimeField(
        allow_null=True, help_text="Time since which a gate has had no data past the dwell."
    )
    heartbeat_at = serializers.DateTimeField(allow_null=True)
    stuck = serializers.BooleanField()
    attempts = serializers.IntegerField()
    duplicates_stopped = serializers.IntegerField(
        help_text="Late or repeated writes that the fence prevented."
    )
    effects = SideEffectShape(many=True)
    created_at = serializers.DateTimeField()
    started_at = serializers.DateTimeField(allow_null=True)
    paused_at = serializers.DateTimeField(allow_null=True)
    finished_at = serializers.DateTimeField(allow_null=True)
    compensated_at = serializers.DateTimeField(allow_null=True)
    outcome = serializers.CharField()
    error = serializers.CharField()

    def to_representation(self, ramp: Ramp) -> dict[str, Any]:
        return resources.ramp_resource(ramp, self.context["around"], self.context["now"])


class ActedRampShape(RampShape):
    """A ramp after an action."""

    dry_run = serializers.BooleanField(required=False, help_text="True if this was a dry run.")


class RampFilters(Filters):
    state = serializers.ChoiceField(
        [LIVE, *STATES], required=False, help_text="`live` selects ramps that have not ended."
    )
    switch = serializers.CharField(required=False, max_length=131)


class RampActionBody(MutationBody):
    reason = Text(help_text="Reason, stored in the audit trail.")


class AdvanceBody(RampActionBody):
    step_index = StrictIntegerField(
        min_value=0,
        required=False,
        help_text="Index of the step to leave, from 0. The response is 409 if the ramp is at "
        "another step. Send it, so that two simultaneous requests advance one step only.",
    )
